//! `POST /runs/ID/resume`: continues a run that no process drives.

use std::sync::Arc;

use tokio::time::Instant;
use toolyard_agent::{Agent, Run, RunEnd, load_run};
use toolyard_core::RunId;
use toolyard_mcp_server::RouteResponse;

use super::{
    handlers::started_response,
    state::{ApiRunState, READ_TIMEOUT},
};
use crate::{
    agents::{
        active_runs::{ActiveRuns, StartError},
        api::error::{ApiError, before},
    },
    api::{error_code::ErrorCode, extract::Requester},
};

/// Resumes a run under the rules that it was started with. A run that this process drives already goes on.
pub(in crate::agents::api) async fn resume(
    runs: &Arc<ActiveRuns>,
    run: &RunId,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    if runs.is_draining() {
        return Err(StartError::ShuttingDown.into());
    }
    let deadline = Instant::now() + READ_TIMEOUT;
    let log = runs.config.log.as_ref();
    let record = before(deadline, log.run(run)).await?;
    let (state, events) = before(deadline, load_run(log, run)).await?;
    if events.is_empty() {
        return Err(ApiError::not_found(ErrorCode::RunNotFound, format!("agent run {run} does not exist")));
    }
    if state.is_finished() {
        return Err(ApiError::conflict(ErrorCode::RunFinished, format!("run {run} is over")));
    }
    let agent = agent_of(runs, &state).map_err(|reason| not_resumable(run, &reason, requester))?;
    if matches!(state.end(), Some(RunEnd::Suspended { .. }))
        && !before(deadline, agent.has_decision(run)).await?
    {
        let message = format!("run {run} waits for an approval, or for an unknown outcome to be resolved");
        let hint = "decide first; the decision resumes the run".to_owned();
        return Err(ApiError { hint: Some(hint), ..ApiError::conflict(ErrorCode::RunWaits, message) });
    }
    if runs.find(run).is_none() {
        if record.leased {
            let message = format!("another process drives run {run}, or did until a moment ago");
            return Err(ApiError::conflict(ErrorCode::RunActive, message));
        }
        runs.spawn(agent, run);
    }
    Ok(started_response(run, ApiRunState::Running))
}

/// The agent that continues a run; else why this gateway may not, to complete "run … was".
fn agent_of(runs: &ActiveRuns, state: &Run) -> Result<Agent, String> {
    let name = state.request().map(|request| request.agent.as_str()).unwrap_or_default();
    let agent =
        runs.agent(name).map_err(|_| format!("started with agent `{name}`, which is not available"))?;
    agent.check_take_over(state).map_err(|error| error.to_string())?;
    Ok(agent)
}

/// A run that only the operator can resume. A model may read the error of a client, so it does not say how.
fn not_resumable(run: &RunId, reason: &str, requester: &Requester) -> ApiError {
    let message = format!("run {run} was {reason}; this gateway does not resume it");
    let hint = requester.is_operator().then(|| {
        format!(
            "resume it under your own settings, in a terminal of this machine: toolyard runs resume {run}"
        )
    });
    ApiError { hint, ..ApiError::conflict(ErrorCode::RunNotResumable, message) }
}
