//! `/api/v1/agents`: the agents, of which those in the store can be changed.

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::AgentDefinition,
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{Admin, ApiPath, JsonBody, Requester},
        openapi::ErrorBody,
        response::{ApiResult, json_of, no_content},
    },
};

/// All agents.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentDefinition>,
    /// Always null: the list is whole.
    pub next: Option<String>,
}

/// A new agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAgent {
    /// ASCII letters, digits, `-` and `_`.
    name: String,
    /// The fields of `[agents.NAME]` in the settings file.
    #[serde(default = "empty_object")]
    #[schema(value_type = Object)]
    config: Value,
}

/// The new configuration of an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangedAgent {
    /// The fields of `[agents.NAME]` in the settings file. Absent fields get their defaults.
    #[schema(value_type = Object)]
    config: Value,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_agents, add_agent)).routes(routes!(
        show_agent,
        replace_agent,
        remove_agent
    ))
}

/// Lists all agents.
#[utoipa::path(get, path = "/agents", tag = "agents", responses((status = 200, body = AgentList)))]
async fn list_agents(Admin(admin): Admin) -> ApiResult {
    Ok(json_of(StatusCode::OK, &AgentList { agents: admin.agents().await?, next: None }))
}

/// Shows an agent.
#[utoipa::path(get, path = "/agents/{name}", tag = "agents", params(("name" = String, Path)),
    responses((status = 200, body = AgentDefinition), (status = 404, body = ErrorBody)))]
async fn show_agent(Admin(admin): Admin, ApiPath(name): ApiPath<String>) -> ApiResult {
    let agent = admin.agents().await?.into_iter().find(|agent| agent.name == name);
    let unknown = || ApiError::not_found(ErrorCode::AgentNotFound, format!("agent `{name}` does not exist"));
    Ok(json_of(StatusCode::OK, &agent.ok_or_else(unknown)?))
}

/// Adds an agent to the store.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = NewAgent,
    responses((status = 201, body = AgentDefinition), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn add_agent(
    State(state): State<ApiState>,
    requester: Requester,
    Admin(admin): Admin,
    JsonBody(agent): JsonBody<NewAgent>,
) -> ApiResult {
    check_permission(&state, &requester)?;
    Ok(json_of(
        StatusCode::CREATED,
        &admin.add_agent(&agent.name, agent.config, &requester.audit_name()).await?,
    ))
}

/// Replaces the configuration of an agent in the store. Runs under way keep the one they began with.
#[utoipa::path(put, path = "/agents/{name}", tag = "agents", params(("name" = String, Path)),
    request_body = ChangedAgent,
    responses((status = 200, body = AgentDefinition), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn replace_agent(
    State(state): State<ApiState>,
    requester: Requester,
    Admin(admin): Admin,
    ApiPath(name): ApiPath<String>,
    JsonBody(agent): JsonBody<ChangedAgent>,
) -> ApiResult {
    check_permission(&state, &requester)?;
    Ok(json_of(StatusCode::OK, &admin.replace_agent(&name, agent.config, &requester.audit_name()).await?))
}

/// Removes an agent from the store. Runs under way go on.
#[utoipa::path(delete, path = "/agents/{name}", tag = "agents", params(("name" = String, Path)),
    responses((status = 204), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn remove_agent(
    State(state): State<ApiState>,
    requester: Requester,
    Admin(admin): Admin,
    ApiPath(name): ApiPath<String>,
) -> ApiResult {
    check_permission(&state, &requester)?;
    admin.remove_agent(&name, &requester.audit_name()).await?;
    Ok(no_content())
}

/// An agent decides what is called without a question, so that changing one is as powerful as editing the settings.
fn check_permission(state: &ApiState, requester: &Requester) -> Result<(), ApiError> {
    if state.clients_may_change_agents || requester.is_operator() {
        return Ok(());
    }
    // A model may read this, so it does not say how the operator permits it.
    let message = "HTTP clients may not change agents; the operator of this gateway does";
    let error = ApiError { code: Some(ErrorCode::ChangeNotPermitted), ..ApiError::bad_request(message) };
    Err(ApiError { status: StatusCode::FORBIDDEN, ..error })
}
