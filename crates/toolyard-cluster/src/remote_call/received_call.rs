//! [`ReceivedCall`]: a request of another process as a call that this process executes.

use std::{borrow::Cow, sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{
    CallContext, Caller, ContentHash, ErrorKind, ExtendableDeadline, SourceId, SourceSignal, ToolCallRequest,
    ToolError,
};

use super::{
    outbox::Outbox,
    remote_caller::RemoteCaller,
    wire::request::{RefusedRequest, WireExtension, WireRequest},
};

/// No call is executed longer than this, whatever its request says.
const MAX_CALL_DURATION: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a paused deadline is checked at most, however short the idle timeout is.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How much earlier than its caller the executor ends a call, so that the caller gets its error instead of running out of time
/// at the same moment.
const OUTCOME_MARGIN: Duration = Duration::from_millis(20);

/// A call as the tool gets it.
#[derive(Debug)]
pub(super) struct ReceivedCall {
    pub(super) source: SourceId,
    pub(super) definition: Option<ContentHash>,
    pub(super) request: ToolCallRequest,
    pub(super) context: CallContext,
    pub(super) outbox: Arc<Outbox>,
}

impl ReceivedCall {
    /// Reads a request.
    ///
    /// # Errors
    /// If the request is malformed or of another version. The error says that nothing was called.
    pub(super) fn decode(message: &[u8]) -> Result<Self, ToolError> {
        let wire = WireRequest::decode(message).map_err(|refused| refusal(&refused))?;
        let outbox = Arc::new(Outbox::default());
        let now = Instant::now();
        let remaining = duration(wire.remaining_ms);
        let mut context = CallContext::until((now + remaining.saturating_sub(margin(remaining))).into_std());
        context.attempt = wire.attempt;
        context.idempotency_key = wire.idempotency_key;
        context.owner = wire.owner;
        context.span = wire.span;
        context.extendable_deadline = wire.extension.map(|extension| {
            let outbox = Arc::clone(&outbox);
            let deadline = extendable_deadline(&extension, now);
            Arc::new(deadline.with_activity_observer(move || outbox.record_activity()))
        });
        context.caller = wire.caller.map(|caller| -> Arc<dyn Caller> {
            Arc::new(RemoteCaller::new(caller, wire.identity.as_ref(), Arc::clone(&outbox)))
        });
        context.identity = wire.identity;
        let request = ToolCallRequest {
            id: wire.id.into_owned(),
            tool_name: wire.tool.into_owned(),
            arguments: wire.arguments,
            source: wire.requested_source.map(Cow::into_owned),
        };
        Ok(Self { source: wire.source, definition: wire.definition, request, context, outbox })
    }

    /// When the call ends if the tool does not, unless there is activity until then.
    pub(super) fn deadline(&self) -> Instant {
        let extended = self.context.extendable_deadline.as_ref().map(|deadline| deadline.deadline());
        let deadline = extended.map_or(self.context.deadline, |extended| extended.max(self.context.deadline));
        Instant::from_std(deadline)
    }

    /// When to check the deadline next: it comes closer when a pause ends.
    pub(super) fn next_check(&self, now: Instant) -> Instant {
        let deadline = self.deadline();
        self.context.extendable_deadline.as_ref().map_or(deadline, |extendable| {
            deadline.min(now + extendable.idle_timeout().max(MIN_CHECK_INTERVAL))
        })
    }
}

/// The deadline of the caller, on the clock of this process and a little earlier.
fn extendable_deadline(wire: &WireExtension, now: Instant) -> ExtendableDeadline {
    let idle_timeout = duration(wire.idle_timeout_ms);
    let remaining = duration(wire.remaining_ms);
    let max_remaining = duration(wire.max_remaining_ms).max(remaining);
    // A part of the idle timeout may have passed already.
    let elapsed = idle_timeout.saturating_sub(remaining);
    let (start, elapsed) = now.checked_sub(elapsed).map_or((now, Duration::ZERO), |start| (start, elapsed));
    let margin = margin(remaining.min(idle_timeout));
    let earlier = |duration: Duration| duration.saturating_sub(margin);
    ExtendableDeadline::new(start.into_std(), earlier(idle_timeout), earlier(max_remaining + elapsed))
}

fn margin(duration: Duration) -> Duration {
    OUTCOME_MARGIN.min(duration / 10)
}

fn duration(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(MAX_CALL_DURATION)
}

fn refusal(refused: &RefusedRequest) -> ToolError {
    let error = ToolError::new(
        ErrorKind::Unavailable,
        format!("another process of the cluster did not call the tool: {refused}"),
    )
    // The source has nothing to do with it.
    .with_source_signal(SourceSignal::Unknown);
    match refused {
        RefusedRequest::Version(_) => {
            error.with_operator_hint("run the same version of Toolyard on all machines of the cluster")
        }
        RefusedRequest::Malformed(_) => error.with_retryable(false),
    }
}
