//! The index: which terms stand in which tools. Adding or removing a server costs what its own tools cost.

use std::{collections::HashMap, ops::Range, sync::Arc};

use super::{
    analysis::{Analyzed, analyze},
    document::{ServerText, ToolText},
    history::{RequestHistory, terms_of},
    lexicon::Lexicon,
    terms::{DocumentId, Impact, TermId, Terms},
};
#[cfg(feature = "embedding")]
use super::{embedding::EmbeddingModel, meaning::Placed};

/// Numbers of documents that are gone are given back when there are more of them than of those that are there.
const NUMBERS_TO_SPARE: usize = 4096;

/// One tool as it is searched.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) server: Arc<str>,
    pub(crate) key: Arc<str>,
    /// Its name in lowercase, by which tools of the same kind are told.
    pub(crate) name: Box<str>,
    /// Its terms in the order of their numbers, and what each says about it.
    pub(crate) terms: Box<[(TermId, Impact)]>,
    /// Hashes of its neighbouring words, sorted.
    pub(crate) pairs: Box<[u32]>,
    /// Where it stands by its meaning.
    #[cfg(feature = "embedding")]
    pub(crate) meaning: Option<Placed>,
}

impl Document {
    /// What a term says about this tool.
    pub(crate) fn impact(&self, term: TermId) -> Option<f32> {
        let at = self.terms.binary_search_by_key(&term, |(term, _)| *term).ok()?;
        self.terms.get(at).map(|(_, impact)| impact.value())
    }
}

/// All tools, ready to be searched.
#[derive(Clone, Default)]
pub struct SearchIndex {
    pub(crate) terms: Terms,
    documents: Vec<Option<Document>>,
    servers: HashMap<Arc<str>, Range<DocumentId>>,
    /// Documents by the name in lowercase.
    names: HashMap<Box<str>, Vec<DocumentId>>,
    live: usize,
    pub(crate) lexicon: Option<Arc<dyn Lexicon>>,
    #[cfg(feature = "embedding")]
    pub(crate) model: Option<Arc<EmbeddingModel>>,
    pub(crate) history: RequestHistory,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex")
            .field("tools", &self.live)
            .field("servers", &self.servers.len())
            .field("terms", &self.terms.len())
            .field("past_requests", &self.history.len())
            .finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// An empty index that knows what words of other languages mean.
    pub fn with_lexicon(lexicon: Arc<dyn Lexicon>) -> Self {
        Self { lexicon: Some(lexicon), ..Self::default() }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Puts a server's tools in, in place of those it had.
    pub fn put(&mut self, server: &ServerText, tools: &[ToolText]) {
        self.remove(&server.id);
        let first = self.next_number();
        let analyzed_server = analyze(server, self.lexicon.as_deref(), &mut self.terms);
        for tool in tools {
            let number = self.next_number();
            let analyzed = analyzed_server.with_tool(tool, self.lexicon.as_deref(), &mut self.terms);
            self.push(number, server, tool, analyzed);
        }
        let end = self.next_number();
        if first < end {
            self.servers.insert(Arc::clone(&server.id), first..end);
        }
    }

    /// Remembers that a tool answered a request well. Bounded: the newest requests of a tool count, and of all. They are
    /// kept while the tool's server is away.
    pub fn remember(&mut self, server: &str, key: &str, request: &str) {
        let Self { history, servers, documents, .. } = self;
        history.remember(server, key, &terms_of(request), || {
            let has_key = |number: &DocumentId| {
                let at = usize::try_from(*number).ok()?;
                Some(*documents.get(at)?.as_ref()?.key == *key)
            };
            servers.get(server)?.clone().find(|number| has_key(number) == Some(true))
        });
    }

    /// How many past requests are remembered.
    pub fn past_requests(&self) -> usize {
        self.history.len()
    }

    /// Takes a server's tools out. Whether there were any.
    pub fn remove(&mut self, server: &str) -> bool {
        let Some(range) = self.servers.remove(server) else { return false };
        self.history.vanished(server);
        let mut terms = Vec::new();
        for number in range.clone() {
            let Some(document) = self.take(number) else { continue };
            terms.extend(document.terms.iter().map(|(term, _)| *term));
            if let Some(same) = self.names.get_mut(&document.name) {
                same.retain(|other| *other != number);
                if same.is_empty() {
                    self.names.remove(&document.name);
                }
            }
        }
        terms.sort_unstable();
        terms.dedup();
        self.terms.remove(terms.into_iter(), range.start, range.end);
        if self.documents.len() > 2 * self.live + NUMBERS_TO_SPARE {
            self.renumber();
        }
        true
    }

    pub(crate) fn document(&self, number: DocumentId) -> Option<&Document> {
        self.documents.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// All tools with their numbers.
    #[cfg(feature = "embedding")]
    pub(crate) fn all(&self) -> impl Iterator<Item = (DocumentId, &Document)> {
        (0..).zip(&self.documents).filter_map(|(number, document)| Some((number, document.as_ref()?)))
    }

    /// How many numbers of documents there may be.
    pub(crate) fn numbers(&self) -> usize {
        self.documents.len()
    }

    /// The tools with exactly this name, in any case.
    pub(crate) fn named(&self, name: &str) -> &[DocumentId] {
        self.names.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn next_number(&self) -> DocumentId {
        DocumentId::try_from(self.documents.len()).unwrap_or(DocumentId::MAX)
    }

    fn take(&mut self, number: DocumentId) -> Option<Document> {
        let document = self.documents.get_mut(usize::try_from(number).ok()?)?.take();
        self.live -= usize::from(document.is_some());
        document
    }

    fn push(&mut self, number: DocumentId, server: &ServerText, tool: &ToolText, analyzed: Analyzed) {
        for (term, impact) in &analyzed.terms {
            self.terms.push(*term, number, *impact);
        }
        self.history.appeared(&server.id, &tool.key, number);
        let name: Box<str> = tool.name.to_lowercase().into();
        self.names.entry(name.clone()).or_default().push(number);
        #[cfg(feature = "embedding")]
        let meaning = self.place(server, tool);
        self.documents.push(Some(Document {
            server: Arc::clone(&server.id),
            key: Arc::clone(&tool.key),
            name,
            terms: analyzed.terms.into(),
            pairs: analyzed.pairs.into(),
            #[cfg(feature = "embedding")]
            meaning,
        }));
        self.live += 1;
    }

    /// Gives the documents new numbers without gaps, in the same order.
    fn renumber(&mut self) {
        let mut next: DocumentId = 0;
        let mut numbers = Vec::with_capacity(self.documents.len());
        for document in &self.documents {
            numbers.push(next);
            next += DocumentId::from(document.is_some());
        }
        let end = next;
        let new = |old: DocumentId| {
            usize::try_from(old).ok().and_then(|old| numbers.get(old)).copied().unwrap_or(end)
        };
        self.documents.retain(Option::is_some);
        self.documents.shrink_to_fit();
        self.terms.renumber(new);
        self.history.definitions_renumbered(new);
        for range in self.servers.values_mut() {
            *range = new(range.start)..new(range.end);
        }
        for same in self.names.values_mut() {
            same.iter_mut().for_each(|number| *number = new(*number));
        }
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
