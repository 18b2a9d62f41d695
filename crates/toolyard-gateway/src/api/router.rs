//! The routes, their layers, and what answers to unknown paths and methods.

use std::{any::Any, sync::Arc};

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::get,
};
use http::{Method, StatusCode};
use tokio::time::Instant;
use toolyard_core::telemetry::Telemetry;
use tower_http::{
    catch_panic::CatchPanicLayer,
    request_id::{PropagateRequestIdLayer, RequestId, SetRequestIdLayer},
};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use super::{
    ApiState,
    caller_access::check_caller,
    error_code::ErrorCode,
    handlers::{
        agents, audit, cluster, import, overview, results, server_changes, servers, settings, tool_calls,
        tools,
    },
    metrics::{self, METRICS_PATH},
    openapi::{self, DOCUMENT_PATH, Document},
    request_id::RequestNumbers,
    trace::{RequestTelemetry, span_of, trace_request},
};
use crate::agents::{
    ApiError, approval_routes, openai_routes, run_routes, schema_routes, unknown_step_routes,
};

/// All routes with their state and layers.
pub(super) fn build(state: ApiState) -> Router {
    let telemetry = state.hub.as_ref().and_then(|hub| hub.telemetry().cloned());
    let version_1 = servers::routes()
        .merge(server_changes::routes())
        .merge(cluster::routes())
        .merge(tools::routes())
        .merge(tool_calls::routes())
        .merge(results::routes())
        .merge(agents::routes())
        .merge(run_routes())
        .merge(approval_routes())
        .merge(unknown_step_routes())
        .merge(schema_routes())
        .merge(audit::routes())
        .merge(settings::routes())
        .merge(import::routes())
        .merge(overview::routes());
    let (routes, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .nest("/api/v1", version_1)
        .merge(openai_routes())
        .split_for_parts();
    openapi::complete(&mut document);
    let routes = routes.route(DOCUMENT_PATH, get(openapi::serve(&document)));
    // Prometheus describes its format itself, so it is not part of the document.
    let routes = routes.route(METRICS_PATH, get(metrics::serve));
    // An alias of the routes of runs, from before there was a version in the path.
    let routes = routes.merge(run_routes().split_for_parts().0);
    let routes = routes
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(from_fn_with_state(state.clone(), check_caller))
        .with_state(state);
    observe(routes, telemetry)
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(SetRequestIdLayer::x_request_id(RequestNumbers::default()))
}

/// Reports and logs requests, with the status that clients get, also if a handler panics.
pub(super) fn observe(routes: Router, telemetry: Option<Arc<dyn Telemetry>>) -> Router {
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(log_request))
        .layer(from_fn_with_state(telemetry.map(RequestTelemetry::new), trace_request))
}

async fn unknown_path() -> ApiError {
    ApiError::not_found(ErrorCode::RouteNotFound, "unknown path; GET /api/openapi.json describes all paths")
}

async fn unknown_method(method: Method) -> ApiError {
    let error = ApiError::bad_request(format!("{method} is not supported for this path"));
    ApiError { status: StatusCode::METHOD_NOT_ALLOWED, code: Some(ErrorCode::MethodNotAllowed), ..error }
}

/// Logs how a request was answered. Queries are left out: they may have private text.
async fn log_request(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let id = request.extensions().get::<RequestId>().map(|id| id.header_value().clone());
    let trace_id = span_of(request.headers()).map(|span| format!("{:032x}", span.trace_id));
    let response = next.run(request).await;
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    tracing::debug!(request_id = ?id, trace_id, %method, path, status, ?elapsed, "HTTP API");
    response
}

/// The response to a request whose handler panicked.
#[expect(clippy::needless_pass_by_value, reason = "the signature that the layer needs")]
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let reason = panic.downcast_ref::<String>().map(String::as_str);
    let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    tracing::error!(reason, "a handler of the HTTP API panicked");
    ApiError::internal("the gateway failed to handle the request").into_response()
}
