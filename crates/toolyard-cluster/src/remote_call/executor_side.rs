//! The side that executes: [`ToolCallService`] finds the tool, calls it, and sends back what it reports and returns.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, error::Elapsed, sleep_until, timeout_at};
use toolyard_core::{
    BoxFuture, ContentHash, ErrorKind, Exchange, PeerError, PeerService, SourceId, SourceSignal, Tool,
    ToolError, ToolOutput,
};

use super::{
    outbox::Outbox,
    received_call::ReceivedCall,
    wire::{
        error::WireError,
        message::{CallerMessage, NoFields, OutgoingMessage},
    },
};

/// How often a caller is told of activity: this many times per idle timeout.
const ACTIVITY_REPORTS_PER_IDLE_TIMEOUT: u32 = 10;
/// How long the exchange may take to accept the outcome.
const OUTCOME_SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The tools that a process executes for others.
pub trait LocalTools: Send + Sync {
    /// Finds a tool.
    ///
    /// # Errors
    /// If there is no such tool here, or if `definition` is given and is not the hash of its definition. The error is the outcome of the
    /// call, so its kind must be one that says that nothing was called ([`ToolError::had_no_effect`]).
    fn find(
        &self,
        source: &SourceId,
        tool: &str,
        definition: Option<&ContentHash>,
    ) -> Result<Arc<dyn Tool>, ToolError>;
}

/// Executes tool calls of other processes ([`TOOL_CALL_SERVICE`](super::TOOL_CALL_SERVICE)).
///
/// A call ends early when its exchange ends or its deadline passes; the future of the tool is dropped then.
pub struct ToolCallService<T> {
    tools: T,
}

type Outcome = Result<ToolOutput, ToolError>;
type CaughtOutcome = std::thread::Result<Outcome>;

/// What happens while a tool is at work.
enum Event {
    Finished(CaughtOutcome),
    Received(Result<Option<Vec<u8>>, PeerError>),
    /// There is something to send, or it is time to check the deadline.
    Wake,
}

impl<T: LocalTools> ToolCallService<T> {
    /// A service that executes calls of these tools.
    pub fn new(tools: T) -> Self {
        Self { tools }
    }

    async fn execute(&self, request: Vec<u8>, mut exchange: Box<dyn Exchange>) {
        let outcome = match ReceivedCall::decode(&request) {
            Ok(call) => {
                drop(request);
                // Tasks of the tool may outlive the call.
                let _end = CloseOnDrop(&call.outbox);
                let outcome = {
                    let work = pin!(AssertUnwindSafe(self.call_tool(&call)).catch_unwind());
                    drive(&call, work, &mut *exchange).await
                };
                let Some(outcome) = outcome else { return };
                call.outbox.close();
                while let Some(message) = call.outbox.pop() {
                    if !send(&mut *exchange, message, Instant::now() + OUTCOME_SEND_TIMEOUT).await {
                        return;
                    }
                }
                outcome
            }
            Err(error) => {
                tracing::warn!(%error, "refused a tool call of another process");
                Err(error)
            }
        };
        // With the outcome the exchange is over, so that neither side has to say so in a message of its own.
        let sending = exchange.send_last(encode_outcome(outcome));
        report_sent(timeout_at(Instant::now() + OUTCOME_SEND_TIMEOUT, sending).await);
    }

    async fn call_tool(&self, call: &ReceivedCall) -> Outcome {
        let ReceivedCall { source, definition, request, context, .. } = call;
        let tool = self.tools.find(source, &request.tool_name, definition.as_ref())?;
        if tool.needs_conversation() {
            let message = "works on a conversation, so only the process of the caller can execute it";
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .with_retryable(false)
                .with_source_signal(SourceSignal::Unknown)
                .on_tool(&request.tool_name)
                .on_source(source));
        }
        tool.call(request, context).await
    }
}

impl<T> fmt::Debug for ToolCallService<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCallService").finish_non_exhaustive()
    }
}

impl<T: LocalTools + 'static> PeerService for ToolCallService<T> {
    fn serve(self: Arc<Self>, request: Vec<u8>, exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.execute(request, exchange).await })
    }
}

/// Relays between tool and caller until the tool is finished or its deadline has passed. `None` if the exchange has ended.
async fn drive<W>(call: &ReceivedCall, mut work: Pin<&mut W>, exchange: &mut dyn Exchange) -> Option<Outcome>
where
    W: Future<Output = CaughtOutcome>,
{
    let mut activity = ActivityReports::new(call);
    loop {
        let now = Instant::now();
        let wake_at =
            activity.next_at().map_or_else(|| call.next_check(now), |at| at.min(call.next_check(now)));
        let event = tokio::select! {
            biased;
            outcome = &mut work => Event::Finished(outcome),
            message = exchange.receive() => Event::Received(message),
            () = call.outbox.ready() => Event::Wake,
            () = sleep_until(wake_at) => Event::Wake,
        };
        match event {
            Event::Finished(outcome) => return Some(outcome.unwrap_or_else(|_panic| Err(panicked()))),
            Event::Received(Ok(Some(message))) => handle_message(&call.outbox, &message)?,
            Event::Received(Ok(None)) => return None,
            Event::Received(Err(error)) => {
                tracing::debug!(%error, "a tool call of another process is cancelled");
                return None;
            }
            Event::Wake => {
                while let Some(message) = call.outbox.pop() {
                    // Keeps the tool waiting while the exchange accepts no more, but not beyond the deadline.
                    if !send(exchange, message, call.deadline()).await {
                        return None;
                    }
                }
                if let Some(message) = activity.next_report()
                    && !send(exchange, message, call.deadline()).await
                {
                    return None;
                }
                if call.deadline() <= Instant::now() {
                    return Some(Err(timed_out()));
                }
            }
        }
    }
}

/// Handles a message of the caller; `None` if it is malformed, so that the caller is not to be relied on.
fn handle_message(outbox: &Outbox, message: &[u8]) -> Option<()> {
    match CallerMessage::decode(message) {
        Ok(CallerMessage::Answer(answer)) => outbox.handle_answer(answer),
        Ok(CallerMessage::Unknown) => {}
        Err(error) => {
            tracing::warn!(%error, "malformed message of another process; its tool call is cancelled");
            return None;
        }
    }
    Some(())
}

/// Sends a message. Returns whether the exchange goes on.
async fn send(exchange: &mut dyn Exchange, message: Vec<u8>, until: Instant) -> bool {
    report_sent(timeout_at(until, exchange.send(message)).await)
}

fn report_sent(sent: Result<Result<(), PeerError>, Elapsed>) -> bool {
    match sent {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot send to the process that waits for a tool call");
            false
        }
        Err(_elapsed) => {
            tracing::warn!("the process that waits for a tool call accepts no messages");
            false
        }
    }
}

fn encode_outcome(outcome: Outcome) -> Vec<u8> {
    let encoded = match outcome {
        Ok(output) => OutgoingMessage::Success((&output).into()).encode(),
        Err(error) => OutgoingMessage::Failure(Box::new(WireError::from(error))).encode(),
    };
    encoded.unwrap_or_else(|error| {
        // The output is lost, but it is known that the call was made.
        let message = format!("the outcome cannot be written as JSON: {error}");
        let error = ToolError::new(ErrorKind::Internal, message);
        OutgoingMessage::Failure(Box::new(error.into())).encode().unwrap_or_default()
    })
}

fn panicked() -> ToolError {
    ToolError::new(ErrorKind::Internal, "the tool panicked").with_operator_hint(
        "this is a bug in the tool; the panic message is on stderr of the process that executed it",
    )
}

fn timed_out() -> ToolError {
    ToolError::new(ErrorKind::Timeout, "did not answer before the deadline of the call")
        .with_operator_hint("raise the limit with --timeout or `[call] timeout`")
}

/// Decides when the caller is told that the call is active: at once, then at intervals that are short compared with the idle timeout.
struct ActivityReports<'a> {
    outbox: &'a Outbox,
    interval: Duration,
    not_before: Instant,
}

impl<'a> ActivityReports<'a> {
    fn new(call: &'a ReceivedCall) -> Self {
        let idle_timeout = call.context.extendable_deadline.as_ref().map(|deadline| deadline.idle_timeout());
        let interval = idle_timeout.unwrap_or_default() / ACTIVITY_REPORTS_PER_IDLE_TIMEOUT;
        Self { outbox: &call.outbox, interval, not_before: Instant::now() }
    }

    /// When the next report is due, if there is activity to report.
    fn next_at(&self) -> Option<Instant> {
        self.outbox.has_activity().then_some(self.not_before)
    }

    /// The report, if it is due.
    fn next_report(&mut self) -> Option<Vec<u8>> {
        let now = Instant::now();
        if now < self.not_before || !self.outbox.take_activity() {
            return None;
        }
        self.not_before = now + self.interval;
        OutgoingMessage::Activity(NoFields {}).encode().ok()
    }
}

/// Ends what tasks of a tool may still want from its caller.
struct CloseOnDrop<'a>(&'a Outbox);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
