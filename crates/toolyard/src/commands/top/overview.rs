//! [`Overview`]: what a gateway reports about itself, and its texts. Names come from servers, so that they are sanitized.

use std::collections::BTreeMap;

use serde::Deserialize;
use toolyard_core::group_digits;

use crate::terminal::{fit_line, pluralize, sanitize};

pub(super) const SOURCE_HEADINGS: [&str; 9] =
    ["SOURCE", "STATE", "CALLS/MIN", "FAILED/MIN", "P50", "P95", "IN FLIGHT", "QUEUED", "BREAKER"];
pub(super) const TOOL_HEADINGS: [&str; 5] = ["TOOL", "SOURCE", "CALLS", "FAILED", "MEAN"];
const MAX_NAME_WIDTH: usize = 40;

/// The response of `/api/v1/overview`, as far as it is shown. Fields that another version lacks are empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Overview {
    uptime_ms: u64,
    pub(super) calls_per_minute: Vec<u64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    calls_total: usize,
    failures_total: usize,
    tokens: Tokens,
    cost: Option<f64>,
    runs: Runs,
    servers: BTreeMap<String, usize>,
    sources: Vec<Source>,
    pub(super) top_tools: Vec<Tool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: usize,
    output: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Runs {
    active: usize,
    pending_approvals: Option<usize>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Source {
    source: String,
    kind: String,
    state: Option<String>,
    calls_last_minute: u64,
    failures_last_minute: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    in_flight: u64,
    queued: u64,
    breaker: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tool {
    tool: String,
    source: String,
    calls: usize,
    failures: usize,
    mean_ms: f64,
}

impl Overview {
    /// The numbers of the whole gateway, in two lines.
    pub(super) fn summary(&self) -> [String; 2] {
        let servers: Vec<String> = self
            .servers
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(state, count)| format!("{count} {}", name(state)))
            .collect();
        let servers = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") };
        let (calls, failures) = (group_digits(self.calls_total), group_digits(self.failures_total));
        let (input, output) = (group_digits(self.tokens.input), group_digits(self.tokens.output));
        let cost = self.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.4}"));
        let approvals = self.runs.pending_approvals.unwrap_or_default();
        [
            format!(
                "up {} · calls {calls}, failed {failures} · p50 {}, p95 {} · servers {servers}",
                uptime(self.uptime_ms),
                millis(self.p50_ms),
                millis(self.p95_ms)
            ),
            format!(
                "{} · {} · tokens {input} in, {output} out · cost {cost}",
                pluralize(self.runs.active, "active run"),
                pluralize(approvals, "pending approval")
            ),
        ]
    }

    /// The sources in the order of [`SOURCE_HEADINGS`], the busiest first.
    pub(super) fn source_rows(&self) -> Vec<[String; 9]> {
        let mut sources: Vec<&Source> = self.sources.iter().collect();
        sources.sort_by_key(|source| std::cmp::Reverse((source.in_flight, source.calls_last_minute)));
        let row = |source: &&Source| {
            [
                name(&source.source),
                name(source.state.as_deref().unwrap_or(&source.kind)),
                source.calls_last_minute.to_string(),
                source.failures_last_minute.to_string(),
                millis(source.p50_ms),
                millis(source.p95_ms),
                source.in_flight.to_string(),
                source.queued.to_string(),
                name(&source.breaker),
            ]
        };
        sources.iter().map(row).collect()
    }

    /// The most called tools in the order of [`TOOL_HEADINGS`].
    pub(super) fn tool_rows(&self) -> Vec<[String; 5]> {
        let row = |tool: &Tool| {
            [
                name(&tool.tool),
                name(&tool.source),
                group_digits(tool.calls),
                group_digits(tool.failures),
                millis(Some(tool.mean_ms)),
            ]
        };
        self.top_tools.iter().map(row).collect()
    }
}

fn name(text: &str) -> String {
    fit_line(&sanitize(text), MAX_NAME_WIDTH)
}

fn millis(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 10.0 => format!("{millis:.1} ms"),
        Some(millis) if millis < 1_000.0 => format!("{millis:.0} ms"),
        Some(millis) => format!("{:.1} s", millis / 1_000.0),
    }
}

fn uptime(millis: u64) -> String {
    let minutes = millis / 60_000;
    match (minutes / 1_440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
