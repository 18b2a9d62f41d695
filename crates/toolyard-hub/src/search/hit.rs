//! What a search finds, and why.

use std::{collections::HashSet, sync::Arc};

use super::{
    index::{Document, SearchIndex},
    pick::Picked,
    query::{Query, Via},
};

/// So many of the best tools are looked at closely.
const POOL: usize = 100;

/// One tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its server.
    pub server: Arc<str>,
    /// What it is known by there.
    pub key: Arc<str>,
    /// How well it fits; only comparable within one search.
    pub score: f32,
    /// The same tool on other servers.
    pub same: Vec<(Arc<str>, Arc<str>)>,
    /// What past requests like this one add to the score; 0 where it was never used for such.
    pub history: f32,
    /// The words of the request that led to it, the telling ones first.
    pub matched: Vec<Matched>,
}

/// A word of the request that a tool has.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// The word of the request.
    pub word: String,
    /// The words of the tool it matches, as terms.
    pub terms: Vec<Arc<str>>,
    /// How it leads to the tool.
    pub via: Via,
    /// What it adds to the score.
    pub score: f32,
}

impl SearchIndex {
    /// The tools that a request is about, the best first.
    pub fn search(&self, request: &str, limit: usize) -> Vec<Hit> {
        self.find(&Query::read(self, request), limit)
    }

    /// The tools for a task of several steps: what each step finds, in turn. A step such as "save it" says little, so
    /// the words of the whole task stand behind its own.
    pub fn search_steps<'a>(
        &self,
        task: &str,
        steps: impl IntoIterator<Item = &'a str>,
        limit: usize,
    ) -> Vec<Hit> {
        let task = Query::read(self, task);
        let search = |step: &str| self.find(&Query::read(self, step).within(&task), limit);
        in_turn(steps.into_iter().map(search).collect(), limit)
    }

    fn find(&self, query: &Query, limit: usize) -> Vec<Hit> {
        let pool = self.best(query, POOL.max(limit.saturating_mul(2)));
        let picked = self.pick(query, &pool, limit);
        picked.iter().filter_map(|picked| self.hit(query, picked)).collect()
    }

    fn hit(&self, query: &Query, picked: &Picked) -> Option<Hit> {
        let document = self.document(picked.document)?;
        let known_by = |document: &Document| (Arc::clone(&document.server), Arc::clone(&document.key));
        let (server, key) = known_by(document);
        let mut matched: Vec<Matched> = Vec::new();
        for slot in &query.slots {
            if let Some((score, alternative)) = self.best_alternative(slot, document) {
                let text = |term: &_| self.terms.get(*term).map(|term| Arc::clone(&term.text));
                let terms = alternative.terms.iter().filter_map(text).collect();
                matched.push(Matched { word: slot.word.clone(), terms, via: alternative.via, score });
            }
        }
        matched.sort_by(|one, other| other.score.total_cmp(&one.score));
        let same = picked.same.iter().filter_map(|number| self.document(*number)).map(known_by).collect();
        Some(Hit { server, key, score: picked.score, same, history: picked.history, matched })
    }
}

/// The first of every list, then the next of every list that is not there yet, and so on.
fn in_turn(lists: Vec<Vec<Hit>>, limit: usize) -> Vec<Hit> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut seen = HashSet::new();
    let mut hits = Vec::new();
    loop {
        let before = hits.len();
        for list in &mut lists {
            hits.extend(list.find(|hit| seen.insert((Arc::clone(&hit.server), Arc::clone(&hit.key)))));
        }
        if hits.len() == before || hits.len() >= limit {
            break;
        }
    }
    hits.truncate(limit);
    hits
}
