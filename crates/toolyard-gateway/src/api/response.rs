//! Responses of handlers as axum responses, and these as responses of the MCP server.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use toolyard_mcp_server::{RouteBody, RouteResponse};

use crate::agents::{self, ApiError};

/// How long an event stream of a mounted router may be silent before a comment is sent.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A response of a handler.
#[derive(Debug)]
pub(crate) struct ApiResponse(pub(crate) RouteResponse);

/// What handlers return.
pub(crate) type ApiResult = Result<ApiResponse, ApiError>;

/// A JSON response with a typed body.
pub(crate) fn json_of(status: StatusCode, body: &impl Serialize) -> ApiResponse {
    agents::json_of(status, body).into()
}

/// A response without a body.
pub(crate) fn no_content() -> ApiResponse {
    RouteResponse { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: RouteBody::Empty }.into()
}

/// Marks a response as an event stream.
#[derive(Debug, Clone, Copy)]
struct EventStreamMark {
    ends_on_shutdown: bool,
}

impl From<RouteResponse> for ApiResponse {
    fn from(response: RouteResponse) -> Self {
        Self(response)
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        let RouteResponse { status, headers, body } = self.0;
        let (mut response, content_type) = match body {
            RouteBody::Empty => (Response::new(Body::empty()), None),
            RouteBody::Json(text) => (Response::new(Body::from(text)), Some("application/json")),
            RouteBody::Events { stream, ends_on_shutdown } => {
                let mut response = Response::new(Body::from_stream(stream.map(Ok::<_, Infallible>)));
                response.extensions_mut().insert(EventStreamMark { ends_on_shutdown });
                let no_cache = HeaderValue::from_static("no-cache, no-transform");
                response.headers_mut().insert(header::CACHE_CONTROL, no_cache);
                response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
                (response, Some("text/event-stream"))
            }
        };
        *response.status_mut() = status;
        if let Some(content_type) = content_type {
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        // Replaces: a second Content-Type would be one too many.
        for (name, value) in headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        ApiResponse(self.into()).into_response()
    }
}

/// A response of the router as one of the MCP server.
pub(super) async fn into_route_response(response: Response) -> RouteResponse {
    let (mut parts, body) = response.into_parts();
    // The server knows how long the body is.
    parts.headers.remove(header::CONTENT_LENGTH);
    let body = match parts.extensions.get::<EventStreamMark>() {
        Some(mark) => {
            let stream = body.into_data_stream().filter_map(|chunk| std::future::ready(chunk.ok()));
            RouteBody::Events { stream: Box::pin(stream), ends_on_shutdown: mark.ends_on_shutdown }
        }
        // Handlers have complete bodies, which are in memory already.
        None => match to_bytes(body, usize::MAX).await {
            Ok(bytes) if !bytes.is_empty() => RouteBody::Json(bytes),
            _ => RouteBody::Empty,
        },
    };
    let mut last_name = None;
    let with_name = |(name, value): (Option<HeaderName>, HeaderValue)| {
        // Only the first of several values, such as cookies, comes with its name.
        last_name = name.or_else(|| last_name.take());
        Some((last_name.clone()?, value))
    };
    let headers = parts.headers.into_iter().filter_map(with_name).collect();
    RouteResponse { status: parts.status, headers, body }
}

/// Sends comments on event streams that are otherwise silent, so that proxies do not close them.
pub(super) async fn keep_event_streams_alive(response: Response) -> Response {
    if response.extensions().get::<EventStreamMark>().is_none() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let chunks = with_comments(body.into_data_stream(), KEEP_ALIVE_INTERVAL);
    Response::from_parts(parts, Body::from_stream(chunks))
}

/// A stream with a comment after each interval without a chunk.
fn with_comments<E: Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    interval: Duration,
) -> impl Stream<Item = Result<Bytes, E>> + Send {
    stream::unfold(Box::pin(chunks), move |mut chunks| async move {
        match tokio::time::timeout(interval, chunks.next()).await {
            Ok(chunk) => chunk.map(|chunk| (chunk, chunks)),
            Err(_) => Some((Ok(Bytes::from_static(b":\n\n")), chunks)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gets_comments_and_ends_with_its_chunks() {
        let chunks = stream::once(async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            Ok::<_, Infallible>(Bytes::from_static(b"data: 1\n\n"))
        });
        let sent: Vec<_> = with_comments(chunks, Duration::from_secs(10)).collect().await;
        let sent: Vec<&[u8]> = sent.iter().map(|chunk| chunk.as_ref().unwrap().as_ref()).collect();
        assert_eq!(sent, [b":\n\n".as_slice(), b":\n\n", b"data: 1\n\n"]);
    }
}
