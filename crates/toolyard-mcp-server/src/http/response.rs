//! Builds HTTP responses.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use toolyard_mcp::{RequestId, error_code};

use crate::{
    dispatch::outcome::{MessageChunks, Outcome, error_without_id},
    http::{access_check::AccessError, body::ResponseBody},
};

pub(crate) static SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
static BUFFERING_HEADER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A complete response with a message.
pub(crate) fn message(status: StatusCode, chunks: MessageChunks) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::complete(chunks));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn json(status: StatusCode, text: Bytes) -> Response<ResponseBody> {
    message(status, MessageChunks { head: text, ..MessageChunks::default() })
}

pub(crate) fn outcome(id: &RequestId, outcome: Outcome) -> Response<ResponseBody> {
    message(outcome.status(), outcome.into_chunks(id))
}

/// An error without a request id.
pub(crate) fn error(status: StatusCode, code: i64, text: &str) -> Response<ResponseBody> {
    message(status, error_without_id(code, text))
}

/// A response without a body.
pub(crate) fn status(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Empty);
    *response.status_mut() = status;
    response
}

pub(crate) fn stream(events: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(&BUFFERING_HEADER, HeaderValue::from_static("no"));
    response
}

/// Denies access, with a JSON-RPC error or another JSON body.
pub(crate) fn access_denied(denied: &AccessError, body: Option<Bytes>) -> Response<ResponseBody> {
    let mut response = match body {
        Some(body) => json(denied.status(), body),
        None => error(denied.status(), error_code::SERVER_ERROR, &denied.message()),
    };
    if let Some(challenge) = denied.challenge() {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = denied.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(crate) fn method_not_allowed(allowed: &'static str) -> Response<ResponseBody> {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, error_code::SERVER_ERROR, "method not allowed");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Adds CORS headers, so that the web page may read the response.
pub(crate) fn add_cors_headers(response: &mut Response<ResponseBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Should-Retry");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

pub(crate) fn preflight(requested_headers: Option<&HeaderValue>) -> Response<ResponseBody> {
    let mut response = status(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(requested_headers) = requested_headers {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested_headers.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
