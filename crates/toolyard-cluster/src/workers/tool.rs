//! [`WorkerTool`]: a tool of a group of workers, as the gateway calls it.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, ErrorKind, NameClaim, PeerError, SourceId, SourceSignal, Tool,
    ToolCallRequest, ToolError, ToolErrorParts, ToolOutput, ToolSpec, WorkerEndpoint, WorkerNetwork,
};

use super::message::WorkerRefusal;
use crate::{
    CallOutcomes,
    remote_call::{CallTarget, ReplayedExchange, await_outcome, encode_request},
};

/// The pauses between two attempts while all processes are busy grow from the first to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// How long before the deadline of a call the attempts end, so that the error can say that nothing was called.
const DEADLINE_MARGIN: Duration = Duration::from_millis(50);
/// When a caller may retry that found all processes busy until its deadline.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A tool of a group of workers.
pub struct WorkerTool {
    group: Arc<str>,
    source: SourceId,
    endpoint: WorkerEndpoint,
    spec: ToolSpec,
    claim: NameClaim,
    network: Arc<dyn WorkerNetwork>,
    outcomes: Arc<CallOutcomes>,
}

/// The outcome of one attempt, unless it was refused: nothing was called then, and another process may be free.
type Attempt = Result<Result<ToolOutput, ToolError>, WorkerRefusal>;

impl WorkerTool {
    /// A tool with this approved definition. Calls go to processes with the same one only.
    pub fn new(
        group: &str,
        spec: ToolSpec,
        definition: ContentHash,
        claim: NameClaim,
        network: Arc<dyn WorkerNetwork>,
    ) -> Self {
        Self {
            group: group.into(),
            source: worker_source(group),
            endpoint: WorkerEndpoint { tool: Arc::clone(&spec.name), definition },
            spec,
            claim,
            network,
            outcomes: Arc::default(),
        }
    }

    /// With calls that are counted together with those of other tools.
    #[must_use]
    pub fn counted_in(self, outcomes: Arc<CallOutcomes>) -> Self {
        Self { outcomes, ..self }
    }

    async fn execute(
        &self,
        request: &ToolCallRequest,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let request = ToolCallRequest {
            tool_name: self.spec.name.to_string(),
            // Means the group here, and nothing there.
            source: None,
            ..request.clone()
        };
        let deadline = context.extendable_deadline.as_ref().map(|deadline| deadline.deadline());
        let deadline = Instant::from_std(deadline.map_or(context.deadline, |it| it.max(context.deadline)));
        let give_up = deadline.checked_sub(DEADLINE_MARGIN).unwrap_or(deadline);
        let mut longest_pause = FIRST_PAUSE;
        loop {
            let refusal = match self.attempt(&request, context).await {
                Ok(outcome) => return outcome,
                Err(refusal) => refusal,
            };
            let pause = longest_pause.mul_f64(0.5 + fastrand::f64() / 2.0);
            if Instant::now() + pause >= give_up {
                return Err(self.refused(refusal));
            }
            sleep(pause).await;
            longest_pause = (longest_pause * 2).min(MAX_PAUSE);
        }
    }

    async fn attempt(&self, request: &ToolCallRequest, context: &CallContext) -> Attempt {
        let target = CallTarget { source: self.source.clone(), definition: Some(self.endpoint.definition) };
        // Written for each attempt, because it says how much time is left.
        let call = match encode_request(&target, request, context) {
            Ok(call) => call,
            Err(error) => return Ok(Err(error)),
        };
        let mut exchange = match self.network.open_tool(&self.group, &self.endpoint, call).await {
            Ok(exchange) => exchange,
            Err(error) => return Ok(Err(self.failure(&error))),
        };
        let first = match exchange.receive().await {
            Ok(Some(first)) => first,
            Ok(None) => {
                let ended = PeerError::Lost("the worker ended the call without an outcome".to_owned());
                return Ok(Err(self.failure(&ended)));
            }
            Err(error) => return Ok(Err(self.failure(&error))),
        };
        if let Some(refusal) = WorkerRefusal::decode(&first) {
            return Err(refusal);
        }
        let exchange = Box::new(ReplayedExchange::new(first, exchange));
        let outcome = await_outcome(exchange, &target, request, context).await;
        Ok(outcome.map_err(|error| as_called(error).on_tool(&self.spec.name).on_source(&self.source)))
    }

    fn failure(&self, error: &PeerError) -> ToolError {
        let group = &self.group;
        match error {
            PeerError::NotReached(_) if !self.network.is_connected() => {
                let message = format!(
                    "this gateway is not connected to NATS, so no process of worker group `{group}` can be reached; nothing was sent"
                );
                self.error(ErrorKind::Unavailable, message)
                    .with_operator_hint("check NATS and `[cluster] nats`; the gateway reconnects by itself")
                    .with_caller_hint("retry later")
            }
            PeerError::NotReached(reason) => {
                let message = format!(
                    "no process of worker group `{group}` serves this definition of the tool ({reason}); nothing was sent"
                );
                let hint = format!(
                    "start one: toolyard worker {group}; if its definitions changed: toolyard servers approve {group}"
                );
                self.error(ErrorKind::Unavailable, message).with_operator_hint(hint)
            }
            PeerError::Lost(reason) => {
                let message =
                    format!("lost the process of worker group `{group}` that executes the call: {reason}");
                self.error(ErrorKind::ResponseLost, message)
            }
        }
    }

    fn refused(&self, refusal: WorkerRefusal) -> ToolError {
        let state = match refusal {
            WorkerRefusal::Busy => "busy",
            WorkerRefusal::Leaving => "shutting down",
        };
        let message = format!(
            "the processes of worker group `{}` were {state} until the deadline of the call; nothing was called",
            self.group
        );
        self.error(ErrorKind::Unavailable, message)
            .with_retry_after(BUSY_RETRY_DELAY)
            .with_operator_hint("start more workers of this group, or raise --concurrency")
            .with_caller_hint("retry later")
    }

    /// Says nothing about the source: other tools of the group may be served by other processes.
    fn error(&self, kind: ErrorKind, message: String) -> ToolError {
        ToolError::new(kind, message)
            .with_source_signal(SourceSignal::Unknown)
            .on_tool(&self.spec.name)
            .on_source(&self.source)
    }
}

/// An error that a worker reports for a call that it took. Only the gateway itself knows that nothing was called: on a worker's word, a
/// client could repeat a call that had an effect.
fn as_called(error: ToolError) -> ToolError {
    if !error.had_no_effect() {
        return error;
    }
    let source_signal = Some(error.source_signal());
    let kind = ErrorKind::Failed;
    ToolErrorParts { kind, retryable: None, retry_after: None, source_signal, ..error.into() }.into()
}

/// The source of a group's tools.
fn worker_source(group: &str) -> SourceId {
    format!("{}{group}", SourceId::WORKER_PREFIX).into()
}

impl fmt::Debug for WorkerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerTool")
            .field("group", &self.group)
            .field("tool", &self.spec.name)
            .finish_non_exhaustive()
    }
}

impl Tool for WorkerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let pending = self.outcomes.begin();
            let outcome = self.execute(request, context).await;
            pending.end(&outcome);
            outcome
        })
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        Some(&self.claim)
    }
}
