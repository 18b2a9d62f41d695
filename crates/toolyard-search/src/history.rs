//! Past requests and the tools that served them. Similar requests rank those tools higher, by a bounded score beside
//! the lexical one.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use crate::{
    accumulator::{Accumulator, DocumentId},
    analysis::{
        noise::noise_penalty,
        stemmer::{TextStemmer, is_stop_term},
        tokenizer::tokenize,
    },
};

/// Distinct requests kept per tool; older ones are dropped.
const MAX_REQUESTS_PER_TOOL: usize = 30;
/// Past requests kept of all tools together; older ones are dropped.
pub const MAX_PAST_REQUESTS: usize = 20_000;
/// Further bytes of a request are ignored.
const MAX_REQUEST_BYTES: usize = 4_000;
/// Further distinct terms of a request are ignored.
const MAX_REQUEST_TERMS: usize = 100;
/// Tools that past requests may promote in one search.
const MAX_SIMILAR_TOOLS: usize = 50;
/// The most similar requests of a tool that count.
const MAX_COUNTED_REQUESTS: usize = 10;
/// Requests with a lower cosine similarity are ignored.
const MIN_SIMILARITY: f32 = 0.1;
/// Exponent of the similarity: favours close matches.
const SIMILARITY_EXPONENT: f32 = 1.5;
/// Weight of [`noise_penalty`].
const NOISE_WEIGHT: f32 = 0.5;
/// Free request ids are reclaimed once there are more than this many plus one per request.
const MAX_FREE_IDS: usize = 4_096;

/// The id of a request, ascending by time.
type RequestId = u32;

thread_local! {
    /// By request: the dot product of its weight vector and that of the query.
    static DOT_PRODUCTS: RefCell<Accumulator> = RefCell::default();
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestHistory {
    tools: Vec<ToolHistory>,
    /// Positions in `tools`, by source and key.
    tool_indices: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    /// By request id; `None` if removed.
    requests: Vec<Option<RecordedRequest>>,
    request_count: usize,
    /// All requests with a lower id are removed.
    oldest: usize,
    terms: Vec<RequestTerm>,
    /// Positions in `terms`, by text.
    term_indices: HashMap<Arc<str>, usize>,
}

#[derive(Debug, Clone)]
struct ToolHistory {
    source: Arc<str>,
    key: Arc<str>,
    /// Oldest first.
    requests: VecDeque<RequestId>,
}

/// One request. Its terms are sorted by text, so that floating-point sums do not depend on the order of insertion.
#[derive(Debug, Clone, PartialEq)]
struct RecordedRequest {
    /// Position in [`RequestHistory::tools`].
    tool: usize,
    /// Positions in [`RequestHistory::terms`].
    terms: Box<[usize]>,
}

#[derive(Debug, Clone)]
struct RequestTerm {
    text: Arc<str>,
    requests: Vec<RequestId>,
    /// See [`log_penalty`].
    log_penalty: f32,
}

impl RequestTerm {
    #[expect(clippy::cast_precision_loss, reason = "only the logarithm is used")]
    fn update_penalty(&mut self) {
        self.log_penalty = log_penalty(&self.text, self.requests.len() as f32);
    }
}

/// Subtracted from the maximum weight of a term: the logarithm of the number of requests that have it, and more for
/// filler words.
fn log_penalty(text: &str, request_count: f32) -> f32 {
    (request_count + 0.5).ln() - NOISE_WEIGHT * noise_penalty(text)
}

/// The distinct terms of a request without stop words, sorted by text.
pub(crate) fn request_terms(request: &str) -> Vec<String> {
    let text = request.get(..request.floor_char_boundary(MAX_REQUEST_BYTES)).unwrap_or_default();
    let stemmer = TextStemmer::for_text(text);
    let mut terms = BTreeSet::new();
    tokenize(text, |token, _| {
        stemmer.for_each_term(token, |term| {
            if terms.len() < MAX_REQUEST_TERMS && !is_stop_term(term) {
                terms.insert(term.to_owned());
            }
        });
    });
    terms.into_iter().collect()
}

impl RequestHistory {
    pub(crate) fn is_empty(&self) -> bool {
        self.request_count == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.request_count
    }

    /// Records a request, given by its [`request_terms`]. A repeated request is not counted twice, only made newer.
    pub(crate) fn record(&mut self, source: &str, key: &str, terms: &[String]) {
        if terms.is_empty() {
            return;
        }
        let tool = self.intern_tool(source, key);
        let request =
            RecordedRequest { tool, terms: terms.iter().map(|term| self.intern_term(term)).collect() };
        let recorded = self.requests_of(tool);
        let repeated = recorded.iter().copied().find(|id| self.get(*id) == Some(&request));
        let surplus = (recorded.len() >= MAX_REQUESTS_PER_TOOL).then(|| recorded.front().copied()).flatten();
        if let Some(id) = repeated.or(surplus) {
            self.remove(id);
        }
        self.push(request);
        if self.request_count > MAX_PAST_REQUESTS {
            self.remove_oldest();
        }
        if self.requests.len() > 2 * self.request_count + MAX_FREE_IDS {
            self.compact();
        }
    }

    /// The tools that served similar requests and that `find` finds by source and key, best first, with scores from 0 to 1.
    pub(crate) fn similar_tools(
        &self,
        request: &str,
        find: impl Fn(&str, &str) -> Option<DocumentId>,
    ) -> Vec<(DocumentId, f32)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut similar = self.similar_requests(&request_terms(request));
        similar.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)));
        let mut best: Vec<(&ToolHistory, DocumentId, f32)> = Vec::new();
        for requests_of_tool in similar.chunk_by(|one, other| one.0 == other.0) {
            let Some(tool) = requests_of_tool.first().and_then(|(tool, _)| self.tools.get(*tool)) else {
                continue;
            };
            // A tool counts again once its source is back.
            let Some(document) = find(&tool.source, &tool.key) else { continue };
            // Combines the requests like independent evidence (noisy-or).
            let miss_probability: f32 = requests_of_tool
                .iter()
                .take(MAX_COUNTED_REQUESTS)
                .map(|(_, similarity)| 1.0 - similarity.powf(SIMILARITY_EXPONENT))
                .product();
            best.push((tool, document, 1.0 - miss_probability));
        }
        best.sort_unstable_by(|(one, _, one_score), (other, _, other_score)| {
            let identity = |tool: &ToolHistory| (Arc::clone(&tool.source), Arc::clone(&tool.key));
            other_score.total_cmp(one_score).then_with(|| identity(one).cmp(&identity(other)))
        });
        best.truncate(MAX_SIMILAR_TOOLS);
        best.into_iter().map(|(_, document, score)| (document, score)).collect()
    }

    /// Positions of tools and the cosine similarities of their requests to the given terms.
    fn similar_requests(&self, terms: &[String]) -> Vec<(usize, f32)> {
        let max_weight = self.max_weight();
        let mut squared_query_norm = 0.0;
        let mut similar = Vec::new();
        DOT_PRODUCTS.with_borrow_mut(|dot_products| {
            dot_products.reserve(self.requests.len());
            for term in terms {
                let known = self.term_indices.get(term.as_str()).and_then(|id| self.terms.get(*id));
                let log_penalty = known.map_or_else(|| log_penalty(term, 0.0), |known| known.log_penalty);
                let weight = (max_weight - log_penalty).max(0.0);
                squared_query_norm += weight * weight;
                if weight > 0.0 {
                    for request in known.into_iter().flat_map(|known| &known.requests) {
                        dot_products.update(*request, |sum| sum + weight * weight);
                    }
                }
            }
            dot_products.drain(|request, dot_product| {
                let Some(request) = self.get(request) else { return };
                let similarity =
                    dot_product / (squared_query_norm * self.squared_norm(request, max_weight)).sqrt();
                if similarity >= MIN_SIMILARITY {
                    similar.push((request.tool, similarity.min(1.0)));
                }
            });
        });
        similar
    }

    /// Squared Euclidean norm of the weight vector of a request.
    fn squared_norm(&self, request: &RecordedRequest, max_weight: f32) -> f32 {
        let weight =
            |term: &usize| self.terms.get(*term).map_or(0.0, |term| (max_weight - term.log_penalty).max(0.0));
        request.terms.iter().map(|term| weight(term).powi(2)).sum()
    }

    /// Weight of a term that no request has, up to a constant.
    #[expect(clippy::cast_precision_loss, reason = "only the logarithm is used")]
    fn max_weight(&self) -> f32 {
        (self.request_count as f32 + 1.0).ln()
    }

    fn get(&self, id: RequestId) -> Option<&RecordedRequest> {
        self.requests.get(usize::try_from(id).ok()?)?.as_ref()
    }

    fn requests_of(&self, tool: usize) -> &VecDeque<RequestId> {
        static NONE: VecDeque<RequestId> = VecDeque::new();
        self.tools.get(tool).map_or(&NONE, |tool| &tool.requests)
    }

    fn intern_tool(&mut self, source: &str, key: &str) -> usize {
        if let Some(index) = self.tool_indices.get(source).and_then(|keys| keys.get(key)) {
            return *index;
        }
        let (source, key, index): (Arc<str>, Arc<str>, _) = (source.into(), key.into(), self.tools.len());
        self.tool_indices.entry(Arc::clone(&source)).or_default().insert(Arc::clone(&key), index);
        self.tools.push(ToolHistory { source, key, requests: VecDeque::new() });
        index
    }

    fn intern_term(&mut self, text: &str) -> usize {
        if let Some(id) = self.term_indices.get(text) {
            return *id;
        }
        let (text, id): (Arc<str>, _) = (text.into(), self.terms.len());
        self.term_indices.insert(Arc::clone(&text), id);
        self.terms.push(RequestTerm { log_penalty: log_penalty(&text, 0.0), text, requests: Vec::new() });
        id
    }

    fn push(&mut self, request: RecordedRequest) {
        let id = RequestId::try_from(self.requests.len()).unwrap_or(RequestId::MAX);
        for term in &request.terms {
            if let Some(term) = self.terms.get_mut(*term) {
                term.requests.push(id);
                term.update_penalty();
            }
        }
        if let Some(tool) = self.tools.get_mut(request.tool) {
            tool.requests.push_back(id);
        }
        self.requests.push(Some(request));
        self.request_count += 1;
    }

    fn remove(&mut self, id: RequestId) {
        let slot = usize::try_from(id).ok().and_then(|at| self.requests.get_mut(at));
        let Some(request) = slot.and_then(Option::take) else { return };
        self.request_count -= 1;
        for term in &request.terms {
            if let Some(term) = self.terms.get_mut(*term) {
                if let Ok(at) = term.requests.binary_search(&id) {
                    term.requests.remove(at);
                }
                term.update_penalty();
            }
        }
        if let Some(tool) = self.tools.get_mut(request.tool) {
            tool.requests.retain(|other| *other != id);
        }
    }

    fn remove_oldest(&mut self) {
        while self.requests.get(self.oldest).is_some_and(Option::is_none) {
            self.oldest += 1;
        }
        self.remove(RequestId::try_from(self.oldest).unwrap_or(RequestId::MAX));
    }

    /// Renumbers requests without gaps and drops tools and terms without requests.
    fn compact(&mut self) {
        let old = std::mem::take(self);
        for request in old.requests.iter().flatten() {
            let Some(tool) = old.tools.get(request.tool) else { continue };
            let index = self.intern_tool(&tool.source, &tool.key);
            let texts = request.terms.iter().filter_map(|term| old.terms.get(*term));
            let terms = texts.map(|term| self.intern_term(&term.text)).collect();
            self.push(RecordedRequest { tool: index, terms });
        }
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
