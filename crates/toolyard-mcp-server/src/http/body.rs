//! [`ResponseBody`]: complete messages, or event streams produced while they are sent.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use toolyard_mcp::RequestId;

use crate::{
    dispatch::{outcome::MessageChunks, served_endpoint::ServedEndpoint},
    http::event_stream::{EventStream, KeepAlive, sse_event, sse_event_from_chunks},
    interaction::request_task::{RequestTask, TaskEvent},
    server::McpServer,
    session::session_id::SessionScope,
};

#[derive(Debug)]
pub(crate) enum ResponseBody {
    Empty,
    Complete { chunks: [Bytes; 3], next: usize },
    Task(Box<TaskEventStream>),
    Events(Box<EventStream>),
}

impl ResponseBody {
    pub(crate) fn complete(chunks: MessageChunks) -> Self {
        Self::Complete { chunks: [chunks.head, chunks.shared, chunks.tail], next: 0 }
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
            Self::Complete { chunks, next } => {
                let mut chunk = None;
                while chunk.is_none() && *next < chunks.len() {
                    chunk = chunks.get_mut(*next).map(std::mem::take).filter(|chunk| !chunk.is_empty());
                    *next += 1;
                }
                chunk
            }
            Self::Task(events) => std::task::ready!(events.poll(context)),
            Self::Events(events) => std::task::ready!(events.poll(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Complete { chunks, next } => chunks.iter().skip(*next).all(Bytes::is_empty),
            Self::Task(_) | Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Complete { chunks, next } => {
                let left = chunks.iter().skip(*next).map(Bytes::len).sum::<usize>();
                SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
            }
            Self::Task(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}

/// The response to a request as events. The task runs while the client reads.
#[derive(Debug)]
pub(crate) struct TaskEventStream {
    pub(crate) server: Arc<McpServer>,
    pub(crate) endpoint: Arc<ServedEndpoint>,
    /// Who sent the request ([`toolyard_core::CallerIdentity::owner_hash`]).
    pub(crate) owner_hash: [u8; 32],
    /// The id of the request; none for a stream of change notifications.
    pub(crate) id: Option<RequestId>,
    pub(crate) task: Option<RequestTask>,
    /// Sent before the events of the task.
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
                Poll::Ready(self.id.as_ref().map(|id| sse_event_from_chunks(&outcome.into_chunks(id))))
            }
            Poll::Ready(TaskEvent::InputRequired) => {
                let scope = SessionScope { profile: &self.endpoint.profile, owner_hash: &self.owner_hash };
                let outcome = self.task.take().map(|task| self.server.suspend(&scope, task));
                let (Some(outcome), Some(id)) = (outcome, &self.id) else { return Poll::Ready(None) };
                Poll::Ready(Some(sse_event_from_chunks(&outcome.into_chunks(id))))
            }
            Poll::Ready(TaskEvent::Cancelled) => {
                self.task = None;
                Poll::Ready(None)
            }
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}
