//! HTTP routes besides MCP: handlers get authenticated requests and answer with JSON or an event stream.

use std::{fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use toolyard_core::{BoxFuture, CallerIdentity};

/// Handles HTTP paths besides those of MCP. Requests are authenticated before they get here, unless the path is public.
pub trait HttpRoutes: Send + Sync + fmt::Debug {
    /// Whether a path is handled here.
    fn matches(&self, path: &str) -> bool;

    /// Whether everybody may send requests to a path, without authentication. Hosts and origins are checked nevertheless.
    fn is_public(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Returns the identity of a token that opens this path and no other. Called for requests without the token of the server.
    fn token_holder(&self, path: &str, token: &str) -> Option<Arc<CallerIdentity>> {
        let _ = (path, token);
        None
    }

    /// Returns the identity of a valid ticket in the query. Called only for requests without credentials; Host and Origin are checked
    /// in any case.
    fn ticket_holder(&self, method: &Method, path: &str, query: &str) -> Option<Arc<CallerIdentity>> {
        let _ = (method, path, query);
        None
    }

    /// Handles a request. The future is dropped when the client disconnects.
    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse>;

    /// The body of an error for a request to one of these paths that is refused before it gets here: no access (401, 403), a body
    /// that is too long (413) or cannot be read.
    fn error_body(&self, status: StatusCode, message: &str) -> Bytes;
}

/// An authenticated request.
#[derive(Debug, Clone)]
pub struct RouteRequest {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The query string, without the `?`.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// Who sent it.
    pub identity: Arc<CallerIdentity>,
    /// The body, at most as long as an MCP message may be.
    pub body: String,
}

/// A response.
#[derive(Debug)]
pub struct RouteResponse {
    /// The status.
    pub status: StatusCode,
    /// Additional headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: RouteBody,
}

/// The body of a response.
pub enum RouteBody {
    /// Nothing.
    Empty,
    /// A complete text: JSON, unless the headers of the response say otherwise.
    Json(Bytes),
    /// Server-sent events. The stream is dropped when the client disconnects.
    Events {
        /// The encoded events.
        stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        /// Whether the stream ends when the server shuts down; otherwise the server waits for it as for a tool call.
        ends_on_shutdown: bool,
    },
}

impl fmt::Debug for RouteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Json(_) => "Json",
            Self::Events { .. } => "Events",
        })
    }
}

impl RouteResponse {
    /// A JSON response.
    pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: RouteBody::Json(text.into()) }
    }
}
