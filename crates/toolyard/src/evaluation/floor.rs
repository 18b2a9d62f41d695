//! Floors: figures that a search once reached and must not fall below.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::report::Report;

/// What must be reached, for each row by its key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// The rows.
    pub rows: BTreeMap<String, Floor>,
}

/// What one row must reach, in points of 100.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// At least this recall in the first ten.
    pub recall_at_10: f64,
    /// At least this NDCG of the first ten.
    pub ndcg_at_10: f64,
}

/// A row that does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Below {
    /// The row.
    pub key: String,
    /// What was to be reached.
    pub floor: Floor,
    /// Recall and NDCG as measured; nothing if the row was not measured.
    pub measured: Option<(f64, f64)>,
}

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Floor { recall_at_10, ndcg_at_10 } = self.floor;
        match self.measured {
            Some((recall, ndcg)) => {
                write!(
                    f,
                    "{}: {recall:.1} / {ndcg:.1}, must be {recall_at_10:.1} / {ndcg_at_10:.1}",
                    self.key
                )
            }
            None => write!(f, "{}: not measured, must be {recall_at_10:.1} / {ndcg_at_10:.1}", self.key),
        }
    }
}

/// Figures are printed with one decimal: what prints like the floor is not below it.
const ROUNDING: f64 = 0.05;

/// The rows in which the first engine does not reach its floor. A row that was not measured guards nothing, so it counts.
pub fn below(floors: &Floors, report: &Report) -> Vec<Below> {
    let of_row = |key: &str| {
        let row = report.rows.iter().find(|row| row.key == key)?;
        let figures = row.figures.get(report.engines.first()?)?;
        Some((figures.recall_at_10, figures.ndcg_at_10))
    };
    let holds = |floor: &Floor, (recall, ndcg): (f64, f64)| {
        recall + ROUNDING >= floor.recall_at_10 && ndcg + ROUNDING >= floor.ndcg_at_10
    };
    floors
        .rows
        .iter()
        .map(|(key, floor)| Below { key: key.clone(), floor: *floor, measured: of_row(key) })
        .filter(|row| !row.measured.is_some_and(|measured| holds(&row.floor, measured)))
        .collect()
}
