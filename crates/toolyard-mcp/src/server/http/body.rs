//! Bodies of answers: whole messages, or streams of events that are made as they are sent.

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

use super::{
    super::{
        McpServer,
        answer::Pieces,
        duplex::Duplex,
        room::Room,
        session::Seat,
        work::{Step, Work},
    },
    legacy_sse::Open,
    pages::PageEvents,
};
use crate::wire::RequestId;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    Empty,
    Whole { pieces: [Bytes; 3], next: usize },
    Events(Box<Events>),
    Legacy(Box<LegacyEvents>),
    Page(Box<PageEvents>),
}

impl Answer {
    pub(super) fn whole(pieces: Pieces) -> Self {
        Self::Whole { pieces: [pieces.head, pieces.shared, pieces.tail], next: 0 }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Empty => None,
            Self::Whole { pieces, next } => {
                let mut piece = None;
                while piece.is_none() && *next < pieces.len() {
                    piece = pieces.get_mut(*next).map(std::mem::take).filter(|piece| !piece.is_empty());
                    *next += 1;
                }
                piece
            }
            Self::Events(events) => std::task::ready!(events.poll(context)),
            Self::Legacy(events) => std::task::ready!(events.poll(context)),
            Self::Page(events) => std::task::ready!(events.poll(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole { pieces, next } => pieces.iter().skip(*next).all(Bytes::is_empty),
            Self::Events(_) | Self::Legacy(_) | Self::Page(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole { pieces, next } => {
                let left = pieces.iter().skip(*next).map(Bytes::len).sum::<usize>();
                SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
            }
            Self::Events(_) | Self::Legacy(_) | Self::Page(_) => SizeHint::default(),
        }
    }
}

/// A request's answer as events: the work goes on as long as somebody reads them.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) server: Arc<McpServer>,
    pub(super) room: Arc<Room>,
    pub(super) principal: [u8; 32],
    /// What is answered; none where there is nothing to answer and the stream only tells.
    pub(super) id: Option<RequestId>,
    pub(super) work: Option<Work>,
    /// What was said already.
    pub(super) first: Option<Bytes>,
    pub(super) beat: Beat,
}

impl Events {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        match work.step(context) {
            Poll::Ready(Step::Said(said)) => {
                self.beat.heard();
                Poll::Ready(Some(event(&said)))
            }
            Poll::Ready(Step::Ended(outcome)) => {
                self.work = None;
                Poll::Ready(self.id.as_ref().map(|id| last_event(&outcome.pieces(id))))
            }
            Poll::Ready(Step::Asks) => {
                let seat = Seat { profile: &self.room.profile, principal: &self.principal };
                let outcome = self.work.take().map(|work| self.server.park(&seat, work));
                let (Some(outcome), Some(id)) = (outcome, &self.id) else { return Poll::Ready(None) };
                Poll::Ready(Some(last_event(&outcome.pieces(id))))
            }
            Poll::Ready(Step::Cancelled) => {
                self.work = None;
                Poll::Ready(None)
            }
            Poll::Pending => self.beat.poll(context).map(Some),
        }
    }
}

/// A message as an event.
pub(super) fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ".as_slice(), message, b"\n\n"].concat().into()
}

pub(super) fn last_event(pieces: &Pieces) -> Bytes {
    pieces.line(b"event: message\ndata: ", b"\n\n")
}

/// The stream of the first revision: everything that is said to one client.
pub(super) struct LegacyEvents {
    pub(super) first: Option<Bytes>,
    pub(super) messages: mpsc::Receiver<Bytes>,
    pub(super) beat: Beat,
    /// Ends once the server is to stop.
    pub(super) stopped: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    /// The conversation ends with its stream, and leaves the table of those that are open.
    pub(super) _conversation: (Arc<Duplex>, Open),
}

impl fmt::Debug for LegacyEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LegacyEvents").finish_non_exhaustive()
    }
}

impl LegacyEvents {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        match self.messages.poll_recv(context) {
            Poll::Ready(Some(message)) => {
                self.beat.heard();
                Poll::Ready(Some(event(&message)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.stopped.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending => self.beat.poll(context).map(Some),
        }
    }
}

/// Says now and then, on a stream where nothing else is said, that it is still there.
#[derive(Debug)]
pub(super) struct Beat {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl Beat {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, next: Box::pin(sleep(every)) }
    }

    pub(super) fn heard(&mut self) {
        self.next.as_mut().reset(Instant::now() + self.every);
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.next.as_mut().poll(context));
        self.heard();
        // The new time must be waited for as well.
        let _ = self.next.as_mut().poll(context);
        Poll::Ready(Bytes::from_static(b":\n\n"))
    }
}
