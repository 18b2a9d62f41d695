//! What traces and metrics are made of: finished operations, and the context that links them across processes.
//!
//! ```text
//! span_context.rs  SpanContext: identifies a span, as W3C's `traceparent`
//! operation.rs     Operation: a finished request, tool call, model call or run
//! running.rs       RunningOperation: records an operation exactly once, also if it is dropped
//! testing.rs       RecordingTelemetry: keeps operations in memory
//! ```
//!
//! Code that performs an operation asks [`Telemetry::start_span`] for the context of its span, passes that context on to what
//! it calls, and reports the operation when it has ended. Nothing is exported on the path of a call.

mod operation;
mod running;
mod span_context;
mod testing;

use std::{fmt, num::NonZeroU128};

pub use self::{
    operation::{CallContent, Operation, OperationKind, OperationSpan, TokenUsage, Transport},
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

    /// The context of the root of the trace with this id, for what continues in another process without a common parent.
    fn start_trace(&self, trace_id: NonZeroU128) -> Option<SpanContext> {
        self.start_span(None).map(|root| SpanContext { trace_id, ..root })
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
