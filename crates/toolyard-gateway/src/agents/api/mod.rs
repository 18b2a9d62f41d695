//! Agents over HTTP: the OpenAI-compatible API at `/v1`, where models are agents, and runs at `/api/v1/runs`.

mod answer;
mod answer_stream;
mod approval_handlers;
mod chat_message;
mod completion;
mod completion_handlers;
mod error;
mod events;
mod parameters;
mod response;
mod routes;
mod run_bodies;
mod run_event_stream;
mod run_handlers;
mod run_list;
mod run_state;

use std::sync::Arc;

use toolyard_core::ConversationId;
use toolyard_mcp_server::RouteRequest;

pub(crate) use self::{
    error::{ApiError, json_of},
    routes::{approval_routes, openai_routes, run_routes, schema_routes},
};
use super::{
    active_runs::ActiveRuns, conversation_owner::http_conversation, idempotency::RequestCache,
    service::AgentService,
};

/// The conversation that a request names.
fn requested_conversation(
    request: &RouteRequest,
    name: Option<&str>,
) -> Result<Option<Box<ConversationId>>, ApiError> {
    let id = name.map(|name| http_conversation(&request.credential_hash, name)).transpose();
    id.map(|id| id.map(Box::new)).map_err(|error| ApiError::invalid_param("conversation", error.to_string()))
}

/// What the handlers of agents and their runs share.
#[derive(Debug)]
pub(crate) struct AgentApi {
    runs: Arc<ActiveRuns>,
    requests: RequestCache,
}

impl AgentApi {
    /// Serves the agents of a service.
    pub(crate) fn new(service: AgentService) -> Self {
        Self { runs: service.0, requests: RequestCache::default() }
    }

    /// Reads changes of the agents that other processes made.
    pub(crate) async fn refresh(&self) {
        self.runs.config.agents.refresh().await;
    }
}

#[cfg(test)]
mod outage_tests;
#[cfg(test)]
mod run_event_stream_tests;
#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
