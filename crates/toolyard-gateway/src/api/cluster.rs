//! `/api/v1/cluster`: the gateways and workers of the cluster.

use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiState,
    openapi::ErrorBody,
    response::{ApiResult, json_of},
};
use crate::{admin::ClusterReport, agents::ApiError};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show_cluster))
}

/// Shows the gateways and workers of the cluster, and which gateway owns which sessions.
#[utoipa::path(get, path = "/cluster", tag = "servers",
    responses((status = 200, body = ClusterReport),
        (status = 404, body = ErrorBody, description = "this gateway is in no cluster")))]
async fn show_cluster(State(state): State<ApiState>) -> ApiResult {
    let not_offered = || ApiError::not_found("not_offered", "this gateway is in no cluster");
    let cluster = state.cluster.as_ref().ok_or_else(not_offered)?;
    Ok(json_of(StatusCode::OK, &cluster.cluster().await))
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
