//! [`Permits`]: how many calls run at the same time. Processes that share a store hold permits and lend them to calls.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_core::StorageError;

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
    /// Whether the store may have another number than `held`, because a request is on its way or its outcome is unknown.
    is_unconfirmed: bool,
    refused_until: Option<(Instant, Option<String>)>,
}

/// A request for permits that is on its way.
#[derive(Debug)]
pub(crate) struct PermitRequest {
    /// How many permits this process wants to hold in total.
    pub(crate) wanted: u64,
    held_before: u64,
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

    /// Begins a request for as many permits as calls run, and for one more call if that is to start. Permits that are not wanted
    /// any more are given up before the store is told, because it may give them to others from then on. While the store fails,
    /// nothing is given up.
    pub(crate) fn begin_request(&mut self, is_for_call: bool) -> PermitRequest {
        let is_store_failing = matches!(self.refused_until, Some((_, Some(_))));
        let kept = if is_store_failing { self.held } else { 0 };
        let wanted = self.in_use.saturating_add(u64::from(is_for_call)).max(kept);
        let request = PermitRequest { wanted, held_before: self.held };
        self.held = self.held.min(wanted);
        self.is_unconfirmed = true;
        request
    }

    /// The store's answer to a request that was sent at this time.
    pub(crate) fn set_held(&mut self, asked_at: Instant, now: Instant, request: &PermitRequest, held: u64) {
        (self.held, self.held_until) = (held, Some(asked_at + HOLD_DURATION));
        self.is_unconfirmed = false;
        self.refused_until = (held < request.wanted).then(|| (now + ASK_AGAIN_INTERVAL, None));
    }

    /// The store failed. If it certainly changed nothing, this process still holds what it held before.
    pub(crate) fn store_failed(&mut self, now: Instant, request: &PermitRequest, error: &StorageError) {
        if !error.is_outcome_unknown() {
            self.held = request.held_before;
            self.is_unconfirmed = false;
        }
        self.refused_until = Some((now + RETRY_INTERVAL, Some(error.to_string())));
    }

    /// Whether the store has to be told that permits are needed no longer, or still.
    pub(crate) fn is_change_due(&self, now: Instant) -> bool {
        let lasts = self.held_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        self.is_unconfirmed || self.held > self.in_use || (self.held > 0 && lasts <= RENEW_BEFORE)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_use == 0 && self.held == 0 && !self.is_unconfirmed
    }
}
