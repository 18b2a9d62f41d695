//! All metrics as plain data: families of series.

use std::{collections::BTreeMap, sync::Arc};

use prometheus_client::{metrics::MetricType, registry::Unit};

use super::{
    Metrics,
    cluster_families::cluster_families,
    duration_histogram::{Bounds, DurationHistogram, HistogramCounts},
    gauges::{BreakerGauge, Gauges, ResultsGauges, StoreGauges},
    process::ProcessUsage,
    series_table::{Series, SeriesTable},
};

/// Labels that have names of the operator's tools, servers, agents and models.
const PRIVATE_LABELS: [&str; 7] = [
    "quota",
    "tool",
    "source",
    "gen_ai_tool_name",
    "gen_ai_agent_name",
    "gen_ai_provider_name",
    "gen_ai_request_model",
];

/// A metric with all its series.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricType,
    pub(super) unit: Option<Unit>,
    /// By labels, without those that have no value.
    pub(super) series: BTreeMap<Labels, Value>,
}

pub(super) type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    Number(f64),
    Histogram(HistogramCounts),
    Info,
}

impl Value {
    /// Adds the value of a series that has the same labels once some are left out.
    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::Integer(sum), Self::Integer(more)) => *sum += more,
            (Self::Number(sum), Self::Number(more)) => *sum += more,
            (Self::Histogram(sum), Self::Histogram(more)) => sum.add(&more),
            _ => {}
        }
    }
}

impl Family {
    fn new(kind: MetricType, name: &'static str, unit: Option<Unit>, help: &'static str) -> Self {
        Self { name, help, kind, unit, series: BTreeMap::new() }
    }

    fn seconds(name: &'static str, help: &'static str) -> Self {
        Self::new(MetricType::Histogram, name, Some(Unit::Seconds), help)
    }

    pub(super) fn counter(name: &'static str, help: &'static str) -> Self {
        Self::new(MetricType::Counter, name, None, help)
    }

    pub(super) fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::new(MetricType::Gauge, name, None, help)
    }

    pub(super) fn with(mut self, labels: &[(&'static str, &str)], value: Value) -> Self {
        self.insert(labels, value);
        self
    }

    pub(super) fn insert(&mut self, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Labels = labels.map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.series.insert(labels, value);
    }

    fn with_histograms<const N: usize, B: Bounds>(
        mut self,
        names: [&'static str; N],
        table: &SeriesTable<N, DurationHistogram<B>>,
    ) -> Self {
        for series in table.all() {
            self.insert(&labels(names, &series), Value::Histogram(series.value.counts()));
        }
        self
    }

    /// Adds a label that has the same value in all series.
    fn with_constant_label(mut self, name: &'static str, value: &str) -> Self {
        let series = std::mem::take(&mut self.series).into_iter();
        self.series = series
            .map(|(mut labels, counted)| {
                labels.insert(0, (name, value.to_owned()));
                (labels, counted)
            })
            .collect();
        self
    }

    /// Leaves private labels out, and adds up the series that are the same without them.
    pub(super) fn hide_private_labels(&mut self) {
        for (mut labels, value) in std::mem::take(&mut self.series) {
            labels.retain(|(name, _)| !PRIVATE_LABELS.contains(name));
            match self.series.get_mut(&labels) {
                Some(sum) => sum.add(value),
                None => {
                    self.series.insert(labels, value);
                }
            }
        }
    }
}

fn labels<'a, const N: usize, V>(
    names: [&'static str; N],
    series: &'a Arc<Series<N, V>>,
) -> Vec<(&'static str, &'a str)> {
    names.into_iter().zip(series.labels.iter().map(|label| &**label)).collect()
}

/// All metrics that have a value.
pub(super) fn families(metrics: &Metrics, gauges: &Gauges, process: &ProcessUsage) -> Vec<Family> {
    let mut families = Vec::new();
    families.extend(call_families(metrics));
    families.extend(agent_families(metrics));
    families.push(
        Family::counter(
            "toolyard_metric_series_limit_reached",
            "How often something was counted under `other` because a metric has too many series",
        )
        .with(&[], Value::Integer(metrics.overflows())),
    );
    families.extend(gauge_families(gauges));
    families.extend(gauges.results.iter().flat_map(results_families));
    families.extend(gauges.store.iter().flat_map(store_families));
    families.extend(gauges.cluster.iter().flat_map(cluster_families));
    families.extend(process_families(process));
    families.retain(|family| !family.series.is_empty());
    families
}

fn call_families(metrics: &Metrics) -> [Family; 6] {
    let mut calls = Family::counter("toolyard_tool_calls", "Tool calls by outcome");
    for series in metrics.tool_calls.all() {
        let (count, _) = series.value.load();
        calls.insert(&labels(["tool", "source", "outcome"], &series), Value::Integer(count));
    }
    let mut durations = Family::seconds("toolyard_tool_call_duration", "Duration of tool calls by source");
    for series in metrics.sources.all() {
        durations.insert(&labels(["source"], &series), Value::Histogram(series.value.durations.counts()));
    }
    [
        calls,
        durations,
        Family::seconds("mcp_server_operation_duration", "Duration of requests of MCP clients")
            .with_histograms(
                ["mcp_method_name", "error_type", "mcp_protocol_version", "network_transport"],
                &metrics.server_requests,
            ),
        Family::seconds("mcp_client_operation_duration", "Duration of requests to upstream MCP servers")
            .with_histograms(
                ["mcp_method_name", "error_type", "mcp_protocol_version", "network_transport"],
                &metrics.client_requests,
            ),
        Family::seconds("http_server_request_duration", "Duration of requests of the HTTP API")
            .with_histograms(
                ["http_request_method", "http_route", "http_response_status_code", "error_type"],
                &metrics.http_requests,
            ),
        Family::seconds("toolyard_tool_search_duration", "Duration of searches for tools")
            .with(&[], Value::Histogram(metrics.searches.counts())),
    ]
}

fn agent_families(metrics: &Metrics) -> [Family; 6] {
    let mut tokens = Family::counter("toolyard_model_tokens", "Tokens that models read and wrote");
    let mut cost = Family::counter(
        "toolyard_model_cost",
        "Cost of model calls whose price is set, in the currency of the prices",
    );
    for series in metrics.model_usage.all() {
        let usage = series.value.load();
        let [provider, model] = series.labels.each_ref().map(|label| &**label);
        let model = [("gen_ai_provider_name", provider), ("gen_ai_request_model", model)];
        for (token_type, count) in [("input", usage.input), ("output", usage.output)] {
            let labels = [model.as_slice(), &[("gen_ai_token_type", token_type)]].concat();
            tokens.insert(&labels, Value::Integer(count));
        }
        if let Some(spent) = usage.cost {
            cost.insert(&model, Value::Number(spent));
        }
    }
    [
        Family::seconds(
            "gen_ai_invoke_agent_duration",
            "Duration of runs, until they ended or were suspended",
        )
        .with_histograms(["gen_ai_agent_name", "error_type"], &metrics.agent_runs),
        Family::seconds("toolyard_planning_duration", "Duration of making and repairing plans")
            .with_histograms(["gen_ai_agent_name", "error_type"], &metrics.planning),
        Family::seconds(
            "toolyard_step_duration",
            "Duration of steps of plans; those of reasoning have no tool",
        )
        .with_histograms(["gen_ai_tool_name", "error_type"], &metrics.steps),
        Family::seconds("gen_ai_client_operation_duration", "Duration of model calls")
            .with_histograms(
                ["gen_ai_provider_name", "gen_ai_request_model", "error_type"],
                &metrics.model_calls,
            )
            .with_constant_label("gen_ai_operation_name", "chat"),
        tokens,
        cost,
    ]
}

fn gauge_families(gauges: &Gauges) -> Vec<Family> {
    let mut servers = Family::gauge("toolyard_servers", "Upstream MCP servers by state");
    for (state, count) in &gauges.servers {
        servers.insert(&[("state", state)], Value::Integer(*count));
    }
    let mut tools = Family::gauge("toolyard_source_tools", "Tools of a source");
    let mut in_flight = Family::gauge("toolyard_calls_in_flight", "Tool calls that are being executed");
    let mut queued = Family::gauge("toolyard_calls_queued", "Tool calls that wait for their turn");
    let mut breakers =
        Family::gauge("toolyard_breaker_open", "1 if the circuit breaker of a source is open or half open");
    for source in &gauges.sources {
        let labels = [("source", source.source.as_str())];
        tools.insert(&labels, Value::Integer(source.tools));
        in_flight.insert(&labels, Value::Integer(source.in_flight));
        queued.insert(&labels, Value::Integer(source.queued));
        for (state, is_present) in [
            ("open", source.breaker == BreakerGauge::Open),
            ("half_open", source.breaker == BreakerGauge::HalfOpen),
        ] {
            let labels = [("source", source.source.as_str()), ("state", state)];
            breakers.insert(&labels, Value::Integer(is_present.into()));
        }
    }
    let single = |name, help, value: Option<u64>| {
        value.map(|value| Family::gauge(name, help).with(&[], Value::Integer(value)))
    };
    let build = Family::new(MetricType::Info, "toolyard_build", None, "The version of the program")
        .with(&[("version", &gauges.version)], Value::Info);
    let mut families = vec![build, servers, tools, in_flight, queued, breakers];
    if !gauges.quota_refusals.is_empty() {
        let mut refusals =
            Family::counter("toolyard_quota_refusals", "Calls and model calls that a quota refused");
        for (quota, count) in &gauges.quota_refusals {
            refusals.insert(&[("quota", quota)], Value::Integer(*count));
        }
        families.push(refusals);
    }
    families.extend(
        [
            single(
                "toolyard_mcp_requests_in_flight",
                "MCP requests that are being handled",
                gauges.mcp_requests,
            ),
            single(
                "toolyard_mcp_sessions",
                "Sessions of MCP clients with state in this process",
                gauges.mcp_sessions,
            ),
            single("toolyard_runs_active", "Runs of agents that this process drives", gauges.active_runs),
            single(
                "toolyard_approvals_pending",
                "Approvals that wait for a decision",
                gauges.pending_approvals,
            ),
            single("toolyard_search_index_tools", "Tools in the search index", gauges.indexed_tools),
        ]
        .into_iter()
        .flatten(),
    );
    families.extend(instance_families(gauges));
    families
}

fn instance_families(gauges: &Gauges) -> impl Iterator<Item = Family> {
    let active = gauges.private_instances.map(|active| {
        Family::gauge("toolyard_private_instances", "Instances of servers that belong to one caller each")
            .with(&[], Value::Integer(active))
    });
    let displaced = gauges.displaced_instances.map(|displaced| {
        let help = "Private instances that were stopped to make room for others";
        Family::counter("toolyard_private_instances_displaced", help).with(&[], Value::Integer(displaced))
    });
    active.into_iter().chain(displaced)
}

fn store_families(store: &StoreGauges) -> [Family; 8] {
    let StoreGauges { is_reachable, queued_writes, queued_audit_records, spill_bytes, .. } = *store;
    let StoreGauges { lost_audit_records, refused_calls, audit_outage_seconds, failed_audit_writes, .. } =
        *store;
    [
        Family::gauge("toolyard_store_up", "1 if the store answered when it was last asked")
            .with(&[], Value::Integer(is_reachable.into())),
        Family::gauge(
            "toolyard_audit_spill_bytes",
            "Size of the file in which audit records wait for the store",
        )
        .with(&[], Value::Integer(spill_bytes)),
        Family::gauge(
            "toolyard_store_writes_queued",
            "Writes of the journal, of runs and of results that wait",
        )
        .with(&[], Value::Integer(queued_writes)),
        Family::gauge("toolyard_audit_records_queued", "Audit records that are only in memory")
            .with(&[], Value::Integer(queued_audit_records)),
        Family::counter("toolyard_audit_records_lost", "Audit records that could not be kept")
            .with(&[], Value::Integer(lost_audit_records)),
        Family::counter(
            "toolyard_audit_refused_calls",
            "Calls refused because their audit record could not be kept",
        )
        .with(&[], Value::Integer(refused_calls)),
        Family::gauge(
            "toolyard_audit_outage_seconds",
            "How long the store has taken no audit records; 0 while it takes them",
        )
        .with(&[], Value::Integer(audit_outage_seconds)),
        Family::counter(
            "toolyard_audit_write_failures",
            "Writes of audit records that failed; they are repeated",
        )
        .with(&[], Value::Integer(failed_audit_writes)),
    ]
}

fn results_families(results: &ResultsGauges) -> Vec<Family> {
    let ResultsGauges { stored, stored_bytes, evicted } = *results;
    let mut families = vec![
        Family::gauge("toolyard_results_stored", "Whole results of tools that are kept for reading")
            .with(&[], Value::Integer(stored)),
        Family::gauge("toolyard_results_stored_bytes", "Their size before compression")
            .with(&[], Value::Integer(stored_bytes)),
    ];
    families.extend(evicted.map(|evicted| {
        Family::counter("toolyard_results_evicted", "Results that were dropped to make room")
            .with(&[], Value::Integer(evicted))
    }));
    families
}

/// The names that Prometheus expects of every process.
fn process_families(process: &ProcessUsage) -> Vec<Family> {
    let gauge = |name, help, value: Option<u64>| {
        value.map(|value| Family::gauge(name, help).with(&[], Value::Integer(value)))
    };
    let cpu = process.cpu_seconds.map(|seconds| {
        Family::new(
            MetricType::Counter,
            "process_cpu",
            Some(Unit::Seconds),
            "Processor time, user and system",
        )
        .with(&[], Value::Number(seconds))
    });
    let started = process.started_at.map(|since| {
        Family::new(
            MetricType::Gauge,
            "process_start_time",
            Some(Unit::Seconds),
            "When the process started, since 1970",
        )
        .with(&[], Value::Number(since.as_secs_f64()))
    });
    [
        cpu,
        started,
        gauge("process_resident_memory_bytes", "Memory in use", process.resident_bytes),
        gauge("process_virtual_memory_bytes", "Memory that is mapped", process.virtual_bytes),
        gauge("process_threads", "Threads", process.threads),
        gauge("process_open_fds", "Open files and connections", process.open_files),
        gauge("process_max_fds", "Limit of open files and connections", process.max_open_files),
    ]
    .into_iter()
    .flatten()
    .collect()
}
