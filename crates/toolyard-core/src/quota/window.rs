//! [`WindowUse`]: what was used in the latest window of time, so that no window of that length ever exceeds the limit.

use std::{collections::VecDeque, time::Duration};

use serde::{Deserialize, Serialize};

/// Use is counted in slots of this fraction of a window. A window overlaps at most one slot more, so that the limit holds for
/// those together: a quota that is always used up allows 60/61 of its limit in each window.
const SLOTS_PER_WINDOW: u64 = 60;

/// A limit per window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowLimit {
    /// How much may be used within any window.
    pub limit: u64,
    /// The length of a window in milliseconds.
    pub window_millis: u64,
}

impl WindowLimit {
    fn slot_millis(self) -> u64 {
        self.window_millis.div_ceil(SLOTS_PER_WINDOW).max(1)
    }

    /// The length of a window.
    pub fn window(self) -> Duration {
        Duration::from_millis(self.window_millis)
    }

    fn slot_at(self, now_millis: u64) -> u64 {
        now_millis / self.slot_millis()
    }
}

/// What was used of a limit in the latest window. The caller passes the time, in milliseconds since any moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowUse {
    /// The number of a slot and what was used in it, the oldest first.
    slots: VecDeque<(u64, u64)>,
}

impl WindowUse {
    /// Takes as much of `wanted` as is left; returns how much.
    pub fn take(&mut self, limit: WindowLimit, now_millis: u64, wanted: u64) -> u64 {
        let granted = wanted.min(self.remaining(limit, now_millis));
        self.charge(limit, now_millis, granted);
        granted
    }

    /// Counts use whether or not it is within the limit.
    pub fn charge(&mut self, limit: WindowLimit, now_millis: u64, amount: u64) {
        if amount == 0 {
            return;
        }
        let slot = self.current_slot(limit, now_millis);
        match self.slots.back_mut() {
            Some((last, used)) if *last == slot => *used = used.saturating_add(amount),
            _ => self.slots.push_back((slot, amount)),
        }
    }

    /// What was used in the latest window, and up to one slot before.
    pub fn used(&mut self, limit: WindowLimit, now_millis: u64) -> u64 {
        let current = self.current_slot(limit, now_millis);
        while self.slots.front().is_some_and(|(slot, _)| slot.saturating_add(SLOTS_PER_WINDOW) < current) {
            self.slots.pop_front();
        }
        self.slots.iter().fold(0, |sum, (_, used)| sum.saturating_add(*used))
    }

    /// What is left of the limit.
    pub fn remaining(&mut self, limit: WindowLimit, now_millis: u64) -> u64 {
        limit.limit.saturating_sub(self.used(limit, now_millis))
    }

    /// How long to wait until something is left: zero if there is, the length of a window if the limit is zero.
    pub fn wait_millis(&mut self, limit: WindowLimit, now_millis: u64) -> u64 {
        let used = self.used(limit, now_millis);
        if used < limit.limit {
            return 0;
        }
        let mut left = used;
        for (slot, used) in &self.slots {
            left = left.saturating_sub(*used);
            if left < limit.limit {
                let expires_in_slot = slot.saturating_add(SLOTS_PER_WINDOW + 1);
                return expires_in_slot.saturating_mul(limit.slot_millis()).saturating_sub(now_millis);
            }
        }
        limit.window_millis
    }

    /// The number of the slot in which use is counted now. A clock that is set back does not make use count as old.
    fn current_slot(&mut self, limit: WindowLimit, now_millis: u64) -> u64 {
        let slot = limit.slot_at(now_millis);
        // Slots that far ahead were counted by a clock that was wrong.
        while self.slots.back().is_some_and(|(last, _)| *last > slot.saturating_add(SLOTS_PER_WINDOW)) {
            self.slots.pop_back();
        }
        self.slots.back().map_or(slot, |(last, _)| slot.max(*last))
    }

    /// How long to wait until nothing is used, if nothing more is.
    pub fn resets_in_millis(&mut self, limit: WindowLimit, now_millis: u64) -> u64 {
        let last = self.slots.back().map_or(0, |(slot, _)| slot.saturating_add(SLOTS_PER_WINDOW + 1));
        last.saturating_mul(limit.slot_millis()).saturating_sub(now_millis)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: u64 = 60_000;

    #[test]
    fn what_is_used_is_free_again_after_the_window() {
        let (limit, mut used) = (WindowLimit { limit: 3, window_millis: MINUTE }, WindowUse::default());
        assert_eq!(used.take(limit, 10, 2), 2);
        assert_eq!(used.take(limit, 30_000, 5), 1);
        assert_eq!(used.take(limit, 30_001, 1), 0);
        // The first slot ends at 1 s, so that what was used in it counts until 61 s.
        assert_eq!(used.wait_millis(limit, 30_001), 61_000 - 30_001);
        assert_eq!(used.take(limit, 60_999, 1), 0);
        assert_eq!(used.take(limit, 61_000, 5), 2);
    }

    #[test]
    fn charges_may_exceed_the_limit_and_then_nothing_is_left() {
        let (limit, mut used) = (WindowLimit { limit: 10, window_millis: MINUTE }, WindowUse::default());
        used.charge(limit, 0, 25);
        assert_eq!((used.remaining(limit, 1), used.used(limit, 1)), (0, 25));
        assert_eq!(used.wait_millis(limit, 1), 61_000 - 1);
        assert_eq!(used.remaining(limit, 61_000), 10);
    }

    #[test]
    fn a_clock_that_is_set_back_frees_nothing_and_a_wrong_one_blocks_nobody() {
        let (limit, mut used) = (WindowLimit { limit: 1, window_millis: MINUTE }, WindowUse::default());
        assert_eq!(used.take(limit, 50_000, 1), 1);
        assert_eq!(used.take(limit, 20_000, 1), 0);
        let mut far_ahead = WindowUse::default();
        assert_eq!(far_ahead.take(limit, 1_000 * MINUTE, 1), 1);
        assert_eq!(far_ahead.take(limit, MINUTE, 1), 1, "a slot in the far future is no use");
    }

    #[test]
    fn a_limit_of_zero_allows_nothing() {
        let (limit, mut used) = (WindowLimit { limit: 0, window_millis: MINUTE }, WindowUse::default());
        assert_eq!((used.take(limit, 0, 1), used.wait_millis(limit, 0)), (0, MINUTE));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Whatever is asked for and when: no window of the given length contains more than the limit, and who waits for as
        /// long as told gets something.
        #[test]
        fn no_window_exceeds_the_limit_and_waiting_helps(
            limit in 1_u64..40,
            window_millis in 1_u64..5_000,
            requests in prop::collection::vec((0_u64..700, 1_u64..15, any::<bool>()), 1..120),
        ) {
            let limit = WindowLimit { limit, window_millis };
            let (mut used, mut now) = (WindowUse::default(), 1_000_000);
            let mut grants: Vec<(u64, u64)> = Vec::new();
            for (pause, wanted, waits) in requests {
                now += pause;
                let mut granted = used.take(limit, now, wanted);
                if granted == 0 && waits {
                    let wait = used.wait_millis(limit, now);
                    prop_assert!(wait > 0 && wait <= (SLOTS_PER_WINDOW + 1) * limit.slot_millis(), "{wait}");
                    now += wait;
                    granted = used.take(limit, now, wanted);
                    prop_assert!(granted > 0);
                }
                grants.push((now, granted));
                let latest = grants.iter().filter(|(at, _)| at + window_millis > now);
                prop_assert!(latest.map(|(_, granted)| granted).sum::<u64>() <= limit.limit);
            }
        }

        /// A quota that is always wanted is used almost fully.
        #[test]
        fn a_saturated_quota_allows_at_least_95_percent(limit in 1_u64..500, window_seconds in 1_u64..100) {
            let limit = WindowLimit { limit, window_millis: window_seconds * 1_000 };
            let (mut used, mut granted) = (WindowUse::default(), 0);
            let (windows, step) = (40, (limit.slot_millis() / 2).max(1));
            let end = windows * limit.window_millis;
            for now in (0..end).step_by(usize::try_from(step).unwrap()) {
                granted += used.take(limit, now, u64::MAX);
            }
            prop_assert!(granted * 100 >= 95 * limit.limit * windows, "{granted} of {}", limit.limit * windows);
        }
    }
}
