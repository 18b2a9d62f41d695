//! Handlers of approvals: list those that are pending, and decide on them.

use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolyard_agent::{ApprovalDecision, ApprovalState, Run, StepRun, decide_approval, load_run};
use toolyard_core::{ApprovalId, ApprovalKind, ApprovalRecord, CallerIdentity, RunId};
use toolyard_mcp_server::RouteResponse;
use utoipa::ToSchema;

use super::{
    access,
    arguments::RecordedArguments,
    events::ApiApprovalScope,
    handlers::{agent_to_resume, pending_approvals},
    list::ApprovalQuery,
    state::READ_TIMEOUT,
};
use crate::{
    agents::{
        active_runs::ActiveRuns,
        api::error::{ApiError, before, json_of},
    },
    api::{
        error_code::ErrorCode,
        extract::Requester,
        pagination::{cut_page, long_page_limit},
    },
};

/// A decision on an approval.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::agents::api) struct DecisionBody {
    allow: bool,
    #[serde(default)]
    scope: ApiApprovalScope,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct DecidedApproval {
    run: String,
    approval: i64,
    allow: bool,
    scope: ApiApprovalScope,
    /// Whether this gateway continues the run.
    resumed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct ApprovalList {
    /// Oldest first.
    approvals: Vec<PendingApproval>,
    /// To be given back as `after`; null if this is the last page.
    next: Option<String>,
}

/// A tool call that waits for approval.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct PendingApproval {
    approval: i64,
    run: String,
    step: Option<String>,
    tool: Option<String>,
    source: Option<String>,
    /// What the call does, with its arguments; secrets are redacted.
    text: String,
    /// The effects of the tool in words, such as `writes, open world`; null if the run does not record them.
    effects: Option<String>,
    /// The arguments, secrets redacted; null if the run does not record them, or if `arguments_text` is set.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
    /// Notes for the approver.
    notes: Vec<String>,
    requested_at: i64,
}

/// `GET /approvals`.
pub(in crate::agents::api) async fn list(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    query: &ApprovalQuery,
) -> Result<RouteResponse, ApiError> {
    let list = before(Instant::now() + READ_TIMEOUT, read_pending(runs, identity, query)).await?;
    Ok(json_of(StatusCode::OK, &list))
}

async fn read_pending(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    query: &ApprovalQuery,
) -> Result<ApprovalList, ApiError> {
    let limit = long_page_limit(query.limit)?;
    let mut pending = runs.config.approvals.pending_approvals().await.map_err(ApiError::store_unavailable)?;
    pending.retain(|record| record.kind == ApprovalKind::ToolCall);
    // Ids grow with time.
    pending.sort_by_key(|record| record.id);
    pending.retain(|record| query.after.is_none_or(|after| record.id.0 > after));
    if identity.is_distinguished() {
        let mut own = Vec::new();
        for approval in pending {
            if access::check_access(runs, identity, &approval.run).await.is_ok() {
                own.push(approval);
            }
        }
        pending = own;
    }
    let next = cut_page(&mut pending, limit, |record| record.id.to_string());
    Ok(ApprovalList { approvals: with_steps(runs, pending).await, next })
}

/// An error as for an approval that does not exist, if it belongs to a run that the caller may not see.
pub(in crate::agents::api) async fn check_access(
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
    let Some(pending) = pending.iter().find(|pending| pending.id.0 == approval) else {
        return Err(approval_not_found(approval));
    };
    let access = access::check_access(runs, identity, &pending.run).await;
    access.map_err(|error| match error.status {
        StatusCode::NOT_FOUND => approval_not_found(approval),
        _ => error,
    })
}

fn approval_not_found(approval: i64) -> ApiError {
    ApiError::not_found(ErrorCode::ApprovalNotFound, format!("no pending approval has the id {approval}"))
}

/// The calls of a run that wait for approval.
pub(in crate::agents::api) async fn pending_of_run(
    runs: &ActiveRuns,
    run: &RunId,
    state: &Run,
) -> Result<Vec<PendingApproval>, ApiError> {
    let records = pending_approvals(runs, run).await?.into_iter();
    let of_calls = records.filter(|record| record.kind == ApprovalKind::ToolCall);
    let approval = |record: ApprovalRecord| {
        let step = step_of_approval(state, &record);
        PendingApproval::of(record, step)
    };
    Ok(of_calls.map(approval).collect())
}

/// The approvals of tool calls, joined with the steps in the log of their run.
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
        let details = step.and_then(|step| match &step.approval {
            ApprovalState::Requested { id, details, .. } if *id == record.id => details.clone(),
            _ => None,
        });
        let (effects, arguments, notes) = match details {
            Some(details) => {
                (Some(details.effects), RecordedArguments::of(&details.arguments), details.notes)
            }
            None => (None, RecordedArguments::default(), Vec::new()),
        };
        Self {
            approval: record.id.0,
            run: record.run.to_string(),
            step: step.map(|step| step.step.id.clone()).or(record.step),
            tool: step.map(|step| step.step.tool_type.clone()),
            source: step.and_then(|step| step.tool.source.as_ref()).map(ToString::to_string),
            text: record.text,
            effects,
            arguments: arguments.object,
            arguments_text: arguments.text,
            notes,
            requested_at: record.requested_at,
        }
    }
}

/// `POST /approvals/ID`: decides on an approval and resumes its run.
pub(in crate::agents::api) async fn decide(
    runs: &Arc<ActiveRuns>,
    approval: i64,
    body: DecisionBody,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let reading = async {
        runs.config.approvals.approval(ApprovalId(approval)).await.map_err(ApiError::store_unavailable)
    };
    let record = before(Instant::now() + READ_TIMEOUT, reading).await?;
    let is_pending =
        |record: &ApprovalRecord| record.outcome.is_none() && record.kind == ApprovalKind::ToolCall;
    let run = record.filter(is_pending).ok_or_else(|| approval_not_found(approval))?.run;
    let DecisionBody { allow, scope } = body;
    if allow && !runs.config.clients_may_approve && !requester.is_operator() {
        // A model may read this, so it does not say how to give the approval.
        let message = "HTTP clients may only deny tool calls; the operator of this gateway approves them";
        return Err(ApiError {
            status: StatusCode::FORBIDDEN,
            code: Some(ErrorCode::ApprovalNotPermitted),
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
    let agent = agent_to_resume(runs, &run).await?;
    let (log, approvals) = (runs.config.log.as_ref(), runs.config.approvals.as_ref());
    decide_approval(log, approvals, ApprovalId(approval), decision, &requester.audit_name()).await?;
    runs.notify_decision(&run);
    let resumed = agent.map(|agent| runs.spawn(agent, &run)).is_some();
    let decided = DecidedApproval { run: run.to_string(), approval, allow, scope, resumed };
    Ok(json_of(StatusCode::ACCEPTED, &decided))
}
