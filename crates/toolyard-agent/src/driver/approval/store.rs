//! Reads and writes approval requests and decisions.

use toolyard_core::{
    ApprovalId, ApprovalKind, ApprovalOutcome, ApprovalRecord, Resolution, RunId, StepState, StorageError,
};

use super::super::{
    context::Context,
    retry::{is_transient, retry},
};
use crate::{
    Agent, AgentError, ApprovalDecision, ApprovalRequest, ApprovalState, Run, RunEvent, StepRun,
    run_log::load_run,
};

/// An approval request, before and after it is stored.
#[derive(Debug)]
pub(in crate::driver) struct PendingApproval {
    pub(super) request: ApprovalRequest,
    pub(super) text: String,
    /// Hash of the tool: the scope of "always".
    pub(super) tool: String,
    /// Hash of the tool and the arguments.
    pub(super) call: String,
}

/// A decision on an approval request, made here or elsewhere.
#[derive(Debug, Clone)]
pub(in crate::driver) struct Decision {
    allowed: bool,
    always: bool,
    by: String,
}

impl Decision {
    pub(super) fn of(record: &ApprovalRecord) -> Option<Self> {
        let outcome = record.outcome?;
        let (allowed, always) = (outcome.is_approved(), outcome == ApprovalOutcome::ApprovedForRun);
        Some(Self { allowed, always, by: record.decided_by.clone().unwrap_or_default() })
    }

    pub(super) fn into_event(self, step: String) -> RunEvent {
        let Self { allowed, always, by } = self;
        RunEvent::ApprovalDecided { step, allowed, always, by }
    }
}

/// What a run waits for from users.
#[derive(Debug, Default)]
pub(in crate::driver) struct PendingDecisions {
    /// Steps, and the ids of their approval requests.
    pub(super) approvals: Vec<(String, ApprovalId)>,
    /// Steps whose outcome is unknown, and their journal names.
    unknown: Vec<(String, String)>,
}

impl PendingDecisions {
    pub(in crate::driver) fn of(run: &Run) -> Self {
        let mut pending = Self::default();
        for step in run.steps() {
            let step_id = step.step.id.clone();
            match &step.approval {
                _ if step.phase.is_unknown() => pending.unknown.push((step_id, step.journal_name())),
                ApprovalState::Requested { id, .. } if !step.phase.is_ended() => {
                    pending.approvals.push((step_id, *id));
                }
                _ => {}
            }
        }
        pending
    }
}

/// Stores an approval request. A request stored before a crash is used again.
pub(super) async fn store_request(
    context: &Context<'_>,
    step: &StepRun,
    mut pending: PendingApproval,
) -> Result<Box<PendingApproval>, AgentError> {
    let mut may_exist = context.resumed;
    let stored = retry(context.retry_window(), always_transient, || {
        // An attempt that reported a failure may have succeeded nevertheless.
        let look_up = std::mem::replace(&mut may_exist, true);
        find_or_store(context, step, &pending.text, look_up)
    });
    pending.request.id = stored.await.map_err(AgentError::Approvals)?;
    Ok(Box::new(pending))
}

async fn find_or_store(
    context: &Context<'_>,
    step: &StepRun,
    text: &str,
    look_up: bool,
) -> Result<ApprovalId, StorageError> {
    let (approvals, run) = (&context.parts.approvals, &context.lease.run);
    let name = step.journal_name();
    if look_up {
        let is_same = |record: &&ApprovalRecord| {
            record.outcome.is_none()
                && record.step.as_deref() == Some(&name)
                && record.text == *toolyard_core::redact(text)
        };
        if let Some(stored) = approvals.approvals_of_run(run).await?.iter().find(is_same) {
            return Ok(stored.id);
        }
    }
    approvals.request_approval(run, Some(&name), ApprovalKind::ToolCall, text).await
}

/// Asks the watcher, and stores its decision unless another one was stored first.
pub(super) async fn decide(
    context: &Context<'_>,
    request: &ApprovalRequest,
) -> Result<Option<Decision>, StorageError> {
    let approvals = &context.parts.approvals;
    let Some(decision) = context.watcher.decide(request).await else {
        return Ok(None);
    };
    let (outcome, by) = (decision.outcome(), "the caller".to_owned());
    let is_first =
        retry(context.retry_window(), always_transient, || approvals.decide(request.id, outcome, &by));
    if is_first.await? {
        let (allowed, always) = (outcome.is_approved(), decision == ApprovalDecision::AllowAlways);
        return Ok(Some(Decision { allowed, always, by }));
    }
    // Another decision was first, or an attempt that reported a failure has stored this one.
    let stored = retry(context.retry_window(), always_transient, || approvals.approval(request.id)).await?;
    Ok(stored.as_ref().and_then(Decision::of))
}

/// Reads the decisions that were made elsewhere.
pub(in crate::driver) async fn poll_decisions(
    context: &Context<'_>,
    pending: &PendingDecisions,
) -> Result<Vec<RunEvent>, AgentError> {
    let (parts, run) = (context.parts, &context.lease.run);
    let mut events = Vec::new();
    for (step, id) in &pending.approvals {
        let record = retry(context.retry_window(), always_transient, || parts.approvals.approval(*id)).await;
        if let Some(decision) = record.map_err(AgentError::Approvals)?.as_ref().and_then(Decision::of) {
            events.push(decision.into_event(step.clone()));
        }
    }
    for (step, name) in &pending.unknown {
        let record = retry(context.retry_window(), is_transient, || parts.log.step(run, name)).await?;
        if let Some(resolution) = record.and_then(|record| resolution(record.state)) {
            events.push(RunEvent::StepResolved { step: step.clone(), resolution });
        }
    }
    Ok(events)
}

/// Denies a request that no longer needs a decision, so that no approver sees it.
pub(super) async fn close(context: &Context<'_>, id: ApprovalId, by: &str) {
    settle(context, id, ApprovalOutcome::Denied, by).await;
}

/// Stores how a request was decided without an approver.
pub(in crate::driver) async fn settle(
    context: &Context<'_>,
    id: ApprovalId,
    outcome: ApprovalOutcome,
    by: &str,
) {
    if let Err(error) = context.parts.approvals.decide(id, outcome, by).await {
        tracing::warn!(run = %context.lease.run, id = id.0, %error, "failed to close an obsolete approval request");
    }
}

/// The approval store does not say whether a failure is transient.
fn always_transient(_: &StorageError) -> bool {
    true
}

/// How a user resolved an unknown outcome. `Done` means that the call was made, whether it succeeded or failed: it is not
/// repeated.
fn resolution(state: StepState) -> Option<Resolution> {
    match state {
        StepState::Done | StepState::Failed => Some(Resolution::Done),
        StepState::NotDone => Some(Resolution::NotDone),
        StepState::Started | StepState::Unknown => None,
    }
}

impl Agent {
    /// Whether an approval that a suspended run waits for was decided, or a step with an unknown outcome was resolved.
    pub async fn has_decision(&self, run: &RunId) -> Result<bool, AgentError> {
        let (state, _) = load_run(&*self.parts.log, run).await?;
        let pending = PendingDecisions::of(&state);
        for (_, name) in &pending.unknown {
            let record = self.parts.log.step(run, name).await?;
            if record.is_some_and(|record| resolution(record.state).is_some()) {
                return Ok(true);
            }
        }
        for (_, id) in &pending.approvals {
            let record = self.parts.approvals.approval(*id).await.map_err(AgentError::Approvals)?;
            if record.is_some_and(|record| record.outcome.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
