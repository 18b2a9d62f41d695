//! Other addresses beside the endpoint: whoever serves them gets requests that were let in, and answers at once or bit by bit.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use toolyard_core::BoxFuture;

use super::{
    body::{Answer, Beat},
    respond,
};

/// Serves addresses besides those of the protocol. Who may come in was checked before.
pub trait Pages: Send + Sync + fmt::Debug {
    /// Whether an address is one of these.
    fn has(&self, path: &str) -> bool;

    /// Answers a request. This is dropped when the client is gone.
    fn answer(&self, request: PageRequest) -> BoxFuture<'_, PageAnswer>;
}

/// A request that was let in.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// What is wanted.
    pub method: Method,
    /// Where.
    pub path: String,
    /// What stands behind the `?`.
    pub query: String,
    /// Everything else that was said about it.
    pub headers: HeaderMap,
    /// Its body, within the limit for messages.
    pub body: String,
}

/// An answer.
#[derive(Debug)]
pub struct PageAnswer {
    /// How it went.
    pub status: StatusCode,
    /// More headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What is answered.
    pub body: PageBody,
}

/// What is answered.
pub enum PageBody {
    /// A JSON text, at once.
    Json(Bytes),
    /// Events, as they come. The stream is dropped when the client is gone.
    Events {
        /// The events, written out.
        stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        /// Whether it ends once the server is to stop; otherwise the server waits for it as for a call.
        only_tells: bool,
    },
}

impl fmt::Debug for PageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json(_) => "Json",
            Self::Events { .. } => "Events",
        })
    }
}

impl PageAnswer {
    /// A JSON text.
    pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: PageBody::Json(text.into()) }
    }

    /// The answer as it goes out.
    pub(super) fn respond(
        self,
        beat: Beat,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Response<Answer> {
        let mut response = match self.body {
            PageBody::Json(text) => respond::json(text),
            PageBody::Events { stream, only_tells } => {
                let stopped: Pin<Box<dyn Future<Output = ()> + Send>> = match only_tells {
                    true => Box::pin(stopped),
                    false => Box::pin(std::future::pending()),
                };
                respond::stream(Answer::Page(Box::new(PageEvents { stream, beat, stopped })))
            }
        };
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Events of a page while they are sent.
pub(super) struct PageEvents {
    stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    beat: Beat,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for PageEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageEvents").finish_non_exhaustive()
    }
}

impl PageEvents {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.stream.as_mut().poll_next(context) {
            Poll::Ready(Some(event)) => {
                self.beat.heard();
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stopped.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending => self.beat.poll(context).map(Some),
        }
    }
}
