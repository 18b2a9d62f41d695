//! Reports requests of the HTTP API to telemetry, and passes their span on in the header `traceparent`.

use std::{borrow::Cow, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method};
use toolyard_core::telemetry::{OperationKind, RunningOperation, SpanContext, Telemetry};

const TRACEPARENT: &str = "traceparent";
/// The route of requests whose path is unknown; the path itself may be anything.
const UNKNOWN_ROUTE: &str = "unknown";

/// Records a request. Its handler finds the span of the request in the header `traceparent`, in place of its parent.
pub(super) async fn trace_request(
    State(telemetry): State<Option<Arc<dyn Telemetry>>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(telemetry) = telemetry else { return next.run(request).await };
    let route = request.extensions().get::<MatchedPath>().map_or(UNKNOWN_ROUTE, MatchedPath::as_str);
    let kind =
        OperationKind::HttpRequest { method: method_name(request.method()), route: route.into(), status: 0 };
    let parent = span_of(request.headers());
    let mut operation = RunningOperation::start(&telemetry, parent, kind);
    let span = operation.context().and_then(|span| HeaderValue::try_from(span.to_string()).ok());
    if let Some(span) = span {
        request.headers_mut().insert(TRACEPARENT, span);
    }
    let response = next.run(request).await;
    let code = response.status();
    if let Some(OperationKind::HttpRequest { status, .. }) = operation.kind_mut() {
        *status = code.as_u16();
    }
    operation.end(code.is_server_error().then(|| code.as_str().to_owned().into()));
    response
}

/// The span of a request, as a run stores it.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<Box<str>> {
    span_of(headers).map(|span| span.to_string().into())
}

fn span_of(headers: &HeaderMap) -> Option<SpanContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

fn method_name(method: &Method) -> Cow<'static, str> {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|name| *name == method.as_str()).unwrap_or("_OTHER").into()
}
