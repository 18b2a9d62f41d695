//! Agents over HTTP: the OpenAI-compatible API at `/v1`, where models are agents, and runs at `/api/v1/runs`.

mod chat_message;
mod error;
mod openai;
mod routes;
mod runs;

use std::{collections::HashSet, sync::Arc, time::Duration};

use http::Method;
use tokio::time::Instant;
use toolyard_core::{ApprovalKind, CallerIdentity, ConversationId, RunId};
use toolyard_mcp_server::RouteRequest;

use self::{error::before, runs::stream_ticket::StreamTickets};
pub(crate) use self::{
    error::{ApiError, DEFAULT_RETRY_AFTER, json_of},
    routes::{approval_routes, openai_routes, run_routes, schema_routes, unknown_step_routes},
};
use super::{
    active_runs::ActiveRuns, conversation_owner::http_conversation, idempotency::RequestCache,
    service::AgentService,
};

/// How long the store may take to count what waits for approval: without an answer, the overview and the metrics are shown
/// without this number.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// The conversation that a request names.
fn requested_conversation(
    request: &RouteRequest,
    name: Option<&str>,
) -> Result<Option<Box<ConversationId>>, ApiError> {
    let id = name.map(|name| http_conversation(request.identity.owner_hash_ref(), name)).transpose();
    id.map(|id| id.map(Box::new)).map_err(|error| ApiError::invalid_param("conversation", error.to_string()))
}

/// What the handlers of agents and their runs share.
#[derive(Debug)]
pub(crate) struct AgentApi {
    runs: Arc<ActiveRuns>,
    requests: RequestCache,
    stream_tickets: StreamTickets,
}

/// What waits for approval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingForApproval {
    pub(crate) runs: u64,
    pub(crate) approvals: u64,
}

impl AgentApi {
    /// Serves the agents of a service.
    pub(crate) fn new(service: AgentService) -> Self {
        Self { runs: service.0, requests: RequestCache::default(), stream_tickets: StreamTickets::default() }
    }

    /// Who may follow the events of a run by the ticket in this query.
    pub(crate) fn ticket_holder(
        &self,
        method: &Method,
        path: &str,
        query: &str,
    ) -> Option<Arc<CallerIdentity>> {
        self.stream_tickets.holder(method, path, query)
    }

    /// The number of runs that this process drives.
    pub(crate) fn active_runs(&self) -> u64 {
        self.runs.active() as u64
    }

    /// How much waits for approval, of runs that any process drives.
    pub(crate) async fn waiting_for_approval(&self) -> Result<WaitingForApproval, ApiError> {
        let reading = async {
            let pending = self.runs.config.approvals.pending_approvals().await;
            pending.map_err(ApiError::store_unavailable)
        };
        let pending = before(Instant::now() + COUNT_TIMEOUT, reading).await?;
        let tool_calls = pending.iter().filter(|record| record.kind == ApprovalKind::ToolCall);
        let runs: HashSet<&RunId> = tool_calls.clone().map(|record| &record.run).collect();
        Ok(WaitingForApproval { runs: runs.len() as u64, approvals: tool_calls.count() as u64 })
    }

    /// Reads changes of the agents that other processes made.
    pub(crate) async fn refresh(&self) {
        self.runs.config.agents.refresh().await;
    }
}

#[cfg(test)]
mod caller_tests;
#[cfg(test)]
mod outage_tests;
#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
