//! The events of one HTTP body, and when there have been too many that nobody asked for.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{TransportError, http_answer::HttpAnswer, http_caller::LONG};
use crate::wire::{SseEvent, SseParser, WireError, WireLimits};

/// What one event was.
#[derive(Debug)]
pub(super) enum Told<T> {
    /// Nothing anyone waits for.
    Noise,
    /// Something worth hearing.
    Heard,
    /// What the stream was read for.
    Done(T),
}

/// One body of events being read.
#[derive(Debug)]
pub(super) struct EventStream {
    response: HttpAnswer,
    parser: SseParser,
    /// Bytes that were not what is waited for: all so far, or all since something was heard.
    noise: usize,
    limit: usize,
    long_lived: bool,
    /// Events that are long are read one after the other, if at all.
    turns: Option<Arc<Semaphore>>,
    turn: Option<OwnedSemaphorePermit>,
}

impl EventStream {
    /// The events of a request's answer. All events before the answer together may be as long as one message.
    pub(super) fn new(response: HttpAnswer, limits: &WireLimits) -> Self {
        let limit = limits.message_bytes.saturating_mul(2);
        Self {
            response,
            parser: SseParser::new(limits),
            noise: 0,
            limit,
            long_lived: false,
            turns: None,
            turn: None,
        }
    }

    /// The same for a stream that is there to be listened to: whatever is heard starts the count anew.
    pub(super) fn long_lived(mut self) -> Self {
        self.long_lived = true;
        self
    }

    /// The same, waiting with long events for its turn.
    pub(super) fn taking_turns(mut self, turns: &Arc<Semaphore>) -> Self {
        self.turns = Some(Arc::clone(turns));
        self
    }

    async fn take_turn(&mut self) {
        if self.parser.held() <= LONG {
            self.turn = None;
        } else if let (None, Some(turns)) = (&self.turn, &self.turns) {
            self.turn = Arc::clone(turns).acquire_owned().await.ok();
        }
    }

    /// Gives each event to `each` until that is done. None when the stream ends before.
    pub(super) async fn read<T>(
        &mut self,
        mut each: impl FnMut(SseEvent) -> Told<T>,
    ) -> Result<Option<T>, TransportError> {
        while let Some(chunk) = self.response.chunk().await? {
            self.noise = self.noise.saturating_add(chunk.len());
            let mut rest = chunk;
            while let Some(event) = self.parser.next(&mut rest)? {
                match each(event) {
                    Told::Done(done) => return Ok(Some(done)),
                    Told::Heard if self.long_lived => self.noise = rest.len(),
                    Told::Heard | Told::Noise => {}
                }
            }
            if self.noise > self.limit {
                let what = "a stream without what it was opened for";
                return Err(WireError::TooLong { what, limit: self.limit }.into());
            }
            self.take_turn().await;
        }
        Ok(None)
    }

    /// Leaves a stream that has given what it was opened for.
    pub(super) fn leave(self) {
        self.response.leave();
    }

    /// The id to resume after, and how long to wait before.
    pub(super) fn resume_point(&self) -> (Option<&str>, Option<Duration>) {
        (self.parser.last_event_id(), self.parser.retry())
    }
}
