//! What traces and metrics are made of: finished operations, and the context that links them across processes.
//!
//! ```text
//! span_context.rs  SpanContext: identifies a span, as W3C's `traceparent`
//! operation.rs     Operation: a finished request, tool call, model call or run
//! ```
//!
//! Code that performs an operation asks [`Telemetry::start_span`] for the context of its span, passes that context on to what
//! it calls, and reports the operation when it has ended. Nothing is exported on the path of a call.

mod operation;
mod span_context;

use std::fmt;

pub use self::{
    operation::{Operation, OperationKind, OperationSpan, TokenUsage, Transport},
    span_context::{InvalidTraceparent, SpanContext},
};

/// Receives finished operations. It is called on the path of every tool call, so an implementation counts and enqueues only.
pub trait Telemetry: Send + Sync + fmt::Debug {
    /// The context of a new span: a child of `parent`, or the root of a new trace. `None` if no traces are recorded, or not
    /// this one; then the context of the parent is passed on unchanged.
    fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext>;

    /// Receives an operation that has ended.
    fn record(&self, operation: Operation);
}
