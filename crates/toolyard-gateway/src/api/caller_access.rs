//! What callers with credentials of their own may do over the HTTP API: use tools and agents of the main endpoint, and see their own runs.
//! Everything else shows or changes what is of others, and needs the gateway's own token.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::{Method, StatusCode};
use toolyard_core::CallerIdentity;

use super::{
    ApiState,
    extract::AuthenticatedCaller,
    metrics::{METRICS_PATH, MetricsAccess},
    openapi::{DOCUMENT_PATH, EVENT_SCHEMA_PATH},
};
use crate::agents::ApiError;

/// What a request is about, as far as it matters to who may send it.
#[derive(Debug, PartialEq, Eq)]
enum RequestScope {
    /// Documents about the API itself.
    Public,
    /// Tools and agents of the main endpoint, and runs, of which handlers show a caller its own.
    MainEndpoint,
    /// What is of all callers, or of the operator.
    Gateway,
}

impl RequestScope {
    fn of(method: &Method, path: &str) -> Self {
        if [DOCUMENT_PATH, EVENT_SCHEMA_PATH].contains(&path) {
            return Self::Public;
        }
        let rest = path.strip_prefix("/api/v1").unwrap_or(path);
        let segments: Vec<&str> = rest.split('/').skip(1).collect();
        match (segments.as_slice(), method) {
            (["v1", ..], _) if rest == path => Self::MainEndpoint,
            (["tools"] | ["tools", _] | ["results", _], &Method::GET)
            | (["tools", _, "call"], &Method::POST) => Self::MainEndpoint,
            (["runs", ..] | ["unknown-steps"], _)
            | (["approvals"], &Method::GET)
            | (["approvals", _], &Method::POST) => Self::MainEndpoint,
            _ => Self::Gateway,
        }
    }
}

/// Refuses what the caller may not do.
pub(super) async fn check_caller(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<AuthenticatedCaller>().cloned().unwrap_or_default();
    match check(&state, &caller.0, request.method(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check(state: &ApiState, identity: &CallerIdentity, method: &Method, path: &str) -> Result<(), ApiError> {
    // The gateway's own token, and the console, may do everything.
    if !identity.is_distinguished() {
        return Ok(());
    }
    let scope = RequestScope::of(method, path);
    let is_open_metrics = path == METRICS_PATH && state.metrics_access == MetricsAccess::Open;
    if scope == RequestScope::Public || is_open_metrics {
        return Ok(());
    }
    if !identity.may_use_profile("") {
        return Err(forbidden("your credentials are not for the main endpoint, which the HTTP API serves"));
    }
    match scope {
        RequestScope::Gateway => {
            Err(forbidden("your credentials are for tools and agents; this needs the gateway's own token"))
        }
        RequestScope::Public | RequestScope::MainEndpoint => Ok(()),
    }
}

fn forbidden(message: &str) -> ApiError {
    ApiError::refused(StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_about_the_main_endpoint_or_the_gateway() {
        let scope = |method: Method, path: &'static str| RequestScope::of(&method, path);
        for (method, path) in [
            (Method::POST, "/v1/chat/completions"),
            (Method::GET, "/v1/models"),
            (Method::GET, "/api/v1/tools"),
            (Method::GET, "/api/v1/tools/calculate"),
            (Method::GET, "/api/v1/results/abc"),
            (Method::POST, "/api/v1/tools/calculate/call"),
            (Method::POST, "/api/v1/runs"),
            (Method::POST, "/runs"),
            (Method::GET, "/api/v1/runs"),
            (Method::GET, "/api/v1/unknown-steps"),
            (Method::POST, "/api/v1/unknown-steps"),
            (Method::GET, "/api/v1/runs/01J/events"),
            (Method::POST, "/api/v1/runs/01J/stream-ticket"),
            (Method::POST, "/runs/01J/cancel"),
            (Method::GET, "/api/v1/approvals"),
            (Method::POST, "/api/v1/approvals/7"),
        ] {
            assert_eq!(scope(method, path), RequestScope::MainEndpoint, "{path}");
        }
        for (method, path) in [
            (Method::GET, "/api/v1/audit"),
            (Method::GET, "/api/v1/settings"),
            (Method::GET, "/api/v1/servers"),
            (Method::GET, "/api/v1/cluster"),
            (Method::GET, "/api/v1/agents"),
            (Method::POST, "/api/v1/agents"),
            (Method::GET, "/api/v1/overview"),
            (Method::GET, "/metrics"),
            (Method::POST, "/api/v1/tools"),
            (Method::GET, "/api/v1/v1/models"),
            (Method::GET, "/api/v1/later"),
            (Method::GET, "/"),
        ] {
            assert_eq!(scope(method, path), RequestScope::Gateway, "{path}");
        }
        assert_eq!(scope(Method::GET, "/api/openapi.json"), RequestScope::Public);
    }
}
