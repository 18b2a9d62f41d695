//! [`RequestLog`]: one line for each request of an MCP or HTTP client, with the ids of its trace.

use toolyard_core::telemetry::{Operation, OperationKind};
use toolyard_telemetry::OperationObserver;
use tracing::Level;

/// Logs requests at level info, with the target `toolyard::requests`.
#[derive(Debug)]
pub(crate) struct RequestLog;

impl RequestLog {
    /// Whether the log shows requests: with `-v`, or as `TOOLYARD_LOG` says. Otherwise requests need not be observed.
    pub(crate) fn is_enabled() -> bool {
        tracing::enabled!(target: "toolyard::requests", Level::INFO)
    }
}

impl OperationObserver for RequestLog {
    fn observe(&self, operation: &Operation) {
        let (method, subject, caller, client, status) = match &operation.kind {
            OperationKind::ServerRequest { method, target, resource, caller, client, .. } => {
                (method, target.as_deref().or(resource.as_deref()), caller, client.as_deref(), None)
            }
            OperationKind::HttpRequest { method, route, status, caller, .. } => {
                let route = route.as_deref().unwrap_or("unknown");
                (method, Some(route), caller, None, *status)
            }
            _ => return,
        };
        // Two fields: a log database cannot type a field that is sometimes a number and sometimes a word.
        let outcome = status.is_none().then(|| operation.error_type.as_deref().unwrap_or("ok"));
        let duration_ms = (operation.duration.as_secs_f64() * 1e6).round() / 1e3;
        let context = operation.span.map(|span| span.context);
        let trace_id = context.map(|context| format!("{:032x}", context.trace_id));
        let span_id = context.map(|context| format!("{:016x}", context.span_id));
        tracing::info!(
            target: "toolyard::requests",
            method = &**method,
            target = subject,
            status,
            outcome,
            duration_ms,
            trace_id,
            span_id,
            caller = caller.as_deref(),
            client,
            "request"
        );
    }
}
