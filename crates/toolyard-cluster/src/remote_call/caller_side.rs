//! The side that waits: sends a call to another process, relays what its tool reports and asks, and returns the outcome.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use toolyard_core::{
    BoxFuture, CallContext, CallInputError, CallInputRequest, Caller, ContentHash, ErrorKind, Exchange,
    ExtendableDeadline, PeerError, Peers, RawJson, SourceId, SourceSignal, ToolCallRequest, ToolError,
    ToolOutput,
};

use super::wire::{
    input::WireAnswer,
    message::{CallerMessage, ExecutorMessage, WireInput},
    request::{TOOL_CALL_SERVICE, WireRequest},
};

/// Input requests of one call that may be unanswered at the same time. Toolyard's tools have one.
const MAX_OPEN_INPUTS: usize = 32;

/// The tool that another process is to call; its name is in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTarget {
    /// The source of the tool.
    pub source: SourceId,
    /// The hash of the tool's definition. If it is given, the other process must not call a tool that is defined otherwise.
    pub definition: Option<ContentHash>,
}

/// Calls a tool in another process. Dropping the future cancels the call.
///
/// As for [`toolyard_core::Tool::call`], the deadline of the context is kept by the side that polls the future. The other process keeps
/// it, too.
///
/// # Errors
/// - Those of the tool, unchanged.
/// - [`ErrorKind::Unavailable`] if the process certainly received nothing.
/// - [`ErrorKind::ResponseLost`] if it may have called the tool and the outcome got lost.
///
/// None of the last two says anything about the source ([`SourceSignal::Unknown`]).
pub async fn call_remote(
    peers: &dyn Peers,
    process: u64,
    target: &CallTarget,
    request: &ToolCallRequest,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let message = encode_request(target, request, context)?;
    match peers.open(process, TOOL_CALL_SERVICE, message).await {
        Ok(exchange) => await_outcome(exchange, target, request, context).await,
        Err(error) => Err(peer_failure(&error, true).on_tool(&request.tool_name).on_source(&target.source)),
    }
}

/// The message that opens the exchange of a call.
///
/// # Errors
/// [`ErrorKind::Unavailable`] if the call cannot be written as JSON.
pub fn encode_request(
    target: &CallTarget,
    request: &ToolCallRequest,
    context: &CallContext,
) -> Result<Vec<u8>, ToolError> {
    WireRequest::new(&target.source, target.definition, request, context).encode().map_err(|error| {
        ToolError::new(ErrorKind::Unavailable, format!("the call cannot be written as JSON: {error}"))
            .with_retryable(false)
            .with_source_signal(SourceSignal::Unknown)
            .on_tool(&request.tool_name)
            .on_source(&target.source)
    })
}

/// Waits for the outcome of a call whose exchange was opened with [`encode_request`]. Dropping the future cancels the call.
///
/// # Errors
/// As [`call_remote`].
pub async fn await_outcome(
    mut exchange: Box<dyn Exchange>,
    target: &CallTarget,
    request: &ToolCallRequest,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let mut relay = Relay { context, inputs: Vec::new() };
    match relay.run(&mut *exchange).await {
        Ok(outcome) => outcome,
        Err(error) => Err(error.on_tool(&request.tool_name).on_source(&target.source)),
    }
}

/// Relays between the exchange and the caller.
struct Relay<'a> {
    context: &'a CallContext,
    inputs: Vec<OpenInput<'a>>,
}

/// Input requests that the caller has not answered yet.
struct OpenInput<'a> {
    number: u64,
    answer: BoxFuture<'a, InputAnswer>,
}

type InputAnswer = Result<Vec<RawJson>, CallInputError>;

enum Event {
    Received(Result<Option<Vec<u8>>, PeerError>),
    Answered(u64, InputAnswer),
}

impl<'a> Relay<'a> {
    /// The outcome that the executor reports, or the failure of the exchange.
    async fn run(&mut self, exchange: &mut dyn Exchange) -> Result<Result<ToolOutput, ToolError>, ToolError> {
        // Until the executor has answered, the request may turn out not to have reached it.
        let mut is_silent = true;
        loop {
            let event = tokio::select! {
                biased;
                message = exchange.receive() => Event::Received(message),
                (number, answer) = next_answer(&mut self.inputs), if !self.inputs.is_empty() => {
                    Event::Answered(number, answer)
                }
            };
            let reply = match event {
                Event::Received(Ok(Some(message))) => {
                    is_silent = false;
                    match ExecutorMessage::decode(&message) {
                        Ok(ExecutorMessage::Outcome(outcome)) => return Ok(*outcome),
                        Ok(message) => self.handle_message(message)?,
                        Err(error) => return Err(lost(&format!("malformed message: {error}"))),
                    }
                }
                Event::Received(Ok(None)) => {
                    return Err(lost("the process ended the call without an outcome"));
                }
                Event::Received(Err(error)) => return Err(peer_failure(&error, is_silent)),
                Event::Answered(number, answer) => Some(WireAnswer::new(number, answer)),
            };
            if let Some(answer) = reply {
                send_answer(exchange, answer).await?;
            }
        }
    }

    /// Handles a message that is not the outcome. Returns an answer that is known at once.
    fn handle_message(&mut self, message: ExecutorMessage) -> Result<Option<WireAnswer>, ToolError> {
        let context = self.context;
        let caller = context.caller.as_deref();
        match message {
            ExecutorMessage::Progress { progress, is_activity } => {
                if is_activity {
                    self.record_activity();
                }
                caller.inspect(|caller| caller.progress(&progress));
            }
            ExecutorMessage::Log(params) => {
                caller.inspect(|caller| caller.log(&params));
            }
            ExecutorMessage::Unsupported(request) => {
                caller.inspect(|caller| caller.note_unsupported(&request.into()));
            }
            ExecutorMessage::Activity => self.record_activity(),
            ExecutorMessage::Input(input) => return self.open_input(input),
            ExecutorMessage::CancelInput(number) => self.inputs.retain(|input| input.number != number),
            // The outcome is handled before.
            ExecutorMessage::Outcome(_) | ExecutorMessage::Unknown => {}
        }
        Ok(None)
    }

    fn open_input(&mut self, input: WireInput<'static>) -> Result<Option<WireAnswer>, ToolError> {
        let WireInput { number, requests } = input;
        if self.inputs.iter().any(|input| input.number == number) {
            return Err(lost("malformed message: two input requests with one number"));
        }
        let Some(caller) = &self.context.caller else {
            return Ok(Some(WireAnswer::new(number, Err(CallInputError::unsupported()))));
        };
        if self.inputs.len() >= MAX_OPEN_INPUTS {
            let message = format!("more than {MAX_OPEN_INPUTS} input requests at the same time");
            return Ok(Some(WireAnswer::new(number, Err(CallInputError::Failed(message)))));
        }
        let requests = requests.into_iter().map(CallInputRequest::from).collect();
        let deadline = self.context.extendable_deadline.as_deref();
        self.inputs.push(OpenInput { number, answer: Box::pin(ask(caller, requests, deadline)) });
        Ok(None)
    }

    fn record_activity(&self) {
        if let Some(deadline) = &self.context.extendable_deadline {
            deadline.record_activity(tokio::time::Instant::now().into_std());
        }
    }
}

/// Asks the caller. The idle timeout of the call is paused meanwhile.
async fn ask(
    caller: &Arc<dyn Caller>,
    requests: Vec<CallInputRequest>,
    deadline: Option<&ExtendableDeadline>,
) -> InputAnswer {
    let _pause = deadline.map(DeadlinePause::new);
    caller.request_input(&requests).await
}

/// Waits for the next answer and removes its request.
async fn next_answer(inputs: &mut Vec<OpenInput<'_>>) -> (u64, InputAnswer) {
    let mut poll_inputs = |context: &mut Context<'_>| {
        for (position, input) in inputs.iter_mut().enumerate() {
            if let Poll::Ready(answer) = input.answer.as_mut().poll(context) {
                return Poll::Ready((inputs.swap_remove(position).number, answer));
            }
        }
        Poll::Pending
    };
    poll_fn(&mut poll_inputs).await
}

async fn send_answer(exchange: &mut dyn Exchange, answer: WireAnswer) -> Result<(), ToolError> {
    let message = CallerMessage::Answer(answer)
        .encode()
        .map_err(|error| lost(&format!("an answer cannot be written as JSON: {error}")))?;
    exchange.send(message).await.map_err(|error| peer_failure(&error, false))
}

/// The error of a call whose exchange failed. Whether the executor received the request matters, not whether it received the last
/// message.
fn peer_failure(error: &PeerError, may_be_unreceived: bool) -> ToolError {
    match error {
        PeerError::NotReached(_) if may_be_unreceived => {
            ToolError::new(ErrorKind::Unavailable, error.to_string())
                .with_source_signal(SourceSignal::Unknown)
        }
        PeerError::NotReached(problem) | PeerError::Lost(problem) => lost(problem),
    }
}

/// The executor may have called the tool.
fn lost(problem: &str) -> ToolError {
    let message = format!("lost the process of the cluster that executes the call: {problem}");
    ToolError::new(ErrorKind::ResponseLost, message).with_source_signal(SourceSignal::Unknown)
}

/// Pauses the idle timeout of a call, also if the future that waits is dropped.
struct DeadlinePause<'a>(&'a ExtendableDeadline);

impl<'a> DeadlinePause<'a> {
    fn new(deadline: &'a ExtendableDeadline) -> Self {
        deadline.pause();
        Self(deadline)
    }
}

impl Drop for DeadlinePause<'_> {
    fn drop(&mut self) {
        self.0.resume(tokio::time::Instant::now().into_std());
    }
}
