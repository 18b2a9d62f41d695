//! How good a list of tools is for one query, and for many.

use std::{collections::HashMap, time::Duration};

use serde::Serialize;

/// What a query wants to see in its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The need that a tool meets.
    need_of: HashMap<usize, usize>,
    needs: usize,
    enough: Enough,
}

/// When a query is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enough {
    /// Every relevant tool is needed.
    All,
    /// Any accepted tool will do.
    One,
}

impl Wanted {
    /// Each relevant tool is one need; a tool of a group of alternatives meets the need of the relevant one in it.
    pub fn new(relevant: &[usize], alternatives: &[Vec<usize>], enough: Enough) -> Self {
        let mut need_of = HashMap::new();
        for tool in relevant {
            let next = need_of.len();
            need_of.entry(*tool).or_insert(next);
        }
        let needs = need_of.len();
        for group in alternatives {
            let need = relevant.iter().find(|tool| group.contains(tool)).and_then(|tool| need_of.get(tool));
            if let Some(need) = need.copied() {
                group.iter().for_each(|tool| {
                    need_of.entry(*tool).or_insert(need);
                });
            }
        }
        Self { need_of, needs, enough }
    }

    /// How many different tools it takes.
    pub fn needs(&self) -> usize {
        self.needs
    }

    /// Whether it takes several tools together.
    pub fn takes_several(&self) -> bool {
        self.enough == Enough::All && self.needs > 1
    }

    /// For each place of the list, whether it meets a need that no earlier place met.
    pub fn gains(&self, list: &[usize]) -> Vec<bool> {
        let mut met = vec![false; self.needs];
        let gain = |tool: &usize| {
            let need = self.need_of.get(tool).and_then(|need| met.get_mut(*need));
            need.is_some_and(|met| !std::mem::replace(met, true))
        };
        list.iter().map(gain).collect()
    }

    /// The share of the needs that the first `places` meet; all or nothing where one tool is enough.
    pub fn recall(&self, gains: &[bool], places: usize) -> f64 {
        let found = gains.iter().take(places).filter(|gain| **gain).count();
        match self.enough {
            Enough::One => f64::from(u8::from(found > 0)),
            Enough::All if self.needs == 0 => 0.0,
            Enough::All => found as f64 / self.needs as f64,
        }
    }

    /// Normalized discounted cumulative gain: what is found counts for less further down, against the best list there
    /// could be. Every accepted tool counts, even where one is enough.
    pub fn ndcg(&self, gains: &[bool], places: usize) -> f64 {
        let worth = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let ideal: f64 = (0..self.needs.min(places)).map(worth).sum();
        let gained = gains.iter().take(places).enumerate().filter(|(_, gain)| **gain);
        if ideal > 0.0 {
            gained.map(|(place, _)| worth(place)).fold(0.0, |sum, more| sum + more) / ideal
        } else {
            0.0
        }
    }
}

/// What came of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// 1 if the first tool is one of those wanted.
    pub hit_at_1: f64,
    /// Share of what is wanted in the first five.
    pub recall_at_5: f64,
    /// Share of what is wanted in the first ten.
    pub recall_at_10: f64,
    /// How far up it stands.
    pub ndcg_at_10: f64,
    /// 1 if nothing is missing in the first ten.
    pub all_found_at_10: f64,
    /// What the definitions of the first ten cost a model.
    pub tokens: usize,
    /// How long the search took.
    pub took: Duration,
}

impl Outcome {
    /// Judges a list.
    pub fn of(wanted: &Wanted, list: &[usize], tokens: usize, took: Duration) -> Self {
        let gains = wanted.gains(list);
        let recall_at_10 = wanted.recall(&gains, 10);
        Self {
            hit_at_1: f64::from(u8::from(gains.first().is_some_and(|gain| *gain))),
            recall_at_5: wanted.recall(&gains, 5),
            recall_at_10,
            ndcg_at_10: wanted.ndcg(&gains, 10),
            all_found_at_10: f64::from(u8::from(recall_at_10 >= 1.0)),
            tokens,
            took,
        }
    }
}

/// What came of many queries: means in points of 100, each query counting the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// How many queries.
    pub queries: usize,
    /// How often the first tool was one of those wanted.
    pub hit_at_1: f64,
    /// Mean recall in the first five.
    pub recall_at_5: f64,
    /// Mean recall in the first ten.
    pub recall_at_10: f64,
    /// Mean NDCG of the first ten.
    pub ndcg_at_10: f64,
    /// How often nothing was missing in the first ten.
    pub all_found_at_10: f64,
    /// Mean tokens of the first ten definitions.
    pub tokens: f64,
    /// Half of the searches took no longer, in microseconds.
    pub median_us: f64,
    /// 99 of 100 searches took no longer, in microseconds.
    pub p99_us: f64,
}

impl Figures {
    /// The means; none of nothing.
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<Self> {
        let outcomes: Vec<&Outcome> = outcomes.into_iter().collect();
        if outcomes.is_empty() {
            return None;
        }
        let mean = |value: fn(&Outcome) -> f64| {
            outcomes.iter().map(|outcome| value(outcome)).sum::<f64>() / outcomes.len() as f64
        };
        let mut times: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
        times.sort_unstable();
        Some(Self {
            queries: outcomes.len(),
            hit_at_1: 100.0 * mean(|outcome| outcome.hit_at_1),
            recall_at_5: 100.0 * mean(|outcome| outcome.recall_at_5),
            recall_at_10: 100.0 * mean(|outcome| outcome.recall_at_10),
            ndcg_at_10: 100.0 * mean(|outcome| outcome.ndcg_at_10),
            all_found_at_10: 100.0 * mean(|outcome| outcome.all_found_at_10),
            tokens: mean(|outcome| outcome.tokens as f64),
            median_us: percentile(&times, 50),
            p99_us: percentile(&times, 99),
        })
    }
}

/// The smallest of the sorted times that this share of all does not exceed, in microseconds.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
