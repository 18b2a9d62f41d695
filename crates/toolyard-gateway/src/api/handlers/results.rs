//! `/api/v1/results`: stored results that were too long for a response.

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_core::{DataOwner, ResultPage, ResultRef, ResultsError};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{ApiPath, ApiQuery, AuthenticatedCaller},
        openapi::ErrorBody,
        queries::ResultQuery,
        response::{ApiResult, json_of},
    },
};

const DEFAULT_PART_BYTES: usize = 100_000;
const MAX_PART_BYTES: usize = 1_000_000;

/// A part of a stored result. All parts joined are the stored text.
#[derive(Debug, Serialize, ToSchema)]
struct ResultPart {
    text: String,
    /// Where it begins, in bytes.
    offset: usize,
    /// The `offset` of the next part; null if this is the last one.
    next: Option<usize>,
    /// The size of the whole, in bytes.
    total: usize,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(read_result))
}

/// Reads a part of a stored result. The caller that made the call can read it, and so can every client with the gateway's own token.
#[utoipa::path(get, path = "/results/{result}", tag = "tools", params(("result" = String, Path), ResultQuery),
    responses((status = 200, body = ResultPart), (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
async fn read_result(
    State(state): State<ApiState>,
    caller: AuthenticatedCaller,
    ApiPath(result): ApiPath<String>,
    ApiQuery(query): ApiQuery<ResultQuery>,
) -> ApiResult {
    let unknown = || ApiError::not_found(ErrorCode::ResultNotFound, format!("there is no result `{result}`"));
    let hub = state.hub.as_ref().ok_or_else(unknown)?;
    let limit = query.limit.unwrap_or(DEFAULT_PART_BYTES).clamp(1, MAX_PART_BYTES);
    let owner = DataOwner::of(Some(&caller.0));
    let reference = ResultRef::new(result.as_str());
    let read = hub.results().read(&reference, owner, query.offset, limit).await;
    let ResultPage { text, offset, next, total } = read.map_err(|error| match error {
        ResultsError::NotFound(_) => unknown(),
        other => ApiError::store_unavailable(other),
    })?;
    Ok(json_of(StatusCode::OK, &ResultPart { text, offset, next, total }))
}
