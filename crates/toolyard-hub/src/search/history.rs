//! Past requests: which tools answered what was asked before. It is a score of its own beside the words of definitions,
//! bounded, so that a tool that was used for something similar comes forward and nothing else changes.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::{
    noise::noise,
    score::Sums,
    stem::{TextStemmer, is_stop_term},
    terms::DocumentId,
    words::words,
};

/// So many different requests of a tool are remembered, the newest.
const MOST_OF_TOOL: usize = 30;
/// So many requests are remembered in all.
pub(crate) const MOST_PAST: usize = 20_000;
/// More of a request is not read, in bytes.
const MOST_BYTES: usize = 4_000;
/// More different terms of a request are not looked at.
const MOST_TERMS: usize = 100;
/// So many tools come forward in one search.
const MOST_TOOLS: usize = 50;
/// So many of a tool's nearest requests count.
const NEAREST: usize = 10;
/// Requests that have less in common are not similar.
const NEAR: f32 = 0.1;
/// How much more a near request counts than a far one.
const NEARNESS: f32 = 1.5;
/// How much of a word's noise is taken from its weight.
const NOISE: f32 = 0.5;
/// Numbers of requests that are gone are given back when there are so many more of them than of those that are there.
const NUMBERS_TO_SPARE: usize = 4_096;

/// The number of a past request: later ones have larger numbers.
type RequestId = u32;

thread_local! {
    static SCRATCH: RefCell<Sums> = RefCell::default();
}

/// All past requests, ready to be compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHistory {
    tools: Vec<PastTool>,
    /// Where a tool stands, by server and key.
    places: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    requests: Vec<Option<Past>>,
    live: usize,
    /// No request before this is there.
    oldest: usize,
    terms: Vec<PastTerm>,
    ids: HashMap<Arc<str>, usize>,
}

/// A tool that answered something.
#[derive(Debug, Clone)]
struct PastTool {
    server: Arc<str>,
    key: Arc<str>,
    /// Its definition, while its server is there.
    document: Option<DocumentId>,
    /// What it answered, the oldest first.
    requests: VecDeque<RequestId>,
}

/// One request: what it said, in the order of the terms' texts, so that sums over them do not tell who came first.
#[derive(Debug, Clone, PartialEq)]
struct Past {
    tool: usize,
    terms: Box<[usize]>,
}

#[derive(Debug, Clone)]
struct PastTerm {
    text: Arc<str>,
    requests: Vec<RequestId>,
    /// What is taken from the weight that a term has at most: the logarithm of how many have it, and its noise.
    lessened: f32,
}

impl PastTerm {
    #[expect(clippy::cast_precision_loss, reason = "a logarithm is taken of it")]
    fn count(&mut self) {
        self.lessened = lessened(&self.text, self.requests.len() as f32);
    }
}

/// What a term loses because so many requests have it, and because people say it anyway.
fn lessened(text: &str, count: f32) -> f32 {
    (count + 0.5).ln() - NOISE * noise(text)
}

/// The different terms of a request in the order of their texts, without those that say nothing.
pub(crate) fn terms_of(request: &str) -> Vec<String> {
    let text = request.get(..request.floor_char_boundary(MOST_BYTES)).unwrap_or_default();
    let stemmer = TextStemmer::of(text);
    let mut terms = BTreeSet::new();
    words(text, |word, _| {
        stemmer.terms(word, |term| {
            // The first ones count, in whatever script they are.
            if terms.len() < MOST_TERMS && !is_stop_term(term) {
                terms.insert(term.to_owned());
            }
        });
    });
    terms.into_iter().collect()
}

impl RequestHistory {
    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// How many requests there are.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Remembers what a tool answered, by its terms in the order of [`terms_of`]. The same again is not one more, only newer.
    pub(crate) fn remember(
        &mut self,
        server: &str,
        key: &str,
        terms: &[String],
        document: impl FnOnce() -> Option<DocumentId>,
    ) {
        if terms.is_empty() {
            return;
        }
        let tool = self.tool(server, key, document);
        let past = Past { tool, terms: terms.iter().map(|term| self.intern(term)).collect() };
        let known = self.requests_of(tool);
        let again = known.iter().copied().find(|number| self.get(*number) == Some(&past));
        let superfluous = (known.len() >= MOST_OF_TOOL).then(|| known.front().copied()).flatten();
        if let Some(number) = again.or(superfluous) {
            self.forget(number);
        }
        self.push(past);
        if self.live > MOST_PAST {
            self.forget_oldest();
        }
        if self.requests.len() > 2 * self.live + NUMBERS_TO_SPARE {
            self.renumber();
        }
    }

    /// A server's tools are there under these numbers.
    pub(crate) fn appeared(&mut self, server: &str, key: &str, number: DocumentId) {
        let place = self.places.get(server).and_then(|keys| keys.get(key));
        if let Some(tool) = place.and_then(|place| self.tools.get_mut(*place)) {
            tool.document = Some(number);
        }
    }

    /// A server's tools are gone; what they answered is kept for when they come back.
    pub(crate) fn vanished(&mut self, server: &str) {
        for place in self.places.get(server).into_iter().flat_map(HashMap::values) {
            if let Some(tool) = self.tools.get_mut(*place) {
                tool.document = None;
            }
        }
    }

    /// Definitions have other numbers now.
    pub(crate) fn definitions_renumbered(&mut self, new_number: impl Fn(DocumentId) -> DocumentId) {
        for tool in &mut self.tools {
            tool.document = tool.document.map(&new_number);
        }
    }

    /// The tools that answered something similar, the best first, and how much speaks for each: from 0 to 1.
    pub(crate) fn similar(&self, request: &str) -> Vec<(DocumentId, f32)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut near = self.near(&terms_of(request));
        near.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        let mut best: Vec<(&PastTool, f32)> = Vec::new();
        for of_tool in near.chunk_by(|one, other| one.0 == other.0) {
            let Some(tool) = of_tool.first().and_then(|(tool, _)| self.tools.get(*tool)) else { continue };
            // As if each were evidence of its own that may be wrong.
            let doubt: f32 =
                of_tool.iter().take(NEAREST).map(|(_, nearness)| 1.0 - nearness.powf(NEARNESS)).product();
            best.push((tool, 1.0 - doubt));
        }
        best.sort_unstable_by(|(one, one_score), (other, other_score)| {
            let known_by = |tool: &PastTool| (Arc::clone(&tool.server), Arc::clone(&tool.key));
            other_score.total_cmp(one_score).then_with(|| known_by(one).cmp(&known_by(other)))
        });
        best.truncate(MOST_TOOLS);
        best.iter().filter_map(|(tool, score)| Some((tool.document?, *score))).collect()
    }

    /// All requests near this one whose tools are there: the cosine of what both say, where rare terms say more.
    fn near(&self, terms: &[String]) -> Vec<(usize, f32)> {
        let most = self.most();
        let mut own = 0.0;
        let mut near = Vec::new();
        SCRATCH.with_borrow_mut(|common| {
            common.grow(self.requests.len());
            for term in terms {
                let known = self.ids.get(term.as_str()).and_then(|id| self.terms.get(*id));
                let lessened = known.map_or_else(|| lessened(term, 0.0), |known| known.lessened);
                let weight = (most - lessened).max(0.0);
                own += weight * weight;
                if weight > 0.0 {
                    for request in known.into_iter().flat_map(|known| &known.requests) {
                        common.update(*request, |sum| sum + weight * weight);
                    }
                }
            }
            common.drain(|request, common| {
                let Some(past) = self.get(request) else { return };
                if self.tools.get(past.tool).is_none_or(|tool| tool.document.is_none()) {
                    return;
                }
                let nearness = common / (own * self.square(past, most)).sqrt();
                if nearness >= NEAR {
                    near.push((past.tool, nearness.min(1.0)));
                }
            });
        });
        near
    }

    /// The square of what all terms of a request weigh.
    fn square(&self, past: &Past, most: f32) -> f32 {
        let weight = |term: &usize| self.terms.get(*term).map_or(0.0, |term| (most - term.lessened).max(0.0));
        past.terms.iter().map(|term| weight(term).powi(2)).sum()
    }

    /// What a term would weigh that no request has, but for a constant.
    #[expect(clippy::cast_precision_loss, reason = "a logarithm is taken of it")]
    fn most(&self) -> f32 {
        (self.live as f32 + 1.0).ln()
    }

    fn get(&self, number: RequestId) -> Option<&Past> {
        self.requests.get(usize::try_from(number).ok()?)?.as_ref()
    }

    fn requests_of(&self, tool: usize) -> &VecDeque<RequestId> {
        static NONE: VecDeque<RequestId> = VecDeque::new();
        self.tools.get(tool).map_or(&NONE, |tool| &tool.requests)
    }

    fn tool(&mut self, server: &str, key: &str, document: impl FnOnce() -> Option<DocumentId>) -> usize {
        if let Some(place) = self.places.get(server).and_then(|keys| keys.get(key)) {
            return *place;
        }
        let (server, key, place): (Arc<str>, Arc<str>, _) = (server.into(), key.into(), self.tools.len());
        self.places.entry(Arc::clone(&server)).or_default().insert(Arc::clone(&key), place);
        self.tools.push(PastTool { server, key, document: document(), requests: VecDeque::new() });
        place
    }

    fn intern(&mut self, text: &str) -> usize {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let (text, id): (Arc<str>, _) = (text.into(), self.terms.len());
        self.ids.insert(Arc::clone(&text), id);
        self.terms.push(PastTerm { lessened: lessened(&text, 0.0), text, requests: Vec::new() });
        id
    }

    fn push(&mut self, past: Past) {
        let number = RequestId::try_from(self.requests.len()).unwrap_or(RequestId::MAX);
        for term in &past.terms {
            if let Some(term) = self.terms.get_mut(*term) {
                term.requests.push(number);
                term.count();
            }
        }
        if let Some(tool) = self.tools.get_mut(past.tool) {
            tool.requests.push_back(number);
        }
        self.requests.push(Some(past));
        self.live += 1;
    }

    fn forget(&mut self, number: RequestId) {
        let slot = usize::try_from(number).ok().and_then(|at| self.requests.get_mut(at));
        let Some(past) = slot.and_then(Option::take) else { return };
        self.live -= 1;
        for term in &past.terms {
            if let Some(term) = self.terms.get_mut(*term) {
                if let Ok(at) = term.requests.binary_search(&number) {
                    term.requests.remove(at);
                }
                term.count();
            }
        }
        if let Some(tool) = self.tools.get_mut(past.tool) {
            tool.requests.retain(|other| *other != number);
        }
    }

    fn forget_oldest(&mut self) {
        while self.requests.get(self.oldest).is_some_and(Option::is_none) {
            self.oldest += 1;
        }
        self.forget(RequestId::try_from(self.oldest).unwrap_or(RequestId::MAX));
    }

    /// Begins anew with what is there: numbers without gaps, and no tool or term that nothing is left of.
    fn renumber(&mut self) {
        let old = std::mem::take(self);
        for past in old.requests.iter().flatten() {
            let Some(tool) = old.tools.get(past.tool) else { continue };
            let place = self.tool(&tool.server, &tool.key, || tool.document);
            let texts = past.terms.iter().filter_map(|term| old.terms.get(*term));
            let terms = texts.map(|term| self.intern(&term.text)).collect();
            self.push(Past { tool: place, terms });
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
