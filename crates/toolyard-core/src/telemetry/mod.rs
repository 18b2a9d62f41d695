//! What traces and metrics are made of: finished operations, and the context that links them across processes.
//!
//! ```text
//! span_context.rs  SpanContext: identifies a span, as W3C's `traceparent`
//! operation.rs     Operation: a finished request, tool call, model call or run
//! rootless.rs      RootlessTelemetry: records operations that nobody caused without a span
//! running.rs       RunningOperation: records an operation exactly once, also if it is dropped
//! testing.rs       RecordingTelemetry: keeps operations in memory
//! ```
//!
//! Code that performs an operation asks [`Telemetry::start_span`] for the context of its span, passes that context on to what
//! it calls, and reports the operation when it has ended. Nothing is exported on the path of a call.

mod operation;
mod rootless;
mod running;
mod span_context;
mod testing;

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
};

pub use self::{
    operation::{CallContent, Operation, OperationKind, OperationSpan, TokenUsage, Transport},
    rootless::RootlessTelemetry,
    running::{CANCELLED, RunningOperation},
    span_context::{InvalidTraceparent, SpanContext, Traceparent},
    testing::RecordingTelemetry,
};

/// Receives finished operations. It is called on the path of every tool call, so an implementation counts and enqueues only.
pub trait Telemetry: Send + Sync + fmt::Debug {
    /// The context of a new span: a child of `parent`, or the root of a new trace. `None` if no traces are recorded; then the
    /// context of the parent is passed on unchanged. A trace that is not sampled has a context too, so that its spans agree.
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext>;

    /// Whether spans have contexts at all. If not, [`Telemetry::start_span`] is always `None`, and nobody needs to read the
    /// context of a parent.
    fn records_spans(&self) -> bool {
        true
    }

    /// The context of the root of the trace with this id: the same in every process, for what continues in another one
    /// without a common parent.
    fn start_trace(&self, trace_id: NonZeroU128) -> Option<SpanContext> {
        let span_id = root_span_id(trace_id);
        self.start_span(None).map(|root| SpanContext { trace_id, span_id, ..root })
    }

    /// Whether the operation of this span is wanted with names and ids that only spans and logs have
    /// ([`OperationKind`] says which). They cost allocations, and counters do not need them.
    fn wants_details(&self, span: Option<&SpanContext>) -> bool {
        let _ = span;
        true
    }

    /// Receives an operation that has ended.
    fn record(&self, operation: Box<Operation>);

    /// Whether operations should carry what callers send and receive ([`CallContent`]). That may be confidential.
    fn captures_content(&self) -> bool {
        false
    }
}

/// The id of the root span of a trace that was started by its id.
pub fn root_span_id(trace_id: NonZeroU128) -> NonZeroU64 {
    let [high, low] = [trace_id.get() >> 64, trace_id.get()].map(|half| half & u128::from(u64::MAX));
    let id = [low, high].into_iter().find_map(|half| NonZeroU64::new(u64::try_from(half).ok()?));
    id.unwrap_or(NonZeroU64::MIN)
}
