//! Reports runs, plans, steps and model calls to the telemetry of the hub.

use std::{borrow::Cow, num::NonZeroU128};

use toolyard_core::{
    ContentHash, ErrorKind, Lease, RunId, ToolError,
    telemetry::{OperationKind, RunningOperation, SpanContext},
};
use toolyard_model::{ModelCallOperation, ModelError, ModelReply, ModelRequest};

use super::context::Context;
use crate::{Agent, AgentError, ModelTask, RunEnd, RunRequest};

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";

/// The operation of a run while this process drives it.
#[derive(Debug)]
pub(super) struct RunOperation {
    running: Option<RunningOperation>,
    /// The span that causes what the run does.
    pub(super) span: Option<SpanContext>,
}

impl RunOperation {
    /// Continues the trace that caused the run. A run without one is a trace of its own, which its resumptions continue.
    pub(super) fn start(
        agent: &Agent,
        lease: &Lease,
        request: Option<&RunRequest>,
        is_resumed: bool,
    ) -> Self {
        let parent = request.and_then(parent_of);
        let running = agent.parts.hub.telemetry().map(|telemetry| {
            let kind = OperationKind::AgentRun {
                agent: agent.parts.config.name.as_str().into(),
                run: lease.run.clone(),
                conversation: request
                    .and_then(|request| Some(request.conversation.as_ref()?.name.as_str().into())),
            };
            let trace_id = trace_of(&lease.run);
            match parent {
                Some(parent) => RunningOperation::start(telemetry, Some(parent), kind),
                // The root is the same in every process.
                None if is_resumed => {
                    RunningOperation::start(telemetry, telemetry.start_trace(trace_id), kind)
                }
                None => RunningOperation::start_trace(telemetry, trace_id, kind),
            }
        });
        let span = running.as_ref().and_then(RunningOperation::context).or(parent);
        Self { running, span }
    }

    pub(super) fn end(self, result: &Result<RunEnd, AgentError>) {
        let Some(running) = self.running else { return };
        let error_type = match result {
            Ok(RunEnd::Answered { .. } | RunEnd::Planned | RunEnd::Suspended { .. })
            | Err(AgentError::Released(_)) => None,
            Ok(RunEnd::Partial { .. }) => Some("partial"),
            Ok(RunEnd::Failed { .. }) => Some("failed"),
            Ok(RunEnd::Cancelled) => Some("cancelled"),
            Ok(RunEnd::LimitReached { .. }) => Some("limit_reached"),
            Err(_) => Some("internal"),
        };
        running.end(error_type.map(Cow::Borrowed));
    }
}

/// The id of the trace that a run belongs to, whichever process drives it: that of the request that caused the run, or else the
/// 128 bits of the run's id. It is the id of no recorded trace if nobody recorded one.
pub fn run_trace_id(run: &RunId, request: &RunRequest) -> NonZeroU128 {
    parent_of(request).map_or_else(|| trace_of(run), |parent| parent.trace_id)
}

fn parent_of(request: &RunRequest) -> Option<SpanContext> {
    request.traceparent.as_deref()?.parse().ok()
}

/// The id of the trace of a run that nothing traced caused.
fn trace_of(run: &RunId) -> NonZeroU128 {
    // An embedder's journal may have ids of another form.
    let hashed = || {
        let hash = ContentHash::of(run.as_str());
        u128::from_be_bytes(std::array::from_fn(|at| hash.as_bytes().get(at).copied().unwrap_or_default()))
    };
    let id = ulid::Ulid::from_string(run.as_str()).map_or_else(|_| hashed(), |ulid| ulid.0);
    NonZeroU128::new(id).unwrap_or(NonZeroU128::MIN)
}

impl Context<'_> {
    fn start(&self, parent: Option<SpanContext>, kind: OperationKind) -> Option<RunningOperation> {
        self.parts.hub.telemetry().map(|telemetry| RunningOperation::start(telemetry, parent, kind))
    }

    /// Starts the operation of a step's call.
    pub(super) fn start_step(&self, step: &str, tool: &str, is_known_tool: bool) -> Option<RunningOperation> {
        let kind = OperationKind::Step { tool: Some(tool.into()), is_known_tool, step: step.into() };
        self.start(self.span, kind)
    }

    /// Starts the operation that a model call belongs to: planning, or a step of reasoning. None for other calls, which belong
    /// to the run.
    pub(super) fn start_model_task(&self, task: &ModelTask) -> Option<RunningOperation> {
        let kind = match task {
            ModelTask::Plan { .. } => {
                OperationKind::Planning { agent: self.parts.config.name.as_str().into() }
            }
            ModelTask::Reason { step } => {
                OperationKind::Step { tool: None, is_known_tool: false, step: step.as_str().into() }
            }
            ModelTask::Repair { .. } | ModelTask::Judge { .. } | ModelTask::Answer | ModelTask::Review => {
                return None;
            }
        };
        self.start(self.span, kind)
    }

    /// Starts the operation of a model call, which belongs to `task` or else to the run.
    pub(super) fn start_model_call(
        &self,
        task: Option<&RunningOperation>,
        request: &ModelRequest,
    ) -> Option<ModelCallOperation> {
        let parent = task.and_then(RunningOperation::context).or(self.span);
        let telemetry = self.parts.hub.telemetry()?;
        Some(ModelCallOperation::start(telemetry, parent, &*self.parts.model, request))
    }
}

/// Ends the operation that a model call belongs to.
pub(super) fn end_model_task(running: Option<RunningOperation>, reply: &Result<ModelReply, ModelError>) {
    if let Some(running) = running {
        let error_type = reply.as_ref().err().map(|error| Cow::Borrowed(error.kind.as_str()));
        running.end(error_type);
    }
}

/// Ends the operation of a step's call.
pub(super) fn end_step(running: Option<RunningOperation>, error: Option<&ToolError>) {
    if let Some(running) = running {
        running.end(error.map(|error| Cow::Borrowed(error_type(error))));
    }
}

fn error_type(error: &ToolError) -> &'static str {
    if error.kind() == ErrorKind::Failed { TOOL_ERROR } else { error.kind().as_str() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_run_has_the_bits_of_its_id_unless_something_traced_caused_it() {
        let run = RunId::from("01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned());
        let mut request = RunRequest::default();
        let trace_id = |request: &RunRequest| format!("{:032x}", run_trace_id(&run, request));
        assert_eq!(trace_id(&request), "01563e3ab5d3d6764c61efb99302bd5b");
        request.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        assert_eq!(trace_id(&request), "0af7651916cd43dd8448eb211c80319c");
        request.traceparent = Some("no traceparent".into());
        assert_eq!(trace_id(&request), "01563e3ab5d3d6764c61efb99302bd5b");
        let others = ["run-1", "run-2", ""].map(|id| trace_of(&RunId::from(id.to_owned())));
        assert!(others[0] != others[1] && others[1] != others[2], "{others:?}");
    }
}
