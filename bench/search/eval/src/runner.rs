//! Runs every engine on every query and collects the metrics.

use std::{collections::BTreeMap, time::Instant};

use crate::{
    dataset::{
        split::Split,
        suite::{EvalQuery, HistoryTest, MAX_PAST_USES, PER_STEP, QueryGroup, QueryInput, Suite},
    },
    engine::{Engine, Retriever},
    metrics::{MeanMetrics, QueryMetrics},
    report::results::{Curve, Point, Report, Row, row_key},
    tokens::TokenCounter,
};

/// Length of the evaluated result lists.
const TOP_K: usize = 10;
/// Number of points of a curve.
const CURVE_LENGTH: usize = 50;

/// Options of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationOptions {
    /// The half that the suites hold.
    pub split: Split,
    /// How tokens are counted.
    pub tokens: TokenCounter,
    /// Whether to compute curves for a plot.
    pub curves: bool,
}

/// Evaluates all engines on all suites; calls `progress` before each.
pub fn evaluate(
    suites: &[Suite],
    engines: &[Engine<'_>],
    options: &EvaluationOptions,
    progress: &mut dyn FnMut(&str),
) -> Report {
    let mut report = Report {
        split: options.split,
        tokens: options.tokens.method.to_owned(),
        engines: engines.iter().map(|engine| engine.name.to_owned()).collect(),
        rows: Vec::new(),
        curves: Vec::new(),
    };
    for suite in suites {
        let tool_tokens = options.tokens.of_tools(&suite.tools);
        let engine_results: Vec<EngineResult> = engines
            .iter()
            .map(|engine| {
                progress(&format!("{}: {}", suite.name, engine.name));
                measure(suite, engine, &tool_tokens, options.curves)
            })
            .collect();
        collect(suite, &tool_tokens, &engine_results, &mut report);
    }
    report
}

/// Results of one engine on one suite.
struct EngineResult {
    engine: String,
    groups: Vec<Option<MeanMetrics>>,
    curves: Vec<Option<Vec<Point>>>,
    history: Option<HistoryMetrics>,
}

/// Metrics after past requests; `multi_tool` covers only queries that need several tools.
struct HistoryMetrics {
    after: Option<MeanMetrics>,
    multi_tool_before: Option<MeanMetrics>,
    multi_tool_after: Option<MeanMetrics>,
}

fn measure(suite: &Suite, engine: &Engine<'_>, tool_tokens: &[usize], curves: bool) -> EngineResult {
    let retriever = (engine.build)(&suite.tools);
    let figures =
        |group: &QueryGroup| MeanMetrics::of(&run_queries(retriever.as_ref(), &group.queries, tool_tokens));
    // No curves per step: the length of interleaved lists depends on the number of steps.
    let has_curve = |group: &QueryGroup| curves && group.set == suite.name && group.mode != PER_STEP;
    let curve =
        |group: &QueryGroup| has_curve(group).then(|| curve(retriever.as_ref(), &group.queries, tool_tokens));
    let history = |history| measure_history(suite, engine, retriever.as_ref(), history, tool_tokens);
    EngineResult {
        engine: engine.name.to_owned(),
        groups: suite.groups.iter().map(figures).collect(),
        curves: suite.groups.iter().map(curve).collect(),
        history: suite.history.as_ref().and_then(history),
    }
}

/// Measures again after past requests; `None` for an engine that does not learn from them.
fn measure_history(
    suite: &Suite,
    engine: &Engine<'_>,
    before: &dyn Retriever,
    history: &HistoryTest,
    tool_tokens: &[usize],
) -> Option<HistoryMetrics> {
    let mut retriever = (engine.build)(&suite.tools);
    let learns = history.past_requests.iter().fold(false, |learns, (tool, request)| {
        // Not short-circuited: every request must be recorded.
        retriever.record_use(*tool, request) || learns
    });
    if !learns {
        return None;
    }
    let multi_tool = |results: &[QueryMetrics]| {
        let pairs = history.queries.iter().zip(results);
        MeanMetrics::of(
            pairs.filter(|(query, _)| query.judgements.needs_several_tools()).map(|(_, result)| result),
        )
    };
    let after = run_queries(retriever.as_ref(), &history.queries, tool_tokens);
    let multi_tool_before = multi_tool(&run_queries(before, &history.queries, tool_tokens));
    Some(HistoryMetrics {
        after: MeanMetrics::of(&after),
        multi_tool_before,
        multi_tool_after: multi_tool(&after),
    })
}

fn run_queries(retriever: &dyn Retriever, queries: &[EvalQuery], tool_tokens: &[usize]) -> Vec<QueryMetrics> {
    queries
        .iter()
        .map(|query| {
            let start = Instant::now();
            let list = run_query(retriever, &query.input, TOP_K);
            let latency = start.elapsed();
            let tokens = list.iter().take(TOP_K).filter_map(|tool| tool_tokens.get(*tool)).sum();
            QueryMetrics::of(&query.judgements, &list, tokens, latency)
        })
        .collect()
}

fn run_query(retriever: &dyn Retriever, input: &QueryInput, limit: usize) -> Vec<usize> {
    match input {
        QueryInput::Text(text) => retriever.search(text, limit),
        QueryInput::Steps(task, steps) => retriever.search_steps(task, steps, limit),
    }
}

/// Mean tokens and mean recall of the first 1, 2, … tools.
fn curve(retriever: &dyn Retriever, queries: &[EvalQuery], tool_tokens: &[usize]) -> Vec<Point> {
    let mut points = vec![Point { tokens: 0.0, recall: 0.0 }; CURVE_LENGTH];
    for query in queries {
        let list = run_query(retriever, &query.input, CURVE_LENGTH);
        let gains = query.judgements.gains(&list);
        let mut tokens = 0;
        for (position, point) in points.iter_mut().enumerate() {
            tokens += list.get(position).and_then(|tool| tool_tokens.get(*tool)).unwrap_or(&0);
            point.tokens += tokens as f64 / queries.len() as f64;
            point.recall += 100.0 * query.judgements.recall(&gains, position + 1) / queries.len() as f64;
        }
    }
    points
}

/// Adds the results of all engines on a suite to the report.
fn collect(suite: &Suite, tool_tokens: &[usize], engine_results: &[EngineResult], report: &mut Report) {
    let catalogue_tokens = tool_tokens.iter().sum();
    let mut add = |set: &str, language: Option<&str>, mode: &str, figures: BTreeMap<String, MeanMetrics>| {
        if !figures.is_empty() {
            report.rows.push(Row {
                key: row_key(set, language, mode),
                set: set.to_owned(),
                language: language.map(str::to_owned),
                mode: mode.to_owned(),
                tools: suite.tools.len(),
                catalogue_tokens,
                figures,
            });
        }
    };
    for (at, group) in suite.groups.iter().enumerate() {
        let figures = by_engine(engine_results, |engine_result| engine_result.groups.get(at)?.clone());
        add(&group.set, group.language.as_deref(), &group.mode, figures);
        let points = by_engine(engine_results, |engine_result| engine_result.curves.get(at)?.clone());
        if !points.is_empty() {
            let key = row_key(&group.set, group.language.as_deref(), &group.mode);
            report.curves.push(Curve { key, catalogue_tokens, points });
        }
    }
    let after = format!("after {MAX_PAST_USES} past uses");
    let history = |choose: fn(&HistoryMetrics) -> &Option<MeanMetrics>| {
        by_engine(engine_results, |engine_result| choose(engine_result.history.as_ref()?).clone())
    };
    add(&suite.name, None, &after, history(|history| &history.after));
    add(&suite.name, None, "several tools", history(|history| &history.multi_tool_before));
    add(&suite.name, None, &format!("several tools {after}"), history(|history| &history.multi_tool_after));
}

/// The selected values by engine, without engines that have none.
fn by_engine<T>(
    engine_results: &[EngineResult],
    choose: impl Fn(&EngineResult) -> Option<T>,
) -> BTreeMap<String, T> {
    engine_results
        .iter()
        .filter_map(|engine_result| Some((engine_result.engine.clone(), choose(engine_result)?)))
        .collect()
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
