//! Answers over HTTP: a status, the headers the protocol wants, and a body.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::{
    super::answer::{Outcome, Pieces, error_without_id},
    body::Answer,
    guard::Refusal,
};
use crate::wire::RequestId;

pub(super) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
static BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message as the whole answer.
pub(super) fn message(status: StatusCode, pieces: Pieces) -> Response<Answer> {
    let mut response = Response::new(Answer::whole(pieces));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON text as the whole answer.
pub(super) fn json(text: Bytes) -> Response<Answer> {
    message(StatusCode::OK, Pieces { head: text, ..Pieces::default() })
}

/// Whether more requests are welcome.
pub(super) fn health(is_stopping: bool) -> Response<Answer> {
    let (status, text) = match is_stopping {
        false => (StatusCode::OK, r#"{"status":"ok"}"#),
        true => (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"stopping"}"#),
    };
    message(status, Pieces { head: Bytes::from_static(text.as_bytes()), ..Pieces::default() })
}

/// The answer to a request.
pub(super) fn outcome(id: &RequestId, outcome: Outcome) -> Response<Answer> {
    message(outcome.status(), outcome.pieces(id))
}

/// A refusal that answers no request in particular.
pub(super) fn refusal(status: StatusCode, code: i64, text: &str) -> Response<Answer> {
    message(status, error_without_id(code, text))
}

/// Nothing but a status.
pub(super) fn status(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::Empty);
    *response.status_mut() = status;
    response
}

/// A stream of events.
pub(super) fn stream(events: Answer) -> Response<Answer> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(&BUFFERING, HeaderValue::from_static("no"));
    response
}

/// That somebody is not let in.
pub(super) fn not_let_in(refused: Refusal) -> Response<Answer> {
    let mut response = refusal(refused.status(), -32000, refused.message());
    if let Some(challenge) = refused.challenge() {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// That a method is not for this address.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Answer> {
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, -32000, "this method is not for this address");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// What a web page must be told before it may read the answer.
pub(super) fn let_page_read(response: &mut Response<Answer>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

/// The answer to a browser that asks what a page may send.
pub(super) fn preflight(wanted: Option<&HeaderValue>) -> Response<Answer> {
    let mut response = status(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(wanted) = wanted {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
