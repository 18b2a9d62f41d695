//! [`RunningOperation`]: an operation from its start until it is recorded, which happens exactly once.

use std::{
    borrow::Cow,
    num::NonZeroU128,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use super::{Operation, OperationKind, OperationSpan, SpanContext, Telemetry};

/// The error type of an operation that was dropped before it ended.
pub const CANCELLED: &str = "cancelled";

/// An operation that has started. It is recorded by [`RunningOperation::end`], or as cancelled when it is dropped.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use toolyard_core::telemetry::{Operation, OperationKind, RunningOperation, SpanContext, Telemetry};
///
/// #[derive(Debug, Default)]
/// struct Recorder(Mutex<Vec<Operation>>);
///
/// impl Telemetry for Recorder {
///     fn start_span(&self, parent: Option<&SpanContext>) -> Option<SpanContext> {
///         Some(parent.map_or_else(SpanContext::root, SpanContext::child))
///     }
///     fn record(&self, operation: Box<Operation>) {
///         self.0.lock().unwrap().push(*operation);
///     }
/// }
///
/// let recorder = Arc::new(Recorder::default());
/// let telemetry: Arc<dyn Telemetry> = recorder.clone();
/// let planning = OperationKind::Planning { agent: "planner".into() };
/// drop(RunningOperation::start(&telemetry, None, planning.clone()));
/// RunningOperation::start(&telemetry, None, planning).end(None);
/// let recorded = recorder.0.lock().unwrap();
/// assert_eq!(recorded[0].error_type.as_deref(), Some("cancelled"));
/// assert_eq!(recorded[1].error_type, None);
/// ```
#[derive(Debug)]
#[must_use = "an operation that is dropped is recorded as cancelled"]
pub struct RunningOperation {
    telemetry: Arc<dyn Telemetry>,
    parent: Option<SpanContext>,
    /// Without its duration; `None` once it is recorded.
    operation: Option<Box<Operation>>,
    started: Instant,
}

impl RunningOperation {
    /// Starts an operation that `parent` caused.
    pub fn start(telemetry: &Arc<dyn Telemetry>, parent: Option<SpanContext>, kind: OperationKind) -> Self {
        Self::new(telemetry, telemetry.start_span(parent.as_ref()), parent, kind)
    }

    /// Starts an operation that `parent` caused. `kind` gets whether details are wanted ([`Telemetry::wants_details`]).
    pub fn start_with(
        telemetry: &Arc<dyn Telemetry>,
        parent: Option<SpanContext>,
        kind: impl FnOnce(bool) -> OperationKind,
    ) -> Self {
        let context = telemetry.start_span(parent.as_ref());
        let kind = kind(telemetry.wants_details(context.as_ref()));
        Self::new(telemetry, context, parent, kind)
    }

    /// Starts an operation that is the root of the trace with this id.
    pub fn start_trace(telemetry: &Arc<dyn Telemetry>, trace_id: NonZeroU128, kind: OperationKind) -> Self {
        Self::new(telemetry, telemetry.start_trace(trace_id), None, kind)
    }

    fn new(
        telemetry: &Arc<dyn Telemetry>,
        context: Option<SpanContext>,
        parent: Option<SpanContext>,
        kind: OperationKind,
    ) -> Self {
        let operation = Box::new(Operation {
            kind,
            span: context.map(|context| OperationSpan { context, parent }),
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            error_type: None,
        });
        Self { telemetry: Arc::clone(telemetry), parent, operation: Some(operation), started: Instant::now() }
    }

    /// The context to pass on to what the operation calls: its own, or that of its parent if its span is not recorded.
    pub fn context(&self) -> Option<SpanContext> {
        let span = self.operation.as_ref().and_then(|operation| operation.span);
        span.map(|span| span.context).or(self.parent)
    }

    /// What is done, for details that are known only later.
    pub fn kind_mut(&mut self) -> Option<&mut OperationKind> {
        self.operation.as_mut().map(|operation| &mut operation.kind)
    }

    /// Records the operation; `error_type` is `None` on success.
    pub fn end(mut self, error_type: Option<Cow<'static, str>>) {
        self.record(error_type);
    }

    /// Forgets the operation, because it turned out that nothing was done.
    pub fn discard(mut self) {
        self.operation = None;
    }

    fn record(&mut self, error_type: Option<Cow<'static, str>>) {
        if let Some(mut operation) = self.operation.take() {
            operation.duration = self.started.elapsed();
            operation.error_type = error_type;
            self.telemetry.record(operation);
        }
    }
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        self.record(Some(Cow::Borrowed(CANCELLED)));
    }
}
