//! [`Permits`]: how many calls run at the same time. Processes that share a store hold permits and lend them to calls.

use std::time::Duration;

use tokio::time::Instant;

use crate::call_share::{RETRY_INTERVAL, Refusal, Taking};

/// After this time without a renewal, others get the permits of a process.
pub(crate) const HOLD_DURATION: Duration = Duration::from_secs(15);
/// Permits are renewed when they last no longer than this.
const RENEW_BEFORE: Duration = Duration::from_secs(10);
/// How soon the store is asked again after all permits were held.
const ASK_AGAIN_INTERVAL: Duration = Duration::from_millis(250);

/// The calls that run, and the permits that this process holds.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    in_use: u64,
    held: u64,
    held_until: Option<Instant>,
    refused_until: Option<(Instant, Option<String>)>,
}

impl Permits {
    /// Starts a call if less than `limit` run in this process, the only one.
    pub(crate) fn take_local(&mut self, limit: u64) -> Taking {
        if self.in_use >= limit {
            return Taking::Refused(Refusal { retry_after: RETRY_INTERVAL, store_error: None });
        }
        self.in_use += 1;
        Taking::Taken(0)
    }

    fn has_free(&self, now: Instant) -> bool {
        self.in_use < self.held && self.held_until.is_some_and(|until| now < until)
    }

    /// Whether the store must be asked before a call can start.
    pub(crate) fn must_ask(&self, now: Instant) -> bool {
        !self.has_free(now) && self.refused_until.as_ref().is_none_or(|(until, _)| now >= *until)
    }

    /// Starts a call with a permit that this process holds.
    pub(crate) fn take_held(&mut self, now: Instant) -> Taking {
        if self.has_free(now) {
            self.in_use += 1;
            return Taking::Taken(0);
        }
        match &self.refused_until {
            Some((until, error)) if now < *until => {
                Taking::Refused(Refusal { retry_after: RETRY_INTERVAL, store_error: error.clone() })
            }
            _ => Taking::AskStore,
        }
    }

    /// Ends a call.
    pub(crate) fn release(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// How many permits this process needs for another call.
    pub(crate) fn wanted_for_call(&self) -> u64 {
        self.in_use.saturating_add(1)
    }

    /// The store's answer to a request for `wanted` permits that was sent at this time.
    pub(crate) fn set_held(&mut self, asked_at: Instant, now: Instant, wanted: u64, held: u64) {
        (self.held, self.held_until) = (held, Some(asked_at + HOLD_DURATION));
        self.refused_until = (held < wanted).then(|| (now + ASK_AGAIN_INTERVAL, None));
    }

    pub(crate) fn store_failed(&mut self, now: Instant, error: String) {
        self.refused_until = Some((now + RETRY_INTERVAL, Some(error)));
    }

    /// Whether the store has to be told that permits are needed no longer, or still.
    pub(crate) fn is_change_due(&self, now: Instant) -> bool {
        let lasts = self.held_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        self.held > self.in_use || (self.held > 0 && lasts <= RENEW_BEFORE)
    }

    /// Gives up the permits without a call, before the store is told; returns how many stay.
    pub(crate) fn give_up_unused(&mut self) -> u64 {
        self.held = self.held.min(self.in_use);
        self.in_use
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_use == 0 && self.held == 0
    }
}
