//! Event streams: a stream of encoded events with keep-alive comments, and the encoding of messages as events.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::time::{Instant, Sleep, sleep};
use toolyard_core::BoxFuture;

use crate::dispatch::outcome::MessageChunks;

/// Sends encoded events until they end or the server shuts down.
pub(crate) struct EventStream {
    pub(crate) events: BoxStream<'static, Bytes>,
    pub(crate) keep_alive: KeepAlive,
    /// Resolves when the stream must end.
    pub(crate) stop: BoxFuture<'static, ()>,
}

impl EventStream {
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.events.as_mut().poll_next(context) {
            Poll::Ready(Some(event)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stop.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// A message as an event.
pub(crate) fn sse_event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ".as_slice(), message, b"\n\n"].concat().into()
}

pub(crate) fn sse_event_from_chunks(chunks: &MessageChunks) -> Bytes {
    chunks.to_line_between(b"event: message\ndata: ", b"\n\n")
}

/// Sends comments on an otherwise silent stream.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    interval: Duration,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, timer: Box::pin(sleep(interval)) }
    }

    pub(crate) fn reset(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.interval);
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.timer.as_mut().poll(context));
        self.reset();
        // Registers the waker for the new deadline.
        let _ = self.timer.as_mut().poll(context);
        Poll::Ready(Bytes::from_static(b":\n\n"))
    }
}
