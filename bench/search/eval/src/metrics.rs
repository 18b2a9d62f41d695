//! Retrieval metrics: recall, NDCG and latency of one query, and means over many.

use std::{collections::HashMap, time::Duration};

use serde::Serialize;

/// The relevant tools of a query. Interchangeable tools meet the same need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelevanceJudgements {
    /// Need met by each relevant tool.
    need_of: HashMap<usize, usize>,
    needs: usize,
    criterion: RelevanceCriterion,
}

/// How many of the relevant tools a query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelevanceCriterion {
    /// All.
    All,
    /// Any one.
    Any,
}

impl RelevanceJudgements {
    /// Each relevant tool is one need; its alternatives meet the same need.
    pub fn new(relevant: &[usize], alternatives: &[Vec<usize>], criterion: RelevanceCriterion) -> Self {
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
        Self { need_of, needs, criterion }
    }

    /// Number of needs.
    pub fn needs(&self) -> usize {
        self.needs
    }

    /// Whether the query needs several tools together.
    pub fn needs_several_tools(&self) -> bool {
        self.criterion == RelevanceCriterion::All && self.needs > 1
    }

    /// For each position of a result list, whether it meets a need that no earlier one meets.
    pub fn gains(&self, list: &[usize]) -> Vec<bool> {
        let mut met = vec![false; self.needs];
        let gain = |tool: &usize| {
            let need = self.need_of.get(tool).and_then(|need| met.get_mut(*need));
            need.is_some_and(|met| !std::mem::replace(met, true))
        };
        list.iter().map(gain).collect()
    }

    /// Recall@k: the share of needs met by the first `k`; 0 or 1 where any tool is enough.
    pub fn recall(&self, gains: &[bool], k: usize) -> f64 {
        let found = gains.iter().take(k).filter(|gain| **gain).count();
        match self.criterion {
            RelevanceCriterion::Any => f64::from(u8::from(found > 0)),
            RelevanceCriterion::All if self.needs == 0 => 0.0,
            RelevanceCriterion::All => found as f64 / self.needs as f64,
        }
    }

    /// NDCG@k: normalized discounted cumulative gain. Every relevant tool counts, even where any one is enough.
    pub fn ndcg(&self, gains: &[bool], k: usize) -> f64 {
        let discount = |position: usize| 1.0 / (position as f64 + 2.0).log2();
        let ideal: f64 = (0..self.needs.min(k)).map(discount).sum();
        let gained = gains.iter().take(k).enumerate().filter(|(_, gain)| **gain);
        if ideal > 0.0 {
            gained.map(|(position, _)| discount(position)).fold(0.0, |sum, more| sum + more) / ideal
        } else {
            0.0
        }
    }
}

/// Metrics of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMetrics {
    /// 1 if the first tool is relevant.
    pub hit_at_1: f64,
    /// 1 if one of the first three tools is relevant.
    pub hit_at_3: f64,
    /// Recall@5.
    pub recall_at_5: f64,
    /// Recall@10.
    pub recall_at_10: f64,
    /// NDCG@10.
    pub ndcg_at_10: f64,
    /// 1 if recall@10 is complete.
    pub all_found_at_10: f64,
    /// Tokens of the definitions of the first ten tools.
    pub tokens: usize,
    /// Time of the search.
    pub latency: Duration,
}

impl QueryMetrics {
    /// Evaluates a result list.
    pub fn of(judgements: &RelevanceJudgements, list: &[usize], tokens: usize, latency: Duration) -> Self {
        let gains = judgements.gains(list);
        let recall_at_10 = judgements.recall(&gains, 10);
        Self {
            hit_at_1: f64::from(u8::from(gains.first().is_some_and(|gain| *gain))),
            hit_at_3: f64::from(u8::from(gains.iter().take(3).any(|gain| *gain))),
            recall_at_5: judgements.recall(&gains, 5),
            recall_at_10,
            ndcg_at_10: judgements.ndcg(&gains, 10),
            all_found_at_10: f64::from(u8::from(recall_at_10 >= 1.0)),
            tokens,
            latency,
        }
    }
}

/// Means over queries, in percent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanMetrics {
    /// Number of queries.
    pub queries: usize,
    /// Share of queries whose first tool is relevant.
    pub hit_at_1: f64,
    /// Share of queries with a relevant tool among the first three.
    pub hit_at_3: f64,
    /// Mean recall@5.
    pub recall_at_5: f64,
    /// Mean recall@10.
    pub recall_at_10: f64,
    /// Mean NDCG@10.
    pub ndcg_at_10: f64,
    /// Share of queries with complete recall@10.
    pub all_found_at_10: f64,
    /// Mean tokens of the definitions of the first ten tools.
    pub tokens: f64,
    /// Median search time in microseconds.
    pub median_us: f64,
    /// 99th percentile of the search time in microseconds.
    pub p99_us: f64,
}

impl MeanMetrics {
    /// The means; `None` without queries.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a QueryMetrics>) -> Option<Self> {
        let results: Vec<&QueryMetrics> = results.into_iter().collect();
        if results.is_empty() {
            return None;
        }
        let mean = |value: fn(&QueryMetrics) -> f64| {
            results.iter().map(|result| value(result)).sum::<f64>() / results.len() as f64
        };
        let mut times: Vec<Duration> = results.iter().map(|result| result.latency).collect();
        times.sort_unstable();
        Some(Self {
            queries: results.len(),
            hit_at_1: 100.0 * mean(|result| result.hit_at_1),
            hit_at_3: 100.0 * mean(|result| result.hit_at_3),
            recall_at_5: 100.0 * mean(|result| result.recall_at_5),
            recall_at_10: 100.0 * mean(|result| result.recall_at_10),
            ndcg_at_10: 100.0 * mean(|result| result.ndcg_at_10),
            all_found_at_10: 100.0 * mean(|result| result.all_found_at_10),
            tokens: mean(|result| result.tokens as f64),
            median_us: percentile(&times, 50),
            p99_us: percentile(&times, 99),
        })
    }
}

/// A percentile of sorted times, in microseconds (nearest rank).
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
