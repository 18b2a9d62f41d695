//! [`CallShare`]: the part of a shared budget of calls that this process may spend without asking the store.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_core::{BudgetState, WindowLimit};

/// A share is at most this fraction of the limit, so that little is lost if a process ends with an unspent share.
const MAX_SHARE_FRACTION: u64 = 20;
/// A budget that was used up is asked for again after this time, because another process may give something back.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Whether something could be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taking {
    /// In this slot.
    Taken(u64),
    Refused(Refusal),
    /// The store must be asked.
    AskStore,
}

/// Why nothing can be taken, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) retry_after: Duration,
    pub(crate) store_error: Option<String>,
}

/// A share that is spent until its slot ends, and its size, which follows the demand.
#[derive(Debug, Default)]
pub(crate) struct CallShare {
    available: u64,
    slot: u64,
    /// The end of the slot by this process's clock, never later than by the store's.
    until: Option<Instant>,
    /// The size of the latest share.
    size: u64,
    unreturned: Vec<(u64, u64)>,
    refused: Option<RefusedUntil>,
}

#[derive(Debug)]
struct RefusedUntil {
    until: Instant,
    ask_again_at: Instant,
    store_error: Option<String>,
}

impl CallShare {
    /// Spends one call of the share.
    pub(crate) fn take(&mut self, now: Instant) -> Taking {
        self.expire(now);
        if let Some(left) = self.available.checked_sub(1) {
            self.available = left;
            return Taking::Taken(self.slot);
        }
        match &self.refused {
            Some(refused) if now < refused.ask_again_at => Taking::Refused(Refusal {
                retry_after: refused.until.saturating_duration_since(now),
                store_error: refused.store_error.clone(),
            }),
            _ => Taking::AskStore,
        }
    }

    /// Spends one call of a share that was just added, up to `lateness` after the end of its slot.
    pub(crate) fn take_late(&mut self, now: Instant, lateness: Duration) -> Option<u64> {
        let left = self.available.checked_sub(1)?;
        let is_in_time = self.until.is_some_and(|until| now < until + lateness);
        is_in_time.then(|| {
            self.available = left;
            self.slot
        })
    }

    /// Takes back a call that was taken in this slot and not made.
    pub(crate) fn give_back(&mut self, slot: u64) {
        // If the slot has ended, the next use of the share returns it to the store.
        if slot == self.slot {
            self.available += 1;
        } else {
            self.unreturned.push((slot, 1));
        }
    }

    /// What to ask the store for: twice the latest share if all of that was spent.
    pub(crate) fn wanted(&self, limit: WindowLimit) -> u64 {
        self.size.saturating_mul(2).clamp(1, (limit.limit / MAX_SHARE_FRACTION).max(1))
    }

    /// What the store has to be told of; the caller keeps it from now on.
    pub(crate) fn take_unreturned(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.unreturned)
    }

    /// The store failed.
    pub(crate) fn store_failed(&mut self, now: Instant, error: String) {
        let until = now + RETRY_INTERVAL;
        self.refused = Some(RefusedUntil { until, ask_again_at: until, store_error: Some(error) });
    }

    /// Adds what the store granted, `asked_at` this time.
    pub(crate) fn add(&mut self, asked_at: Instant, state: &BudgetState) {
        if state.granted == 0 {
            let ask_again_at = asked_at + state.wait.min(RETRY_INTERVAL);
            self.refused =
                Some(RefusedUntil { until: asked_at + state.wait, ask_again_at, store_error: None });
            return;
        }
        if self.available > 0 {
            self.unreturned.push((self.slot, self.available));
        }
        (self.available, self.slot, self.size) = (state.granted, state.slot, state.granted);
        self.until = Some(asked_at + state.slot_ends_in);
        self.refused = None;
    }

    /// Whether the store has to be told of something.
    pub(crate) fn has_unreturned(&mut self, now: Instant) -> bool {
        self.expire(now);
        !self.unreturned.is_empty()
    }

    /// Whether nothing would be lost without this share.
    pub(crate) fn is_idle(&mut self, now: Instant) -> bool {
        let is_refusing = self.refused.as_ref().is_some_and(|refused| now < refused.ask_again_at);
        !self.has_unreturned(now) && self.available == 0 && !is_refusing
    }

    /// Ends the share before its slot does.
    pub(crate) fn give_up(&mut self) {
        self.until = None;
    }

    fn expire(&mut self, now: Instant) {
        if self.available > 0 && self.until.is_none_or(|until| now >= until) {
            self.unreturned.push((self.slot, self.available));
            // The next share is what was really needed.
            self.size = self.size.saturating_sub(self.available) / 2;
            self.available = 0;
        }
    }
}
