//! `/api/v1/cluster`: the gateways and workers of the cluster.

use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::ClusterReport,
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::ApiQuery,
        openapi::ErrorBody,
        queries::ClusterQuery,
        response::{ApiResult, json_of},
    },
};

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show_cluster))
}

/// Shows the gateways and workers of the cluster, and which gateway owns which sessions.
#[utoipa::path(get, path = "/cluster", tag = "servers", params(ClusterQuery),
    responses((status = 200, body = ClusterReport),
        (status = 404, body = ErrorBody, description = "this gateway is in no cluster")))]
async fn show_cluster(State(state): State<ApiState>, ApiQuery(query): ApiQuery<ClusterQuery>) -> ApiResult {
    let not_offered = || ApiError {
        hint: Some("a cluster needs PostgreSQL, NATS and [cluster] in the settings".to_owned()),
        ..ApiError::not_found(ErrorCode::NotOffered, "this gateway is in no cluster")
    };
    let cluster = state.cluster.as_ref().ok_or_else(not_offered)?;
    Ok(json_of(StatusCode::OK, &cluster.cluster(query.sessions.unwrap_or(true)).await))
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
