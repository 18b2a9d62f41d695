//! [`TelemetryBuilder`]: one [`Telemetry`] for several receivers of operations.

use std::{fmt, num::NonZeroU128, sync::Arc};

use toolyard_core::telemetry::{Operation, SpanContext, Telemetry, root_span_id};

/// Receives operations besides the traces. It is called on the path of every tool call: it must not block.
pub trait OperationObserver: Send + Sync + fmt::Debug {
    /// Receives an operation that has ended.
    fn observe(&self, operation: &Operation);

    /// Whether it needs names and ids that cost allocations ([`Telemetry::wants_details`]).
    fn wants_details(&self) -> bool {
        true
    }
}

/// Combines the receivers of operations.
#[derive(Debug, Default)]
#[must_use]
pub struct TelemetryBuilder {
    observers: Vec<Arc<dyn OperationObserver>>,
    traces: Option<Arc<dyn Telemetry>>,
    makes_trace_ids: bool,
}

impl TelemetryBuilder {
    /// Adds a receiver, such as metrics.
    pub fn observe(mut self, observer: Arc<dyn OperationObserver>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets where spans are recorded; replaces one set before.
    pub fn traces(mut self, traces: Arc<dyn Telemetry>) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Gives every operation the ids of a trace for its observers, even if no spans are recorded. Then the ids of the client
    /// are used, or those of a new trace that is passed on.
    pub fn with_trace_ids(mut self) -> Self {
        self.makes_trace_ids = true;
        self
    }

    /// The combination; `None` if there is no receiver, so that operations cost nothing.
    pub fn build(self) -> Option<Arc<dyn Telemetry>> {
        let Self { observers, traces, makes_trace_ids } = self;
        match (observers.is_empty(), traces) {
            (true, traces) => traces,
            (false, traces) => {
                let observers_want_details = observers.iter().any(|observer| observer.wants_details());
                Some(Arc::new(FanOut { observers, observers_want_details, traces, makes_trace_ids }))
            }
        }
    }
}

#[derive(Debug)]
struct FanOut {
    observers: Vec<Arc<dyn OperationObserver>>,
    observers_want_details: bool,
    traces: Option<Arc<dyn Telemetry>>,
    makes_trace_ids: bool,
}

impl Telemetry for FanOut {
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
        match &self.traces {
            Some(traces) => traces.start_span(parent),
            // Nobody records the root, so that servers that follow it record nothing either.
            None if self.makes_trace_ids => Some(
                parent.copied().unwrap_or_else(|| SpanContext { is_sampled: false, ..SpanContext::root() }),
            ),
            None => None,
        }
    }

    fn records_spans(&self) -> bool {
        self.makes_trace_ids || self.traces.as_ref().is_some_and(|traces| traces.records_spans())
    }

    fn start_trace(&self, trace_id: NonZeroU128) -> Option<SpanContext> {
        match &self.traces {
            Some(traces) => traces.start_trace(trace_id),
            None => self.start_span(None).map(|root| SpanContext {
                trace_id,
                span_id: root_span_id(trace_id),
                ..root
            }),
        }
    }

    fn captures_content(&self) -> bool {
        self.traces.as_ref().is_some_and(|traces| traces.captures_content())
    }

    fn wants_details(&self, span: Option<&SpanContext>) -> bool {
        self.observers_want_details || self.traces.as_ref().is_some_and(|traces| traces.wants_details(span))
    }

    fn record(&self, operation: Box<Operation>) {
        for observer in &self.observers {
            observer.observe(&operation);
        }
        if let Some(traces) = &self.traces {
            traces.record(operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Silent;

    impl OperationObserver for Silent {
        fn observe(&self, _: &Operation) {}
    }

    #[test]
    fn ids_for_a_log_alone_ask_nobody_to_record_the_trace() {
        let builder = TelemetryBuilder::default().observe(Arc::new(Silent)).with_trace_ids();
        let telemetry = builder.build().unwrap();
        assert!(!telemetry.start_span(None).unwrap().is_sampled);
        let trace_id = NonZeroU128::new(7).unwrap();
        let root = telemetry.start_trace(trace_id).unwrap();
        assert!(root.trace_id == trace_id && !root.is_sampled);
        // What a client wants is passed on.
        let parent = SpanContext::root();
        assert_eq!(telemetry.start_span(Some(&parent)), Some(parent));
    }
}
