//! Handlers of approvals: list those that are pending, and decide on them.

use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolyard_agent::{ApprovalDecision, Run, StepRun, decide_approval, load_run};
use toolyard_core::{ApprovalKind, ApprovalRecord, CallerIdentity, RunId};
use toolyard_mcp_server::RouteResponse;
use utoipa::ToSchema;

use super::{
    error::{ApiError, before, json_of},
    events::ApiApprovalScope,
    run_access,
    run_handlers::{agent_to_resume, pending_approvals},
    run_state::READ_TIMEOUT,
};
use crate::{agents::active_runs::ActiveRuns, api::extract::IsOperator};

/// A decision on an approval.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    allow: bool,
    #[serde(default)]
    scope: ApiApprovalScope,
}

/// A decision on an approval of a run. `approval` and `step` may be absent if only one approval is pending.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunDecisionBody {
    #[serde(default)]
    approval: Option<i64>,
    #[serde(default)]
    step: Option<String>,
    allow: bool,
    #[serde(default)]
    scope: ApiApprovalScope,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecidedApproval {
    run: String,
    approval: i64,
    allowed: bool,
    scope: ApiApprovalScope,
    /// Whether this gateway continues the run.
    resumed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ApprovalList {
    /// Oldest first.
    approvals: Vec<PendingApproval>,
}

/// A tool call that waits for approval.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PendingApproval {
    approval: i64,
    run: String,
    step: Option<String>,
    tool: Option<String>,
    source: Option<String>,
    /// What the call does, with its arguments; secrets are redacted.
    text: String,
    requested_at: i64,
}

/// `GET /approvals`.
pub(super) async fn list(runs: &ActiveRuns, identity: &CallerIdentity) -> Result<RouteResponse, ApiError> {
    let approvals = before(Instant::now() + READ_TIMEOUT, read_pending(runs, identity)).await?;
    Ok(json_of(StatusCode::OK, &ApprovalList { approvals }))
}

async fn read_pending(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
) -> Result<Vec<PendingApproval>, ApiError> {
    let mut pending = runs.config.approvals.pending_approvals().await.map_err(ApiError::store_unavailable)?;
    if identity.is_distinguished() {
        let mut own = Vec::new();
        for approval in pending {
            if run_access::check_access(runs, identity, &approval.run).await.is_ok() {
                own.push(approval);
            }
        }
        pending = own;
    }
    Ok(with_steps(runs, pending).await)
}

/// An error as for an approval that does not exist, if it belongs to a run that the caller may not see.
pub(super) async fn check_access(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    approval: i64,
) -> Result<(), ApiError> {
    if !identity.is_distinguished() {
        return Ok(());
    }
    let pending =
        async { runs.config.approvals.pending_approvals().await.map_err(ApiError::store_unavailable) };
    let pending = before(Instant::now() + READ_TIMEOUT, pending).await?;
    match pending.iter().find(|pending| pending.id == approval) {
        Some(pending) => run_access::check_access(runs, identity, &pending.run).await,
        None => Err(ApiError::not_found("approval_not_found", "there is no such pending approval")),
    }
}

/// The calls of a run that wait for approval.
pub(super) async fn pending_of_run(runs: &ActiveRuns, run: &RunId) -> Result<Vec<PendingApproval>, ApiError> {
    Ok(with_steps(runs, pending_approvals(runs, run).await?).await)
}

/// The approvals of tool calls with their steps, of which the log of their run tells.
async fn with_steps(runs: &ActiveRuns, records: Vec<ApprovalRecord>) -> Vec<PendingApproval> {
    let mut approvals = Vec::new();
    let mut loaded: Option<(RunId, Option<Run>)> = None;
    for record in records {
        if record.kind != ApprovalKind::ToolCall {
            continue;
        }
        let state = match &loaded {
            Some((run, state)) if *run == record.run => state,
            _ => {
                let state =
                    load_run(runs.config.log.as_ref(), &record.run).await.ok().map(|(state, _)| state);
                &loaded.insert((record.run.clone(), state)).1
            }
        };
        let step = state.as_ref().and_then(|state| step_of_approval(state, &record));
        approvals.push(PendingApproval::of(record, step));
    }
    approvals
}

/// The step that waits for an approval. The request is stored before the log of the run tells of it.
fn step_of_approval<'a>(run: &'a Run, approval: &ApprovalRecord) -> Option<&'a StepRun> {
    run.steps().iter().find(|step| Some(step.journal_name()) == approval.step)
}

impl PendingApproval {
    fn of(record: ApprovalRecord, step: Option<&StepRun>) -> Self {
        Self {
            approval: record.id,
            run: record.run.to_string(),
            step: step.map(|step| step.step.id.clone()).or(record.step),
            tool: step.map(|step| step.step.tool_type.clone()),
            source: step.and_then(|step| step.tool.source.as_ref()).map(ToString::to_string),
            text: record.text,
            requested_at: record.requested_at,
        }
    }
}

/// `POST /approvals/ID`.
pub(super) async fn decide(
    runs: &Arc<ActiveRuns>,
    approval: i64,
    body: DecisionBody,
    operator: IsOperator,
) -> Result<RouteResponse, ApiError> {
    let reading =
        async { runs.config.approvals.approval(approval).await.map_err(ApiError::store_unavailable) };
    let record = before(Instant::now() + READ_TIMEOUT, reading).await?;
    let is_pending =
        |record: &ApprovalRecord| record.outcome.is_none() && record.kind == ApprovalKind::ToolCall;
    let not_found =
        || ApiError::not_found("approval_not_found", format!("no pending approval has the id {approval}"));
    let run = record.filter(is_pending).ok_or_else(not_found)?.run;
    let DecisionBody { allow, scope } = body;
    decide_of_run(
        runs,
        &run,
        RunDecisionBody { approval: Some(approval), step: None, allow, scope },
        operator,
    )
    .await
}

/// `POST /runs/ID/approve`: decides on an approval and resumes the run.
pub(super) async fn decide_of_run(
    runs: &Arc<ActiveRuns>,
    run: &RunId,
    body: RunDecisionBody,
    operator: IsOperator,
) -> Result<RouteResponse, ApiError> {
    let RunDecisionBody { approval, step, allow, scope } = body;
    if allow && !runs.config.clients_may_approve && !operator.0 {
        // A model may read this, so it does not say how to give the approval.
        let message = "HTTP clients may only deny tool calls; the operator of this hub approves them";
        return Err(ApiError {
            status: StatusCode::FORBIDDEN,
            code: Some("approval_not_permitted"),
            ..ApiError::invalid_param("allow", message)
        });
    }
    let decision = match (allow, scope) {
        (true, ApiApprovalScope::Once) => ApprovalDecision::Allow,
        (true, ApiApprovalScope::Run) => ApprovalDecision::AllowAlways,
        (false, ApiApprovalScope::Once) => ApprovalDecision::Deny,
        (false, ApiApprovalScope::Run) => {
            return Err(ApiError::invalid_param("scope", "only an approval can be for all calls of the run"));
        }
    };
    let agent = agent_to_resume(runs, run).await?;
    let mut matching = pending_approvals(runs, run).await?;
    matching.retain(|record| {
        approval.is_none_or(|id| record.id == id)
            && step.as_deref().is_none_or(|step| record.step.as_deref() == Some(step))
    });
    let approval = match matching.as_slice() {
        [] => {
            let message = format!("run {run} has no such pending approval");
            return Err(ApiError::not_found("approval_not_found", message));
        }
        [approval] => approval.id,
        several => {
            let message =
                format!("run {run} has {} pending approvals; set `approval` or `step`", several.len());
            return Err(ApiError::invalid_param("approval", message));
        }
    };
    let (log, approvals) = (runs.config.log.as_ref(), runs.config.approvals.as_ref());
    let decided_by = if operator.0 { "operator" } else { "http" };
    decide_approval(log, approvals, approval, decision, decided_by).await?;
    let resumed = agent.map(|agent| runs.spawn(agent, run)).is_some();
    let decided = DecidedApproval { run: run.to_string(), approval, allowed: allow, scope, resumed };
    Ok(json_of(StatusCode::ACCEPTED, &decided))
}
