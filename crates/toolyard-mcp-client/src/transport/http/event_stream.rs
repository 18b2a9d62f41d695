//! The events of one HTTP body, with a limit on those before the expected message.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolyard_core::sse::{SseEvent, SseLimits, SseParser};
use toolyard_mcp::{WireError, WireLimits};

use crate::transport::{error::TransportError, http::response::HttpResponse};

/// Larger bodies and events of one server are read one after the other, so that many at once need the memory of one.
pub(super) const LARGE_BODY_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(crate) enum EventOutcome<T> {
    /// Not a message.
    Ignored,
    /// A message other than the expected one.
    Message,
    /// What the stream was read for.
    Done(T),
}

#[derive(Debug)]
pub(crate) struct EventStream {
    response: HttpResponse,
    parser: SseParser,
    /// Bytes so far without the expected message; in a long-lived stream, since the last message.
    unexpected_bytes: usize,
    limit: usize,
    is_long_lived: bool,
    /// Held while a large event is read.
    large_body_permits: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl EventStream {
    /// The events of a response. Those before the expected message may be as large as one message together.
    pub(crate) fn new(response: HttpResponse, limits: &WireLimits) -> Self {
        Self {
            response,
            parser: SseParser::new(SseLimits {
                max_data_bytes: limits.message_bytes,
                max_line_bytes: limits.noise_bytes,
            }),
            unexpected_bytes: 0,
            // The expected message itself counts, too.
            limit: limits.message_bytes.saturating_mul(2),
            is_long_lived: false,
            large_body_permits: None,
            permit: None,
        }
    }

    /// A stream of unsolicited messages: every message resets the limit.
    pub(crate) fn long_lived(mut self) -> Self {
        self.is_long_lived = true;
        self
    }

    /// Reads large events only with a permit.
    pub(super) fn with_large_body_permits(mut self, permits: &Arc<Semaphore>) -> Self {
        self.large_body_permits = Some(Arc::clone(permits));
        self
    }

    async fn update_permit(&mut self) {
        if self.parser.buffered_bytes() <= LARGE_BODY_BYTES {
            self.permit = None;
        } else if let (None, Some(permits)) = (&self.permit, &self.large_body_permits) {
            self.permit = Arc::clone(permits).acquire_owned().await.ok();
        }
    }

    /// Passes events to `handle` until one is `Done`. None if the stream ends before.
    pub(crate) async fn read<T>(
        &mut self,
        mut handle: impl FnMut(SseEvent) -> EventOutcome<T>,
    ) -> Result<Option<T>, TransportError> {
        while let Some(chunk) = self.response.chunk().await? {
            self.unexpected_bytes = self.unexpected_bytes.saturating_add(chunk.len());
            let mut rest = chunk;
            while let Some(event) = self.parser.next(&mut rest).map_err(WireError::from)? {
                match handle(event) {
                    EventOutcome::Done(done) => return Ok(Some(done)),
                    EventOutcome::Message if self.is_long_lived => self.unexpected_bytes = rest.len(),
                    EventOutcome::Message | EventOutcome::Ignored => {}
                }
            }
            if self.unexpected_bytes > self.limit {
                let what = "an event stream without the expected message";
                return Err(WireError::TooLong { what, limit: self.limit }.into());
            }
            self.update_permit().await;
        }
        Ok(None)
    }

    pub(super) fn release(self) {
        self.response.release();
    }

    /// The event id to resume after, and the delay that the server asked for.
    pub(super) fn resume_point(&self) -> (Option<&str>, Option<Duration>) {
        (self.parser.last_event_id(), self.parser.retry())
    }
}
