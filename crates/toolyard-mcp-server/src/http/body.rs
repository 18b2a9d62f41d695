//! [`ResponseBody`]: complete messages, or event streams produced while they are sent.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};
use toolyard_mcp::RequestId;

use crate::{
    dispatch::{outcome::MessageChunks, served_endpoint::ServedEndpoint},
    http::{legacy_sse::LegacySessionGuard, routes::RouteEventStream},
    interaction::request_task::{RequestTask, TaskEvent},
    server::McpServer,
    session::session_id::SessionScope,
    stdio::duplex_session::DuplexSession,
};

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Empty,
    Complete { pieces: [Bytes; 3], next: usize },
    Task(Box<TaskEventStream>),
    LegacySse(Box<LegacyEventStream>),
    Route(Box<RouteEventStream>),
}

impl ResponseBody {
    pub(crate) fn complete(pieces: MessageChunks) -> Self {
        Self::Complete { pieces: [pieces.head, pieces.shared, pieces.tail], next: 0 }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Empty => None,
            Self::Complete { pieces, next } => {
                let mut piece = None;
                while piece.is_none() && *next < pieces.len() {
                    piece = pieces.get_mut(*next).map(std::mem::take).filter(|piece| !piece.is_empty());
                    *next += 1;
                }
                piece
            }
            Self::Task(events) => std::task::ready!(events.poll(context)),
            Self::LegacySse(events) => std::task::ready!(events.poll(context)),
            Self::Route(events) => std::task::ready!(events.poll(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Complete { pieces, next } => pieces.iter().skip(*next).all(Bytes::is_empty),
            Self::Task(_) | Self::LegacySse(_) | Self::Route(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Complete { pieces, next } => {
                let left = pieces.iter().skip(*next).map(Bytes::len).sum::<usize>();
                SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
            }
            Self::Task(_) | Self::LegacySse(_) | Self::Route(_) => SizeHint::default(),
        }
    }
}

/// The response to a request as events. The task runs while the client reads.
#[derive(Debug)]
pub(crate) struct TaskEventStream {
    pub(crate) server: Arc<McpServer>,
    pub(crate) endpoint: Arc<ServedEndpoint>,
    pub(crate) principal: [u8; 32],
    /// The id of the request; none for a stream of change notifications.
    pub(crate) id: Option<RequestId>,
    pub(crate) task: Option<RequestTask>,
    /// The first event.
    pub(crate) first: Option<Bytes>,
    pub(crate) keep_alive: KeepAlive,
}

impl TaskEventStream {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let Some(task) = &mut self.task else { return Poll::Ready(None) };
        match task.poll_event(context) {
            Poll::Ready(TaskEvent::Message(message)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(sse_event(&message)))
            }
            Poll::Ready(TaskEvent::Completed(outcome)) => {
                self.task = None;
                Poll::Ready(self.id.as_ref().map(|id| sse_event_of(&outcome.into_chunks(id))))
            }
            Poll::Ready(TaskEvent::InputRequired) => {
                let scope = SessionScope { profile: &self.endpoint.profile, principal: &self.principal };
                let outcome = self.task.take().map(|task| self.server.suspend(&scope, task));
                let (Some(outcome), Some(id)) = (outcome, &self.id) else { return Poll::Ready(None) };
                Poll::Ready(Some(sse_event_of(&outcome.into_chunks(id))))
            }
            Poll::Ready(TaskEvent::Cancelled) => {
                self.task = None;
                Poll::Ready(None)
            }
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}

/// A message as an event.
pub(crate) fn sse_event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ".as_slice(), message, b"\n\n"].concat().into()
}

pub(crate) fn sse_event_of(pieces: &MessageChunks) -> Bytes {
    pieces.to_line(b"event: message\ndata: ", b"\n\n")
}

/// The event stream of a client with the HTTP+SSE transport of 2024-11-05.
pub(crate) struct LegacyEventStream {
    pub(crate) first: Option<Bytes>,
    pub(crate) messages: mpsc::Receiver<Bytes>,
    pub(crate) keep_alive: KeepAlive,
    /// Resolves when the server shuts down.
    pub(crate) stopped: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    /// Ends the session together with its stream.
    pub(crate) _session: (Arc<DuplexSession>, LegacySessionGuard),
}

impl fmt::Debug for LegacyEventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LegacyEventStream").finish_non_exhaustive()
    }
}

impl LegacyEventStream {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        match self.messages.poll_recv(context) {
            Poll::Ready(Some(message)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(sse_event(&message)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stopped.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}

/// Sends comments on an otherwise silent stream.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, next: Box::pin(sleep(every)) }
    }

    pub(crate) fn reset(&mut self) {
        self.next.as_mut().reset(Instant::now() + self.every);
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.next.as_mut().poll(context));
        self.reset();
        // Registers the waker for the new deadline.
        let _ = self.next.as_mut().poll(context);
        Poll::Ready(Bytes::from_static(b":\n\n"))
    }
}
