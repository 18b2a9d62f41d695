//! Picks from the best tools those to show: exact names first, phrases and whole sentences counted, and no second tool
//! for what a first one covers already.

use super::{
    index::{Document, SearchIndex},
    query::{Alternative, Query, Slot},
    score::Scored,
    terms::DocumentId,
};

/// What two words that stand together in request and definition add, as a part of their weight.
const NEIGHBOURS: f32 = 0.5;
/// What the best sentence of the request adds, as a part of its score.
const SENTENCE: f32 = 0.49;
/// How much less a word counts for further tools when one covers it wholly.
const COVERED: f32 = 0.11;
/// What past requests add at most, as a part of the best score without them.
const HISTORY: f32 = 1.0;
/// Tools of one name that share so much of their terms are one tool.
const SAME: f32 = 0.5;

/// One tool that was picked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picked {
    pub(crate) document: DocumentId,
    pub(crate) score: f32,
    /// The part of the score that past requests are.
    pub(crate) history: f32,
    /// The same tool elsewhere.
    pub(crate) same: Vec<DocumentId>,
}

/// What each word of the request says about one tool.
struct Candidate<'a> {
    number: DocumentId,
    document: &'a Document,
    /// By slot; where there is a past, what that says comes last, so that it too counts less once it is covered.
    shares: Vec<f32>,
    /// What is not a slot's: phrases, the best sentence.
    extra: f32,
    named: bool,
    taken: bool,
}

impl SearchIndex {
    /// Picks at most `limit` of the tools in `pool`, the best first.
    pub(crate) fn pick(&self, query: &Query, pool: &[Scored], limit: usize) -> Vec<Picked> {
        let mut candidates = self.candidates(query, pool);
        #[cfg(feature = "embedding")]
        self.add_meaning(query, &mut candidates);
        add_history(query, &mut candidates);
        let parts = query.slots.len() + usize::from(!query.past.is_empty());
        let most: Vec<f32> = (0..parts)
            .map(|slot| {
                candidates.iter().filter_map(|one| one.shares.get(slot)).copied().fold(f32::EPSILON, f32::max)
            })
            .collect();
        let mut open = vec![1.0f32; parts];
        let mut picked: Vec<Picked> = Vec::new();
        while picked.len() < limit {
            let Some((at, score)) = self.next(&candidates, &open) else { break };
            let Some(candidate) = candidates.get_mut(at) else { break };
            candidate.taken = true;
            if let Some(first) =
                picked.iter_mut().find(|first| self.are_same(first.document, candidate.document))
            {
                first.same.push(candidate.number);
                continue;
            }
            let history = candidate.shares.iter().zip(&open).nth(query.slots.len());
            let history = history.map_or(0.0, |(share, open)| share * open);
            for ((open, share), most) in open.iter_mut().zip(&candidate.shares).zip(&most) {
                *open *= 1.0 - COVERED * share / most;
            }
            picked.push(Picked { document: candidate.number, score, history, same: Vec::new() });
        }
        picked
    }

    fn candidates(&self, query: &Query, pool: &[Scored]) -> Vec<Candidate<'_>> {
        let mut numbers: Vec<DocumentId> =
            query.names.iter().flat_map(|name| self.named(name)).copied().collect();
        numbers.sort_unstable_by(|one, other| self.compare((*one, 0.0), (*other, 0.0)));
        numbers.truncate(pool.len().max(16));
        let named = numbers.len();
        numbers.extend(pool.iter().map(|(number, _)| *number));
        let only_past = query.past.iter().map(|(number, _)| *number);
        let only_past: Vec<_> =
            only_past.filter(|past| pool.iter().all(|(number, _)| number != past)).collect();
        numbers.extend(only_past);
        #[cfg(feature = "embedding")]
        {
            let known: std::collections::HashSet<DocumentId> = numbers.iter().copied().collect();
            numbers.extend(query.near.iter().map(|(number, _)| *number).filter(|near| !known.contains(near)));
        }
        let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(numbers.len());
        for (at, number) in numbers.into_iter().enumerate() {
            let Some(document) = self.document(number) else { continue };
            if at >= named && candidates.iter().take(named).any(|known| known.number == number) {
                continue;
            }
            let shares: Vec<f32> = query.slots.iter().map(|slot| self.share(slot, document)).collect();
            let extra = self.neighbours(query, document) + best_sentence(query, &shares);
            let named = at < named;
            candidates.push(Candidate { number, document, shares, extra, named, taken: false });
        }
        candidates
    }

    /// Adds how near a tool's meaning is to the request's, as far as the gate lets it.
    #[cfg(feature = "embedding")]
    fn add_meaning(&self, query: &Query, candidates: &mut [Candidate<'_>]) {
        let best = candidates.iter().max_by(|one, other| one.text().total_cmp(&other.text()));
        let Some(best) = best.filter(|_| !query.near.is_empty()) else { return };
        let text = best.text();
        let gate = self.gate(query, (text > 0.0).then_some(best.document));
        let most = gate * if text > 0.0 { text } else { 1.0 };
        let near: std::collections::HashMap<_, _> = query.near.iter().copied().collect();
        for candidate in candidates {
            candidate.extra += most * near.get(&candidate.number).copied().unwrap_or(0.0);
        }
    }

    /// What a word of the request says about a tool, by its best alternative.
    pub(crate) fn share(&self, slot: &Slot, document: &Document) -> f32 {
        self.best_alternative(slot, document).map_or(0.0, |(share, _)| share)
    }

    /// What a word says about a tool, and how it leads there.
    pub(crate) fn best_alternative<'a>(
        &self,
        slot: &'a Slot,
        document: &Document,
    ) -> Option<(f32, &'a Alternative)> {
        let shares = slot.alternatives.iter().map(|alternative| {
            let of_term = |term: &_| document.impact(*term).map_or(0.0, |impact| impact * self.weight(*term));
            let sum: f32 = alternative.terms.iter().map(of_term).sum();
            (sum * alternative.share() * slot.weight, alternative)
        });
        shares.filter(|(share, _)| *share > 0.0).max_by(|one, other| one.0.total_cmp(&other.0))
    }

    fn neighbours(&self, query: &Query, document: &Document) -> f32 {
        let found = query.neighbours.iter().filter(|two| document.pairs.binary_search(&two.hash).is_ok());
        found.map(|two| two.terms.iter().map(|term| self.weight(*term)).sum::<f32>() * NEIGHBOURS / 2.0).sum()
    }

    /// The best candidate that is left, given how much each word still counts.
    fn next(&self, candidates: &[Candidate<'_>], open: &[f32]) -> Option<(usize, f32)> {
        let left = candidates.iter().enumerate().filter(|(_, candidate)| !candidate.taken);
        let scored = left.map(|(at, candidate)| {
            let sum: f32 = candidate.shares.iter().zip(open).map(|(share, open)| share * open).sum();
            (at, candidate, sum + candidate.extra)
        });
        let best = scored.min_by(|(_, one, one_score), (_, other, other_score)| {
            other
                .named
                .cmp(&one.named)
                .then_with(|| self.compare((one.number, *one_score), (other.number, *other_score)))
        });
        best.map(|(at, _, score)| (at, score))
    }

    /// Whether two tools of one name are the same tool: copies of one server, or versions of one definition.
    fn are_same(&self, one: DocumentId, other: &Document) -> bool {
        let Some(one) = self.document(one) else { return false };
        one.name == other.name && shared_part(one, other) >= SAME
    }
}

/// Adds what past requests say: at most a fixed part of what the words of the request say about the best tool.
fn add_history(query: &Query, candidates: &mut [Candidate<'_>]) {
    if query.past.is_empty() {
        return;
    }
    let best = candidates.iter().map(Candidate::text).fold(0.0, f32::max);
    // Where no word says anything, the past decides alone.
    let most = if best > 0.0 { HISTORY * best } else { HISTORY };
    for candidate in candidates {
        let past = query.past.iter().find(|(number, _)| *number == candidate.number);
        candidate.shares.push(past.map_or(0.0, |(_, score)| most * score));
    }
}

impl Candidate<'_> {
    /// What the words of the request say about it.
    fn text(&self) -> f32 {
        self.shares.iter().sum::<f32>() + self.extra
    }
}

/// Which part of the terms of two tools both have.
#[expect(clippy::cast_precision_loss, reason = "no definition has so many terms")]
fn shared_part(one: &Document, other: &Document) -> f32 {
    let both = one.terms.iter().filter(|(term, _)| other.impact(*term).is_some()).count();
    let any = one.terms.len() + other.terms.len() - both;
    if any == 0 { 1.0 } else { both as f32 / any as f32 }
}

/// Whoever asks for two things wants the tool that answers one of them well.
fn best_sentence(query: &Query, shares: &[f32]) -> f32 {
    if query.sentences < 2 {
        return 0.0;
    }
    let mut sums = vec![0.0f32; query.sentences];
    for (slot, share) in query.slots.iter().zip(shares) {
        if let Some(sum) = sums.get_mut(slot.sentence) {
            *sum += share;
        }
    }
    SENTENCE * sums.into_iter().fold(0.0, f32::max)
}
