//! Reports requests of the HTTP API to telemetry, and passes their span on in the header `traceparent`.

use std::{borrow::Cow, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method};
use toolyard_core::telemetry::{OperationKind, RootlessTelemetry, RunningOperation, SpanContext, Telemetry};

use super::{extract::AuthenticatedCaller, metrics::METRICS_PATH};

const TRACEPARENT: &str = "traceparent";
/// Longer paths are cut: clients choose them.
const MAX_PATH_BYTES: usize = 256;

/// Marks requests, in their extensions, that start no trace although they are counted, such as those of the console, which
/// repeat by themselves.
#[derive(Debug, Clone, Copy)]
pub struct StartsNoTrace;

/// Where requests are reported.
#[derive(Debug, Clone)]
pub(super) struct RequestTelemetry {
    telemetry: Arc<dyn Telemetry>,
    /// For requests that start no trace.
    rootless: Arc<dyn Telemetry>,
}

impl RequestTelemetry {
    pub(super) fn new(telemetry: Arc<dyn Telemetry>) -> Self {
        let rootless = RootlessTelemetry::of(&telemetry);
        Self { telemetry, rootless }
    }
}

/// Records a request. Its handler finds the span of the request in the header `traceparent`, in place of its parent.
pub(super) async fn trace_request(
    State(telemetry): State<Option<RequestTelemetry>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(telemetry) = telemetry else { return next.run(request).await };
    let (path, extensions) = (request.uri().path(), request.extensions());
    let starts_no_trace = path == METRICS_PATH || extensions.get::<StartsNoTrace>().is_some();
    let telemetry = if starts_no_trace { &telemetry.rootless } else { &telemetry.telemetry };
    let caller = extensions.get::<AuthenticatedCaller>().cloned().unwrap_or_default();
    let kind = OperationKind::HttpRequest {
        method: method_name(request.method()),
        route: extensions.get::<MatchedPath>().map(|route| route.as_str().into()),
        path: path.get(..path.floor_char_boundary(MAX_PATH_BYTES)).unwrap_or_default().into(),
        caller: caller.0.is_distinguished().then(|| caller.0.audit_name()),
        status: None,
    };
    let parent = span_of(request.headers());
    let mut operation = RunningOperation::start(telemetry, parent, kind);
    let span = operation.context().and_then(|span| HeaderValue::try_from(span.to_string()).ok());
    if let Some(span) = span {
        request.headers_mut().insert(TRACEPARENT, span);
    }
    let response = next.run(request).await;
    let code = response.status();
    if let Some(OperationKind::HttpRequest { status, .. }) = operation.kind_mut() {
        *status = Some(code.as_u16());
    }
    operation.end(code.is_server_error().then(|| code.as_str().to_owned().into()));
    response
}

/// The span of a request, as a run stores it.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<Box<str>> {
    span_of(headers).map(|span| span.to_string().into())
}

/// The span of a request.
pub(super) fn span_of(headers: &HeaderMap) -> Option<SpanContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

fn method_name(method: &Method) -> Cow<'static, str> {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|name| *name == method.as_str()).unwrap_or("_OTHER").into()
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
