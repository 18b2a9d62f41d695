//! The results of an evaluation as data.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    dataset::{split::Split, suite::WHOLE_TEXT},
    metrics::MeanMetrics,
};

/// Results of one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The evaluated half.
    pub split: Split,
    /// How tokens were counted.
    pub tokens: String,
    /// Names of the engines; the first is checked against floors.
    pub engines: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// Recall against tokens, for a plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// One group of queries over one catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Unique name, used by floors.
    pub key: String,
    /// Name of the test set.
    pub set: String,
    /// Language of the queries, where the set gives it.
    pub language: Option<String>,
    /// Query mode.
    #[serde(rename = "asked")]
    pub mode: String,
    /// Size of the catalogue.
    pub tools: usize,
    /// Tokens of all definitions.
    pub catalogue_tokens: usize,
    /// Metrics by engine.
    pub figures: BTreeMap<String, MeanMetrics>,
}

/// Recall against tokens, by engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Key of the row.
    pub key: String,
    /// Tokens of all definitions.
    pub catalogue_tokens: usize,
    /// Points for the first 1, 2, … tools, by engine.
    pub points: BTreeMap<String, Vec<Point>>,
}

/// Mean tokens and recall of the first tools.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Tokens of their definitions.
    pub tokens: f64,
    /// Recall in percent.
    pub recall: f64,
}

/// The key of a row: the set, and language and mode unless they are the defaults.
pub fn row_key(set: &str, language: Option<&str>, mode: &str) -> String {
    let mode = if mode == WHOLE_TEXT && language.is_none() { None } else { Some(mode) };
    let special: Vec<&str> = language.into_iter().chain(mode).collect();
    if special.is_empty() { set.to_owned() } else { format!("{set}, {}", special.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_plain_names() {
        assert_eq!(row_key("bfcl", None, WHOLE_TEXT), "bfcl");
        assert_eq!(row_key("livemcpbench", None, "per step"), "livemcpbench, per step");
        assert_eq!(row_key("bilingual", Some("zh"), "direct"), "bilingual, zh direct");
        assert_eq!(row_key("bilingual tasks", Some("en"), WHOLE_TEXT), "bilingual tasks, en whole text");
    }
}
