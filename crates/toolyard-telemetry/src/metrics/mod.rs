//! Counts finished operations, for Prometheus and for the overview of the HTTP API.
//!
//! ```text
//! series_table.rs        the series of one metric by their labels, limited in number
//! duration_histogram.rs  counts durations in buckets
//! activity_window.rs     the calls of a source in the last hour
//! activity.rs            Activity: what the overview shows
//! gauges.rs              Gauges: what is read when metrics are scraped
//! families.rs            all metrics as plain data; cluster_families.rs those of a cluster
//! exposition.rs          these as text for Prometheus
//! process.rs             the processor time, memory and files of this process
//! ```

mod activity;
mod activity_window;
mod cluster_families;
mod duration_histogram;
mod exposition;
mod families;
mod gauges;
mod process;
mod series_table;

use std::{
    borrow::Cow,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use toolyard_core::{
    SourceId,
    telemetry::{Operation, OperationKind, TokenUsage, Transport},
};

pub use self::{
    activity::{Activity, SourceActivity, ToolActivity},
    exposition::{ExpositionFormat, LabelDetail},
    gauges::{BreakerGauge, ClusterGauges, Gauges, ResultsGauges, SourceGauges, StoreGauges},
};
use self::{
    activity_window::ActivityWindow,
    duration_histogram::{DurationHistogram, FastBounds, HttpBounds, ModelBounds, OperationBounds},
    series_table::{OTHER, SeriesTable},
};
use crate::OperationObserver;

/// The outcome of an operation without an error.
const SUCCESS: &str = "success";
/// The source of calls that reached none.
const NO_SOURCE: &str = "none";
/// Series of counters; a histogram has many lines per series, and so fewer series.
const MAX_COUNTER_SERIES: usize = 2_000;
const MAX_HISTOGRAM_SERIES: usize = 500;
/// Servers choose error types; those of one method must leave room for the other methods.
const MAX_SERIES_PER_METHOD: usize = 40;
/// The label of JSON-RPC codes that neither JSON-RPC nor MCP has: servers choose them freely.
const OTHER_ERROR: &str = "_OTHER";
/// The request that stays open for as long as its session.
const LISTEN_METHOD: &str = "subscriptions/listen";
const SECONDS_PER_MINUTE: u64 = 60;
/// Costs are counted in billionths of the operator's currency.
const NANOS_PER_UNIT: f64 = 1e9;

/// Counts finished operations.
#[derive(Debug)]
pub struct Metrics {
    started: Instant,
    /// Method, error type, MCP revision, transport.
    server_requests: SeriesTable<4, DurationHistogram<OperationBounds>>,
    /// Method, error type, MCP revision, transport. A histogram for each server would take most of a scrape.
    client_requests: SeriesTable<4, DurationHistogram<OperationBounds>>,
    /// HTTP method, route, status, error type.
    http_requests: SeriesTable<4, DurationHistogram<HttpBounds>>,
    /// Tool, source, outcome.
    tool_calls: SeriesTable<3, CallCounter>,
    sources: SeriesTable<1, SourceCalls>,
    /// Agent, error type.
    agent_runs: SeriesTable<2, DurationHistogram<OperationBounds>>,
    /// Agent, error type.
    planning: SeriesTable<2, DurationHistogram<OperationBounds>>,
    /// Tool, error type.
    steps: SeriesTable<2, DurationHistogram<OperationBounds>>,
    /// Provider, model, error type.
    model_calls: SeriesTable<3, DurationHistogram<ModelBounds>>,
    /// Provider, model.
    model_usage: SeriesTable<2, UsageCounter>,
    searches: DurationHistogram<FastBounds>,
}

/// Calls, and how long they took.
#[derive(Debug, Default)]
struct CallCounter {
    calls: AtomicU64,
    nanos: AtomicU64,
}

/// The calls of one source.
#[derive(Debug, Default)]
struct SourceCalls {
    durations: DurationHistogram<FastBounds>,
    window: Mutex<ActivityWindow>,
}

/// What the calls of one model used.
#[derive(Debug, Default)]
struct UsageCounter {
    input: AtomicU64,
    output: AtomicU64,
    /// In billionths of the operator's currency.
    cost_nanos: AtomicU64,
    priced_calls: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct ModelUsage {
    input: u64,
    output: u64,
    /// `None` if no price is known.
    cost: Option<f64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            server_requests: SeriesTable::new(MAX_HISTOGRAM_SERIES).with_open_label(1),
            client_requests: SeriesTable::new(MAX_HISTOGRAM_SERIES)
                .with_open_label(1)
                .with_share(0, MAX_SERIES_PER_METHOD),
            http_requests: SeriesTable::new(MAX_HISTOGRAM_SERIES),
            tool_calls: SeriesTable::new(MAX_COUNTER_SERIES).with_open_label(0),
            sources: SeriesTable::new(MAX_HISTOGRAM_SERIES),
            agent_runs: SeriesTable::new(MAX_HISTOGRAM_SERIES),
            planning: SeriesTable::new(MAX_HISTOGRAM_SERIES),
            steps: SeriesTable::new(MAX_HISTOGRAM_SERIES).with_open_label(0),
            model_calls: SeriesTable::new(MAX_HISTOGRAM_SERIES),
            model_usage: SeriesTable::new(MAX_COUNTER_SERIES),
            searches: DurationHistogram::default(),
        }
    }
}

impl OperationObserver for Metrics {
    fn wants_details(&self) -> bool {
        false
    }

    fn observe(&self, operation: &Operation) {
        let (duration, error_type) = (operation.duration, operation.error_type.as_deref());
        // A label without a value is the same as no label.
        let error = error_type.unwrap_or_default();
        match &operation.kind {
            // Its duration says how long a client was connected.
            OperationKind::ServerRequest { method, .. } if method == LISTEN_METHOD => {}
            OperationKind::ServerRequest { method, revision, transport, .. } => {
                let labels = [&**method, error_label(error), revision, transport_label(*transport)];
                self.server_requests.update(labels, |durations| durations.observe(duration));
            }
            OperationKind::ClientRequest { method, revision, transport, .. } => {
                let labels = [&**method, error_label(error), revision, transport_label(*transport)];
                self.client_requests.update(labels, |durations| durations.observe(duration));
            }
            OperationKind::HttpRequest { method, route, status, .. } => {
                let route = route.as_deref().unwrap_or_default();
                let labels = [&**method, route, &status_label(*status), error];
                self.http_requests.update(labels, |durations| durations.observe(duration));
            }
            OperationKind::ToolCall { tool, source, .. } => {
                self.count_call(tool, source.as_ref().map(SourceId::as_str), error_type, duration);
            }
            OperationKind::ToolSearch { .. } => self.searches.observe(duration),
            OperationKind::AgentRun { agent, .. } => {
                self.agent_runs.update([agent, error], |durations| durations.observe(duration));
            }
            OperationKind::Planning { agent } => {
                self.planning.update([agent, error], |durations| durations.observe(duration));
            }
            OperationKind::Step { tool, is_known_tool, .. } => {
                // Models can invent names of tools.
                let tool = match tool {
                    Some(tool) if *is_known_tool => tool,
                    Some(_) => OTHER,
                    None => "",
                };
                self.steps.update([tool, error], |durations| durations.observe(duration));
            }
            OperationKind::ModelCall { provider, model, usage, cost, .. } => {
                self.model_calls.update([provider, model, error], |durations| durations.observe(duration));
                self.model_usage.update([provider, model], |counter| counter.add(*usage, *cost));
            }
            _ => {}
        }
    }
}

impl Metrics {
    fn count_call(&self, tool: &str, source: Option<&str>, error_type: Option<&str>, duration: Duration) {
        // Clients can invent names of tools, so that only those of a source are counted by name.
        let tool = if source.is_some() { tool } else { OTHER };
        let (source, outcome) = (source.unwrap_or(NO_SOURCE), error_type.unwrap_or(SUCCESS));
        let minute = self.minute();
        self.tool_calls.update([tool, source, outcome], |counter| counter.add(duration));
        self.sources.update([source], |calls| {
            calls.durations.observe(duration);
            calls.window.lock().record(minute, duration, error_type.is_some());
        });
    }

    /// How often a limit on the number of series was reached.
    fn overflows(&self) -> u64 {
        self.server_requests.overflows()
            + self.client_requests.overflows()
            + self.http_requests.overflows()
            + self.tool_calls.overflows()
            + self.sources.overflows()
            + self.agent_runs.overflows()
            + self.planning.overflows()
            + self.steps.overflows()
            + self.model_calls.overflows()
            + self.model_usage.overflows()
    }

    /// If there is no room for further sources, removes the series of those that are gone.
    pub fn make_room(&self, is_source: impl Fn(&str) -> bool) {
        let is_kept = |source: &str| source == NO_SOURCE || source == OTHER || is_source(source);
        if self.tool_calls.is_full() {
            self.tool_calls.retain(1, is_kept);
        }
        if self.sources.is_full() {
            self.sources.retain(0, is_kept);
        }
    }

    /// Minutes since the start.
    fn minute(&self) -> u64 {
        self.started.elapsed().as_secs() / SECONDS_PER_MINUTE
    }
}

impl CallCounter {
    fn add(&self, duration: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Calls, and nanoseconds.
    fn load(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.nanos.load(Ordering::Relaxed))
    }
}

impl UsageCounter {
    fn add(&self, usage: TokenUsage, cost: Option<f64>) {
        self.input.fetch_add(usage.input, Ordering::Relaxed);
        self.output.fetch_add(usage.output, Ordering::Relaxed);
        if let Some(cost) = cost {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates, and a negative cost counts as none"
            )]
            let nanos = (cost * NANOS_PER_UNIT) as u64;
            self.cost_nanos.fetch_add(nanos, Ordering::Relaxed);
            self.priced_calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn load(&self) -> ModelUsage {
        let has_price = self.priced_calls.load(Ordering::Relaxed) > 0;
        ModelUsage {
            input: self.input.load(Ordering::Relaxed),
            output: self.output.load(Ordering::Relaxed),
            cost: has_price.then(|| self.cost_nanos.load(Ordering::Relaxed) as f64 / NANOS_PER_UNIT),
        }
    }
}

/// An error type of MCP requests as the value of a label.
fn error_label(error: &str) -> &str {
    let is_known =
        |code: i64| matches!(code, -32700 | -32603..=-32600 | -32002..=-32000 | -32022..=-32020 | -32042);
    match error.parse() {
        Ok(code) if !is_known(code) => OTHER_ERROR,
        Ok(_) | Err(_) => error,
    }
}

fn transport_label(transport: Transport) -> &'static str {
    match transport {
        Transport::Stdio => "pipe",
        _ => "tcp",
    }
}

/// Empty without a response.
fn status_label(status: Option<u16>) -> Cow<'static, str> {
    match status {
        None => Cow::Borrowed(""),
        Some(200) => Cow::Borrowed("200"),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
