use std::collections::HashMap;

use super::*;
use crate::{
    dataset::{
        records::{SourceFile, ToolRecord},
        suite::TestSet,
    },
    report::{
        floors::{Floors, floor_violations},
        plot, table,
    },
};

/// Finds only the tool that was recorded last for the first word of a text.
#[derive(Default)]
struct EchoRetriever {
    tool_by_word: HashMap<String, usize>,
}

impl Retriever for EchoRetriever {
    fn search(&self, text: &str, _limit: usize) -> Vec<usize> {
        let first = text.split(' ').next().unwrap_or_default();
        self.tool_by_word.get(first).copied().into_iter().collect()
    }

    fn record_use(&mut self, tool: usize, request: &str) -> bool {
        self.tool_by_word.insert(request.split(' ').next().unwrap_or_default().to_owned(), tool);
        true
    }
}

fn suite() -> Suite {
    let source = |name: &str, lines: Vec<String>| SourceFile { file: name.into(), text: lines.join("\n") };
    let tools = ["read", "write"].map(|name| format!(r#"{{"id":"{name}","name":"{name}"}}"#));
    let query = |at: usize| {
        let (half, tools) = (
            if at.is_multiple_of(2) { "dev" } else { "test" },
            if at < 8 { r#""read""# } else { r#""read","write""# },
        );
        format!(r#"{{"id":"q{at}","text":"lies {at}","relevant":[{tools}],"split":"{half}"}}"#)
    };
    let set = TestSet::read(
        "tiny".to_owned(),
        &source("tools.jsonl", tools.to_vec()),
        source("queries.jsonl", (0..10).map(query).collect()),
    );
    set.unwrap().suite(Split::Test).unwrap()
}

fn engines<'a>() -> Vec<Engine<'a>> {
    vec![Engine::new("parrot", |_: &[ToolRecord]| EchoRetriever::default()), Engine::baseline()]
}

fn report() -> Report {
    let options = EvaluationOptions { split: Split::Test, tokens: TokenCounter::ESTIMATE, curves: true };
    let mut stages = Vec::new();
    let mut suite = suite();
    suite.groups.retain(|group| !group.queries.is_empty());
    let report =
        evaluate(&[suite], &engines(), &options, &mut |progress_line| stages.push(progress_line.to_owned()));
    assert_eq!(stages, ["tiny: parrot", "tiny: baseline"]);
    report
}

#[test]
fn history_is_measured_for_engines_that_learn() {
    let report = report();
    let recall = |row: &Row, engine: &str| row.figures.get(engine).map(|figures| figures.recall_at_10);
    let rows: Vec<(&str, Option<f64>, Option<f64>)> = report
        .rows
        .iter()
        .map(|row| (row.key.as_str(), recall(row, "parrot"), recall(row, "baseline")))
        .collect();
    // The last tool recorded for "lies" is `write`.
    assert_eq!(
        rows,
        [
            ("tiny", Some(0.0), Some(0.0)),
            ("tiny, after 30 past uses", Some(10.0), None),
            ("tiny, several tools", Some(0.0), None),
            ("tiny, several tools after 30 past uses", Some(50.0), None),
        ]
    );
}

#[test]
fn rows_below_their_floor_are_reported() {
    let floors: Floors = serde_json::from_str(
        r#"{"rows": {
            "tiny": {"recall_at_10": 0.0, "ndcg_at_10": 0.0},
            "tiny, after 30 past uses": {"recall_at_10": 10.04, "ndcg_at_10": 50.0},
            "vanished": {"recall_at_10": 1.0, "ndcg_at_10": 1.0}
        }}"#,
    )
    .unwrap();
    let violations: Vec<String> =
        floor_violations(&floors, &report()).iter().map(ToString::to_string).collect();
    assert_eq!(
        violations,
        [
            "tiny, after 30 past uses: 10.0 / 12.3, must be 10.0 / 50.0",
            "vanished: not measured, must be 1.0 / 1.0",
        ]
    );
    assert!(serde_json::from_str::<Floors>(r#"{"rows": {"a": {"recall": 1}}}"#).is_err());
}

#[test]
fn engines_of_a_row_are_listed_below_each_other() {
    let lines: Vec<String> = table::quality(&report()).iter().take(2).map(|line| line.join("|")).collect();
    assert_eq!(
        lines,
        [
            "tiny|whole text|      5|  0.0|  0.0|     0.0|      0.0|    0.0|   0.0|parrot",
            "|||  0.0|  0.0|     0.0|      0.0|    0.0|   0.0|baseline",
        ]
    );
    assert_eq!(table::costs(&report()).len(), 5);
}

#[test]
fn curves_never_fall() {
    let report = report();
    for points in report.curves.iter().flat_map(|curve| curve.points.values()) {
        assert_eq!(points.len(), CURVE_LENGTH);
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].recall <= pair[1].recall && pair[0].tokens <= pair[1].tokens)
        );
    }
    assert!(plot::svg(&report).contains("<polyline"));
}
