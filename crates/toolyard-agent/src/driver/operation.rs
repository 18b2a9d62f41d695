//! Reports runs, plans, steps and model calls to the telemetry of the hub.

use std::{borrow::Cow, num::NonZeroU128};

use toolyard_core::{
    ContentHash, ErrorKind, Lease, RunId, ToolError,
    telemetry::{OperationKind, RunningOperation, SpanContext, TokenUsage},
};
use toolyard_model::{Model, ModelError, ModelReply};

use super::{context::Context, steps::call::StepCallOutcome};
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
    /// Continues the trace that caused the run. A run without one is a trace of its own, which its resumptions share.
    pub(super) fn start(agent: &Agent, lease: &Lease, request: Option<&RunRequest>) -> Self {
        let parent = request.and_then(|request| request.traceparent.as_deref()?.parse().ok());
        let running = agent.parts.hub.telemetry().map(|telemetry| {
            let kind = OperationKind::AgentRun {
                agent: agent.parts.config.name.as_str().into(),
                run: lease.run.clone(),
            };
            match parent {
                Some(parent) => RunningOperation::start(telemetry, Some(parent), kind),
                None => RunningOperation::start_trace(telemetry, trace_of(&lease.run), kind),
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

/// The id of the trace of a run that nobody traces: the same in every process that drives it.
fn trace_of(run: &RunId) -> NonZeroU128 {
    let hash = ContentHash::of(run.as_str());
    let bytes = std::array::from_fn(|at| hash.as_bytes().get(at).copied().unwrap_or_default());
    NonZeroU128::new(u128::from_be_bytes(bytes)).unwrap_or(NonZeroU128::MIN)
}

impl Context<'_> {
    fn start(&self, parent: Option<SpanContext>, kind: OperationKind) -> Option<RunningOperation> {
        self.parts.hub.telemetry().map(|telemetry| RunningOperation::start(telemetry, parent, kind))
    }

    /// Starts the operation of a step's call.
    pub(super) fn start_step(&self, step: &str, tool: &str) -> Option<RunningOperation> {
        let kind = OperationKind::Step { tool: Some(tool.into()), step: step.into() };
        self.start(self.span, kind)
    }

    /// Starts the operation that a model call belongs to: planning, or a step of reasoning. None for other calls, which belong
    /// to the run.
    pub(super) fn start_model_task(&self, task: &ModelTask) -> Option<RunningOperation> {
        let kind = match task {
            ModelTask::Plan { .. } => {
                OperationKind::Planning { agent: self.parts.config.name.as_str().into() }
            }
            ModelTask::Reason { step } => OperationKind::Step { tool: None, step: step.as_str().into() },
            ModelTask::Repair { .. } | ModelTask::Judge { .. } | ModelTask::Answer => return None,
        };
        self.start(self.span, kind)
    }

    /// Starts the operation of a model call, which belongs to `task` or else to the run.
    pub(super) fn start_model_call(&self, task: Option<&RunningOperation>) -> Option<RunningOperation> {
        let model = &self.parts.model;
        let kind = OperationKind::ModelCall {
            provider: model.provider().into(),
            model: model.provider_model().into(),
            usage: TokenUsage::default(),
            cost_usd: None,
        };
        self.start(task.and_then(RunningOperation::context).or(self.span), kind)
    }
}

/// Ends the operation of a model call.
pub(super) fn end_model_call(
    running: Option<RunningOperation>,
    reply: &Result<ModelReply, ModelError>,
    model: &dyn Model,
) {
    let Some(mut running) = running else { return };
    if let (Some(OperationKind::ModelCall { usage, cost_usd, .. }), Ok(reply)) = (running.kind_mut(), reply) {
        *usage = TokenUsage { input: reply.usage.input, output: reply.usage.output };
        let cost_micros = match reply.usage.cost_micros {
            0 => model.cost(&reply.usage),
            reported => reported,
        };
        // Exact up to 2^53 millionths.
        #[expect(clippy::cast_precision_loss, reason = "costs are far below the limit")]
        let cost = cost_micros as f64 / 1e6;
        *cost_usd = (cost_micros > 0).then_some(cost);
    }
    end_model_task(Some(running), reply);
}

/// Ends the operation that a model call belongs to.
pub(super) fn end_model_task(running: Option<RunningOperation>, reply: &Result<ModelReply, ModelError>) {
    if let Some(running) = running {
        let error_type = reply.as_ref().err().map(|error| Cow::Borrowed(error.kind.as_str()));
        running.end(error_type);
    }
}

/// Ends the operation of a step's call.
pub(super) fn end_step(running: Option<RunningOperation>, outcome: &StepCallOutcome) {
    if let Some(running) = running {
        running.end(match outcome {
            StepCallOutcome::Done { .. } => None,
            StepCallOutcome::Failed(error) | StepCallOutcome::NoTool(error) => {
                Some(Cow::Borrowed(error_type(error)))
            }
        });
    }
}

fn error_type(error: &ToolError) -> &'static str {
    if error.kind() == ErrorKind::Failed { TOOL_ERROR } else { error.kind().as_str() }
}
