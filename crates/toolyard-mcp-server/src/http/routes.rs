//! HTTP routes besides MCP: handlers get authenticated requests and answer with JSON or an event stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use toolyard_core::BoxFuture;

use crate::http::{
    body::{KeepAlive, ResponseBody},
    response,
};

/// Handles HTTP paths besides those of MCP. Requests are authenticated before they get here.
pub trait HttpRoutes: Send + Sync + fmt::Debug {
    /// Whether a path is handled here.
    fn matches(&self, path: &str) -> bool;

    /// Handles a request. The future is dropped when the client disconnects.
    fn handle(&self, request: RouteRequest) -> BoxFuture<'_, RouteResponse>;
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
    /// A complete JSON text.
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

    /// The HTTP response.
    pub(crate) fn respond(
        self,
        keep_alive: KeepAlive,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Response<ResponseBody> {
        let mut response = match self.body {
            RouteBody::Json(text) => response::json(text),
            RouteBody::Events { stream, ends_on_shutdown } => {
                let stopped: Pin<Box<dyn Future<Output = ()> + Send>> = match ends_on_shutdown {
                    true => Box::pin(stopped),
                    false => Box::pin(std::future::pending()),
                };
                response::stream(ResponseBody::Route(Box::new(RouteEventStream {
                    stream,
                    keep_alive,
                    stopped,
                })))
            }
        };
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Sends the events of a route.
pub(crate) struct RouteEventStream {
    stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    keep_alive: KeepAlive,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for RouteEventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteEventStream").finish_non_exhaustive()
    }
}

impl RouteEventStream {
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.stream.as_mut().poll_next(context) {
            Poll::Ready(Some(event)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stopped.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}
