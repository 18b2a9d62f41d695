//! A request that takes its time: driven by whoever sends its answer, told and asked things on the way.

use std::{
    collections::HashMap,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Sleep;
use toolyard_core::BoxFuture;

use super::{answer::Outcome, line::Line, speaker::Era};
use crate::wire::RequestId;

/// A server of the legacy era sends its questions one by one: what it asks within this time of each other is asked together.
const TOGETHER: Duration = Duration::from_millis(25);

/// A request that is being worked on. Nothing happens unless it is driven by [`Work::step`].
pub(super) struct Work {
    pub(super) line: Arc<Line>,
    future: Option<BoxFuture<'static, Outcome>>,
    /// Once the work is done, until everything that was said before has been sent.
    outcome: Option<Outcome>,
    /// Whether it goes on when its client is gone.
    outlives: bool,
    flight: Option<Flight>,
    /// How much was asked so far, and when that is taken for all of it.
    settling: Option<(usize, Pin<Box<Sleep>>)>,
}

/// What happened to a work.
#[derive(Debug)]
pub(super) enum Step {
    /// It says something.
    Said(Bytes),
    /// It asks something that can be answered only by another request.
    Asks,
    /// It is done.
    Ended(Outcome),
    /// Nobody wants its answer any more.
    Cancelled,
}

impl Work {
    pub(super) fn new(line: Arc<Line>, future: BoxFuture<'static, Outcome>) -> Self {
        Self { line, future: Some(future), outcome: None, outlives: false, flight: None, settling: None }
    }

    /// The same, in a way that it can be cancelled by its number, and goes on without its client where that is the rule.
    pub(super) fn in_flight(mut self, flights: &Arc<Flights>, id: &RequestId, outlives: bool) -> Self {
        self.flight = Some(flights.enter(&self.line, id));
        self.outlives = outlives;
        self
    }

    /// It will not be cancelled by its number any more, and ends with whoever drives it.
    pub(super) fn grounded(mut self) -> Self {
        self.flight = None;
        self.outlives = false;
        self
    }

    /// Drives the work until something happens.
    pub(super) fn step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        match self.rest(context) {
            Poll::Pending if self.line.speaker.era() == Era::Modern => {
                self.all_asked(context).map(|()| Step::Asks)
            }
            step => step,
        }
    }

    /// Ready as soon as something was asked and nothing more came for a moment.
    fn all_asked(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let asked = self.line.times_asked();
        if asked == 0 {
            return Poll::Pending;
        }
        let settling = self.settling.take().filter(|(before, _)| *before == asked);
        let (_, moment) =
            self.settling.insert(settling.unwrap_or_else(|| (asked, Box::pin(tokio::time::sleep(TOGETHER)))));
        let settled = moment.as_mut().poll(context);
        if settled.is_ready() {
            self.settling = None;
        }
        settled
    }

    /// The same while questions of the modern era wait for their answers already.
    pub(super) fn rest(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        self.line.watch(context);
        if self.line.is_cancelled() {
            self.future = None;
            return Poll::Ready(Step::Cancelled);
        }
        if let Some(said) = self.line.next_said() {
            return Poll::Ready(Step::Said(said));
        }
        if let Some(future) = &mut self.future
            && let Poll::Ready(outcome) = future.as_mut().poll(context)
        {
            self.future = None;
            self.outcome = Some(outcome);
        }
        if let Some(said) = self.line.next_said() {
            return Poll::Ready(Step::Said(said));
        }
        if let Some(outcome) = self.outcome.take() {
            return Poll::Ready(Step::Ended(outcome));
        }
        Poll::Pending
    }

    /// What happens next.
    pub(super) async fn next(&mut self) -> Step {
        poll_fn(|context| self.step(context)).await
    }

    /// Keeps the outcome for whoever asks later.
    pub(super) fn keep(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some(mut future) = self.future.take().filter(|_| self.outlives && !self.line.is_cancelled())
        else {
            return;
        };
        // The legacy era: a client that went away did not cancel what it asked for.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (line, flight) = (Arc::clone(&self.line), self.flight.take());
        runtime.spawn(async move {
            let _flight = flight;
            poll_fn(|context| {
                line.watch(context);
                if line.is_cancelled() { Poll::Ready(()) } else { future.as_mut().poll(context).map(drop) }
            })
            .await;
        });
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Work").field("line", &self.line).finish_non_exhaustive()
    }
}

/// Everything that can be cancelled by its number, over all clients.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Mutex<HashMap<(u64, String), Weak<Line>>>,
}

/// One entry among what can be cancelled; gone with the work.
#[derive(Debug)]
struct Flight {
    flights: Arc<Flights>,
    key: (u64, String),
    line: Weak<Line>,
}

impl Flights {
    fn enter(self: &Arc<Self>, line: &Arc<Line>, id: &RequestId) -> Flight {
        let key = (line.speaker.conversation, id.0.get().to_owned());
        let line = Arc::downgrade(line);
        self.lock().insert(key.clone(), Weak::clone(&line));
        Flight { flights: Arc::clone(self), key, line }
    }

    /// Cancels what a client asked for under this number.
    pub(super) fn cancel(&self, conversation: u64, id: &str) {
        let line = self.lock().get(&(conversation, id.to_owned())).and_then(Weak::upgrade);
        if let Some(line) = line {
            line.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, String), Weak<Line>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut open = self.flights.lock();
        // A client that used a number twice has put the second in the place of the first.
        if open.get(&self.key).is_some_and(|line| line.ptr_eq(&self.line)) {
            open.remove(&self.key);
        }
    }
}
