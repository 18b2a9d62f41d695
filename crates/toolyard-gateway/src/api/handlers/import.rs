//! `/api/v1/import`: the MCP servers of other clients on this machine. Only the operator may see and add them.

use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::ImportReport,
    agents::ApiError,
    api::{
        ApiState,
        extract::{JsonBody, OperatorOnly, Settings},
        openapi::ErrorBody,
        response::{ApiResult, json_of},
    },
};

/// More than anybody has.
const MAX_IMPORTED_SERVERS: usize = 500;

/// The servers to import.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImportBody {
    /// Their names, as `GET /api/v1/import` lists them.
    servers: Vec<String>,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_importable, import_servers))
}

/// Lists the MCP servers of editors and other clients on this machine. Operator only.
#[utoipa::path(get, path = "/import", tag = "settings",
    responses((status = 200, body = ImportReport), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
async fn list_importable(_: OperatorOnly, Settings(settings): Settings) -> ApiResult {
    Ok(json_of(StatusCode::OK, &settings.importable_servers().await?))
}

/// Adds MCP servers of other clients to the settings file, untrusted, and reloads the settings. Operator only.
#[utoipa::path(post, path = "/import", tag = "settings", request_body = ImportBody,
    responses((status = 200, body = ImportReport), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the settings have a server of this name; nothing was changed"),
        (status = 422, body = ErrorBody)))]
async fn import_servers(
    OperatorOnly(operator): OperatorOnly,
    Settings(settings): Settings,
    JsonBody(body): JsonBody<ImportBody>,
) -> ApiResult {
    if body.servers.is_empty() {
        return Err(ApiError::invalid_param("servers", "`servers` is empty"));
    }
    if body.servers.len() > MAX_IMPORTED_SERVERS {
        let message = format!("`servers` has more than {MAX_IMPORTED_SERVERS} names");
        return Err(ApiError::invalid_param("servers", message));
    }
    Ok(json_of(StatusCode::OK, &settings.import_servers(&body.servers, &operator.audit_name()).await?))
}

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
