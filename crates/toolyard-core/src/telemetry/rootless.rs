//! [`RootlessTelemetry`]: records operations that nobody caused without a span.

use std::{num::NonZeroU128, sync::Arc};

use super::{Operation, SpanContext, Telemetry};

/// Starts no traces: an operation has a span only if something traced caused it. All operations are recorded, so that metrics
/// count them. For requests that repeat by themselves, each of which would be a trace of one span.
#[derive(Debug, Clone)]
pub struct RootlessTelemetry(Arc<dyn Telemetry>);

impl RootlessTelemetry {
    /// Reports to `telemetry`.
    pub fn of(telemetry: &Arc<dyn Telemetry>) -> Arc<dyn Telemetry> {
        Arc::new(Self(Arc::clone(telemetry)))
    }
}

impl Telemetry for RootlessTelemetry {
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        parent.and_then(|parent| self.0.start_span(Some(parent)))
    }

    fn start_trace(&self, trace_id: NonZeroU128) -> Option<SpanContext> {
        self.0.start_trace(trace_id)
    }

    fn records_spans(&self) -> bool {
        self.0.records_spans()
    }

    fn wants_details(&self, span: Option<&SpanContext>) -> bool {
        self.0.wants_details(span)
    }

    fn record(&self, operation: Box<Operation>) {
        self.0.record(operation);
    }

    fn captures_content(&self) -> bool {
        self.0.captures_content()
    }
}
