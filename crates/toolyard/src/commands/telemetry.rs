//! Starts the export of traces and the log of requests, and ends them with the process.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use toolyard_core::telemetry::Telemetry;
use toolyard_telemetry::{TelemetryBuilder, metrics::Metrics, traces::Traces};

use crate::{config::CliContext, terminal::logging::RequestLog};

/// How long the last spans may take, so that a receiver that is down does not delay the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

static TRACES: OnceLock<Option<Arc<Traces>>> = OnceLock::new();

/// What receives operations: traces as configured, the log if it shows requests, and the metrics of a gateway. None if none
/// does.
pub(crate) fn start(context: &CliContext, metrics: Option<&Arc<Metrics>>) -> Option<Arc<dyn Telemetry>> {
    let mut builder = TelemetryBuilder::default();
    if let Some(metrics) = metrics {
        builder = builder.observe(Arc::clone(metrics) as _);
    }
    if RequestLog::is_enabled() {
        builder = builder.observe(Arc::new(RequestLog)).with_trace_ids();
    }
    if let Some(traces) = TRACES.get_or_init(|| start_traces(context)) {
        builder = builder.traces(Arc::clone(traces) as _);
    }
    builder.build()
}

/// Traces are no reason to refuse work: if they cannot be exported, the log says why.
fn start_traces(context: &CliContext) -> Option<Arc<Traces>> {
    let variable = |name: &str| std::env::var(name).ok();
    let started = match context.settings.telemetry.traces(variable) {
        Ok(None) => return None,
        Ok(Some(config)) => Traces::start(config).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    started.inspect_err(|error| tracing::warn!(error, "no traces are exported")).ok()
}

/// Exports the last spans.
pub(crate) async fn shut_down() {
    if let Some(Some(traces)) = TRACES.get() {
        traces.shut_down(FLUSH_TIMEOUT).await;
    }
}
