//! What came of an evaluation, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{measure::Figures, split::Split, suite::WHOLE_TEXT};

/// All that was measured in one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Which half.
    pub split: Split,
    /// How tokens were counted.
    pub tokens: String,
    /// The engines, ours first.
    pub engines: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// What quality costs, for a plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

/// One kind of question over one catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// By what floors refer to it.
    pub key: String,
    /// The set.
    pub set: String,
    /// The language, where the set says so.
    pub language: Option<String>,
    /// In what manner.
    pub asked: String,
    /// How many tools there were to choose from.
    pub tools: usize,
    /// What all their definitions cost.
    pub catalogue_tokens: usize,
    /// What came of it, for each engine to which it applies.
    pub figures: BTreeMap<String, Figures>,
}

/// What each engine finds for how many tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The row.
    pub key: String,
    /// What the whole catalogue costs.
    pub catalogue_tokens: usize,
    /// For each engine the points for 1, 2, … tools.
    pub points: BTreeMap<String, Vec<Point>>,
}

/// What the first so many tools cost and hold, as means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Tokens of their definitions.
    pub tokens: f64,
    /// Recall in points of 100.
    pub recall: f64,
}

/// The name of a row: the set, and what is special about it.
pub fn key(set: &str, language: Option<&str>, asked: &str) -> String {
    let asked = if asked == WHOLE_TEXT && language.is_none() { None } else { Some(asked) };
    let special: Vec<&str> = language.into_iter().chain(asked).collect();
    if special.is_empty() { set.to_owned() } else { format!("{set}, {}", special.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_plain_names() {
        assert_eq!(key("bfcl", None, WHOLE_TEXT), "bfcl");
        assert_eq!(key("livemcpbench", None, "per step"), "livemcpbench, per step");
        assert_eq!(key("bilingual", Some("zh"), "direct"), "bilingual, zh direct");
        assert_eq!(key("bilingual tasks", Some("en"), WHOLE_TEXT), "bilingual tasks, en whole text");
    }
}
