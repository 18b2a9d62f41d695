//! Past requests by owner: the requests of one are never found for another. All named owners share one limit, at which the
//! owner with the most requests is forgotten: many requests of one owner do not cost others theirs.

use std::{collections::HashMap, sync::Arc};

use crate::{
    accumulator::DocumentId,
    history::{MAX_PAST_REQUESTS, RequestHistory},
};

/// The past requests of all owners.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnedHistory {
    /// Of the owner with the empty name: on most machines, there is no other.
    pub(crate) unnamed: RequestHistory,
    named: HashMap<Arc<str>, RequestHistory>,
}

impl OwnedHistory {
    /// The number of requests of all owners.
    pub(crate) fn len(&self) -> usize {
        self.unnamed.len() + self.named_len()
    }

    fn named_len(&self) -> usize {
        self.named.values().map(RequestHistory::len).sum()
    }

    /// Records a request of an owner, see [`RequestHistory::record`]. If named owners have too many requests together, the one
    /// with the most loses its history.
    pub(crate) fn record(&mut self, owner: &str, source: &str, key: &str, terms: &[String]) {
        if owner.is_empty() {
            self.unnamed.record(source, key, terms);
            return;
        }
        if let Some(history) = self.named.get_mut(owner) {
            history.record(source, key, terms);
        } else {
            let mut history = RequestHistory::default();
            history.record(source, key, terms);
            self.named.insert(owner.into(), history);
        }
        if self.named_len() > MAX_PAST_REQUESTS {
            let largest = self.named.iter().max_by_key(|(name, history)| (history.len(), Arc::clone(name)));
            if let Some(name) = largest.map(|(name, _)| Arc::clone(name)) {
                self.named.remove(&name);
            }
        }
    }

    /// See [`RequestHistory::similar_tools`].
    pub(crate) fn similar_tools(
        &self,
        owner: &str,
        request: &str,
        find: impl Fn(&str, &str) -> Option<DocumentId>,
    ) -> Vec<(DocumentId, f32)> {
        let history = if owner.is_empty() { Some(&self.unnamed) } else { self.named.get(owner) };
        history.map(|history| history.similar_tools(request, find)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::request_terms;

    fn record(history: &mut OwnedHistory, owner: &str, key: &str, request: &str) {
        history.record(owner, "s", key, &request_terms(request));
    }

    fn similar(history: &OwnedHistory, owner: &str, request: &str) -> Vec<(DocumentId, f32)> {
        history.similar_tools(owner, request, |_, _| Some(7))
    }

    #[test]
    fn requests_of_one_owner_are_unknown_to_others() {
        let mut history = OwnedHistory::default();
        record(&mut history, "ada", "t", "book the zebra crossing");
        assert_eq!(similar(&history, "ada", "book a zebra").len(), 1);
        for other in ["", "eve"] {
            assert_eq!(similar(&history, other, "book a zebra"), []);
        }
        record(&mut history, "", "t", "feed the heron");
        assert_eq!(similar(&history, "", "feed a heron").len(), 1);
        assert_eq!(similar(&history, "ada", "feed a heron"), []);
        assert_eq!(history.len(), 2);
    }

    #[test]
    fn many_requests_of_one_owner_do_not_cost_others_theirs() {
        let mut history = OwnedHistory::default();
        record(&mut history, "", "t", "of the operator");
        record(&mut history, "quiet", "t", "one request");
        // A tool keeps 30 requests, so that many tools are needed.
        for number in 0..MAX_PAST_REQUESTS + 10 {
            record(&mut history, "busy", &format!("tool{number}"), "the same request");
        }
        assert_eq!(similar(&history, "quiet", "one request").len(), 1);
        assert_eq!(similar(&history, "", "of the operator").len(), 1);
        assert!(history.len() < MAX_PAST_REQUESTS / 2, "{}", history.len());
    }
}
