//! Floors: metrics that the first engine must reach.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::results::Report;

/// Floors by key of the row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// Floors by key of the row.
    pub rows: BTreeMap<String, Floor>,
}

/// The floor of one row, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Minimum recall@10.
    pub recall_at_10: f64,
    /// Minimum NDCG@10.
    pub ndcg_at_10: f64,
}

/// A row below its floor.
#[derive(Debug, Clone, PartialEq)]
pub struct FloorViolation {
    /// Key of the row.
    pub key: String,
    /// Its floor.
    pub floor: Floor,
    /// Measured recall@10 and NDCG@10; `None` if the row was not measured.
    pub measured: Option<(f64, f64)>,
}

impl fmt::Display for FloorViolation {
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

/// Values are printed with one decimal; a value that prints like its floor reaches it.
const ROUNDING: f64 = 0.05;

/// The rows in which the first engine is below its floor. Rows that were not measured count as well.
pub fn floor_violations(floors: &Floors, report: &Report) -> Vec<FloorViolation> {
    let measured_values = |key: &str| {
        let row = report.rows.iter().find(|row| row.key == key)?;
        let figures = row.figures.get(report.engines.first()?)?;
        Some((figures.recall_at_10, figures.ndcg_at_10))
    };
    let is_reached = |floor: &Floor, (recall, ndcg): (f64, f64)| {
        recall + ROUNDING >= floor.recall_at_10 && ndcg + ROUNDING >= floor.ndcg_at_10
    };
    floors
        .rows
        .iter()
        .map(|(key, floor)| FloorViolation {
            key: key.clone(),
            floor: *floor,
            measured: measured_values(key),
        })
        .filter(|row| !row.measured.is_some_and(|measured| is_reached(&row.floor, measured)))
        .collect()
}
