//! `POST /runs/ID/resume`: continues a run that no process drives.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;
use toolyard_agent::{RunEnd, load_run};
use toolyard_core::RunId;
use toolyard_mcp_server::RouteResponse;

use super::{
    error::{ApiError, before},
    run_handlers::started_response,
    run_state::{ApiRunState, READ_TIMEOUT},
};
use crate::agents::active_runs::{ActiveRuns, StartError};

/// Resumes a run under the rules that it was started with. A run that this process drives already goes on.
pub(super) async fn resume(runs: &Arc<ActiveRuns>, run: &RunId) -> Result<RouteResponse, ApiError> {
    if runs.is_draining() {
        return Err(StartError::ShuttingDown.into());
    }
    let deadline = Instant::now() + READ_TIMEOUT;
    let log = runs.config.log.as_ref();
    let record = before(deadline, log.run(run)).await?;
    let (state, events) = before(deadline, load_run(log, run)).await?;
    if events.is_empty() {
        return Err(ApiError::not_found("run_not_found", format!("agent run {run} does not exist")));
    }
    if state.is_finished() {
        return Err(conflict("run_finished", format!("run {run} is over")));
    }
    let agent = state.request().and_then(|request| runs.agent(&request.agent).ok());
    let Some(agent) = agent.filter(|agent| agent.may_take_over(&state)) else {
        // A model may read this, so it does not say how the operator does.
        let message = format!(
            "run {run} was not started by this gateway's API, or under other rules, or with tools that are missing \
             now; only the operator can resume it"
        );
        return Err(conflict("run_not_resumable", message));
    };
    if matches!(state.end(), Some(RunEnd::Suspended { .. }))
        && !before(deadline, agent.has_decision(run)).await?
    {
        let message = format!("run {run} waits for an approval, or for an unknown outcome to be resolved");
        let hint = "decide first; the decision resumes the run".to_owned();
        return Err(ApiError { hint: Some(hint), ..conflict("run_waits", message) });
    }
    if runs.find(run).is_none() {
        if record.leased {
            let message = format!("another process drives run {run}, or did until a moment ago");
            return Err(conflict("run_active", message));
        }
        runs.spawn(agent, run);
    }
    Ok(started_response(run, ApiRunState::Running))
}

fn conflict(code: &'static str, message: String) -> ApiError {
    ApiError { status: StatusCode::CONFLICT, code: Some(code), ..ApiError::bad_request(message) }
}
