//! `GET /runs`: the runs of agents, newest first.

use std::collections::HashMap;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use toolyard_agent::AGENT_RUN_KIND;
use toolyard_core::{CallerIdentity, JournalError, RunId, RunLog, RunRecord};
use toolyard_mcp_server::RouteResponse;
use utoipa::{IntoParams, ToSchema};

use super::{
    access::{check_access, may_see},
    state::{ApiRunState, READ_TIMEOUT},
};
use crate::{
    agents::{
        active_runs::ActiveRuns,
        api::error::{ApiError, before, json_of},
    },
    api::pagination::page_limit,
};

/// Runs that one request looks at. With a rare state or agent, or a time long ago, a page may have fewer entries than its limit.
const MAX_SCANNED_RUNS: usize = 2_000;
/// Runs that are read at once.
const BATCH_SIZE: usize = 100;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::agents::api) struct RunQuery {
    /// Only runs in this state.
    #[param(value_type = Option<String>)]
    state: Option<ApiRunState>,
    /// Only runs of this agent.
    agent: Option<String>,
    /// Only runs of this conversation.
    conversation: Option<String>,
    /// Only runs created at this time or later, in Unix milliseconds.
    since: Option<i64>,
    /// Only runs created before this time.
    until: Option<i64>,
    /// Number of runs, 50 by default and 500 at most.
    limit: Option<usize>,
    /// `next` of the previous page.
    after: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::agents::api) struct EventQuery {
    /// Continues after the event with this number.
    pub(in crate::agents::api) after: Option<i64>,
    /// A ticket of `POST /api/v1/runs/{run}/stream-ticket`, in place of the header `Authorization`. An application that mounts this API ignores it.
    pub(in crate::agents::api) ticket: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::agents::api) struct EventLogQuery {
    /// Continues after the event with this number.
    pub(in crate::agents::api) after: Option<i64>,
    /// Number of events, 500 by default and at most.
    pub(in crate::agents::api) limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::agents::api) struct ApprovalQuery {
    /// Number of approvals, 500 by default and at most.
    pub(in crate::agents::api) limit: Option<usize>,
    /// `next` of the previous page.
    pub(in crate::agents::api) after: Option<i64>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::agents::api) struct UnknownStepQuery {
    /// Number of steps, 500 by default and at most.
    pub(in crate::agents::api) limit: Option<usize>,
    /// `next` of the previous page.
    pub(in crate::agents::api) after: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct RunList {
    /// Newest first.
    runs: Vec<ListedRun>,
    /// To be given back as `after`; null if this is the last page.
    next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct ListedRun {
    run: String,
    state: ApiRunState,
    agent: Option<String>,
    question: Option<String>,
    /// The conversation that the run belongs to; null for runs without one, and for runs of older versions.
    conversation: Option<String>,
    created_at: i64,
    /// Number of tool calls that wait for approval.
    pending_approvals: usize,
}

/// `GET /runs`.
pub(in crate::agents::api) async fn list(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    query: &RunQuery,
) -> Result<RouteResponse, ApiError> {
    let list = before(Instant::now() + READ_TIMEOUT, read_page(runs, identity, query)).await?;
    Ok(json_of(StatusCode::OK, &list))
}

async fn read_page(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    query: &RunQuery,
) -> Result<RunList, ApiError> {
    let limit = page_limit(query.limit)?;
    let log = runs.config.log.as_ref();
    let mut pending: HashMap<RunId, usize> = HashMap::new();
    let approvals = runs.config.approvals.pending_approvals().await.map_err(ApiError::store_unavailable)?;
    for approval in approvals {
        *pending.entry(approval.run).or_default() += 1;
    }
    let mut list = RunList { runs: Vec::new(), next: None };
    let mut after = query.after.as_deref().map(RunId::from);
    if let Some(after) = &after {
        check_access(runs, identity, after).await.map_err(|error| match error.status {
            StatusCode::NOT_FOUND => unknown_after(),
            _ => error,
        })?;
    }
    // The position in the log. `after` is what the client gets: never a run that the caller may not see.
    let mut position = after.clone();
    let mut scanned = 0;
    loop {
        let batch = read_batch(log, identity, position.as_ref()).await?;
        let is_last = batch.len() < BATCH_SIZE;
        position = batch.last().map(|record| record.id.clone());
        for record in batch.into_iter().filter(|record| may_see(identity, record)) {
            // The rest is older still.
            if query.since.is_some_and(|since| record.created_at < since) {
                return Ok(list);
            }
            if list.runs.len() == limit || scanned == MAX_SCANNED_RUNS {
                list.next = after.map(|run| run.to_string());
                return Ok(list);
            }
            scanned += 1;
            after = Some(record.id.clone());
            let pending = pending.get(&record.id).copied().unwrap_or_default();
            list.runs.extend(listed_run(log, query, record, pending).await?);
        }
        if is_last {
            return Ok(list);
        }
    }
}

/// The next runs that the caller may see. The store selects those of a caller, so that the number of runs of others neither
/// shows nor ends the search.
async fn read_batch(
    log: &dyn RunLog,
    identity: &CallerIdentity,
    after: Option<&RunId>,
) -> Result<Vec<RunRecord>, ApiError> {
    let batch = match identity.is_distinguished() {
        true => log.runs_page_of_owner(AGENT_RUN_KIND, identity.owner(), after, BATCH_SIZE).await,
        false => log.runs_page(AGENT_RUN_KIND, after, BATCH_SIZE).await,
    };
    batch.map_err(|error| match error {
        JournalError::UnknownRun(_) => unknown_after(),
        error => error.into(),
    })
}

fn unknown_after() -> ApiError {
    ApiError::invalid_param("after", "`after` is not the id of a run")
}

/// The entry of a run, if it is one that the query is about.
async fn listed_run(
    log: &dyn RunLog,
    query: &RunQuery,
    record: RunRecord,
    pending_approvals: usize,
) -> Result<Option<ListedRun>, ApiError> {
    if query.until.is_some_and(|until| record.created_at >= until)
        || query.state.is_some_and(|state| !state.may_be(record.state))
    {
        return Ok(None);
    }
    let detail = record.detail.to_value();
    let text = |name: &str| detail.get(name).and_then(Value::as_str).map(str::to_owned);
    let (agent, conversation) = (text("agent"), text("conversation"));
    let is_other = |wanted: Option<&str>, found: Option<&str>| wanted.is_some() && wanted != found;
    if is_other(query.agent.as_deref(), agent.as_deref())
        || is_other(query.conversation.as_deref(), conversation.as_deref())
    {
        return Ok(None);
    }
    let Some(last) = log.last_event(&record.id).await? else { return Ok(None) };
    let state = ApiRunState::of_last_event(record.state, &last);
    if query.state.is_some_and(|wanted| wanted != state) {
        return Ok(None);
    }
    Ok(Some(ListedRun {
        state,
        agent,
        question: text("question"),
        conversation,
        created_at: record.created_at,
        pending_approvals,
        run: record.id.to_string(),
    }))
}
