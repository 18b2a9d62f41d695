//! The deadline of a call that reports activity: an idle timeout within a maximum duration.

use std::{
    fmt,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// A deadline that activity extends, up to a maximum. The side that executes the call reports activity; the side that waits
/// for it reads the deadline.
pub struct ExtendableDeadline {
    start: Instant,
    idle_timeout: Duration,
    max_duration: Duration,
    /// Nanoseconds from the start to the deadline.
    deadline_nanos: AtomicU64,
    /// How many input requests are unanswered. While there is one, the idle timeout is paused.
    pauses: AtomicU32,
    activity_observer: Option<ActivityObserver>,
}

/// Is called whenever a call is active.
type ActivityObserver = Box<dyn Fn() + Send + Sync>;

impl ExtendableDeadline {
    /// A deadline `idle_timeout` after the latest activity, and at most `max_duration` after `start`.
    pub fn new(start: Instant, idle_timeout: Duration, max_duration: Duration) -> Self {
        Self {
            start,
            idle_timeout,
            max_duration: max_duration.max(idle_timeout),
            deadline_nanos: AtomicU64::new(nanoseconds(idle_timeout)),
            pauses: AtomicU32::new(0),
            activity_observer: None,
        }
    }

    /// Calls `observer` whenever activity is recorded, so that a process that waits for the call can be told. The observer must
    /// return soon.
    #[must_use]
    pub fn with_activity_observer(mut self, observer: impl Fn() + Send + Sync + 'static) -> Self {
        self.activity_observer = Some(Box::new(observer));
        self
    }

    /// How long after the latest activity the deadline is.
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// The deadline that no activity extends further.
    pub fn max_deadline(&self) -> Instant {
        self.start + self.max_duration
    }

    /// Extends the deadline: the call is active.
    pub fn record_activity(&self, now: Instant) {
        let deadline = now.saturating_duration_since(self.start).saturating_add(self.idle_timeout);
        self.deadline_nanos.fetch_max(nanoseconds(deadline.min(self.max_duration)), Ordering::AcqRel);
        if let Some(observer) = &self.activity_observer {
            observer();
        }
    }

    /// Pauses the idle timeout while the call waits for an answer of its caller. Pauses nest.
    pub fn pause(&self) {
        self.pauses.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends a [`ExtendableDeadline::pause`] and restarts the idle timeout.
    pub fn resume(&self, now: Instant) {
        self.record_activity(now);
        self.pauses.fetch_sub(1, Ordering::AcqRel);
    }

    /// The current deadline.
    pub fn deadline(&self) -> Instant {
        let is_paused = self.pauses.load(Ordering::Acquire) > 0;
        let deadline = Duration::from_nanos(self.deadline_nanos.load(Ordering::Acquire));
        self.start + if is_paused { self.max_duration } else { deadline }
    }

    /// When to check the deadline next. Earlier than the deadline while paused, because the deadline comes closer when a
    /// pause ends.
    pub fn next_check(&self, now: Instant) -> Instant {
        self.deadline().min(now + self.idle_timeout)
    }
}

impl fmt::Debug for ExtendableDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendableDeadline")
            .field("idle_timeout", &self.idle_timeout)
            .field("max_duration", &self.max_duration)
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_stops_the_idle_timeout_and_its_end_restarts_it() {
        let start = Instant::now();
        let deadline = ExtendableDeadline::new(start, 30 * SECOND, 600 * SECOND);
        assert_eq!(deadline.deadline(), start + 30 * SECOND);
        deadline.pause();
        assert_eq!(deadline.deadline(), start + 600 * SECOND);
        assert_eq!(deadline.next_check(start + 5 * SECOND), start + 35 * SECOND);
        deadline.resume(start + 100 * SECOND);
        assert_eq!(deadline.deadline(), start + 130 * SECOND);
    }

    #[test]
    fn activity_and_the_end_of_a_pause_are_observed() {
        let observed = Arc::new(AtomicU32::new(0));
        let observer = Arc::clone(&observed);
        let start = Instant::now();
        let deadline =
            ExtendableDeadline::new(start, SECOND, 60 * SECOND).with_activity_observer(move || {
                observer.fetch_add(1, Ordering::Relaxed);
            });
        deadline.record_activity(start);
        deadline.pause();
        assert_eq!(observed.load(Ordering::Relaxed), 1);
        deadline.resume(start + SECOND);
        assert_eq!(observed.load(Ordering::Relaxed), 2);
        assert_eq!(deadline.max_deadline(), start + 60 * SECOND);
    }

    proptest! {
        #[test]
        fn activity_extends_the_deadline_and_never_beyond_the_maximum(
            idle in 1_u64..100, max in 1_u64..1_000, activities in prop::collection::vec(0_u64..2_000, 0..20),
        ) {
            let start = Instant::now();
            let (idle, max) = (Duration::from_secs(idle), Duration::from_secs(max));
            let extendable = ExtendableDeadline::new(start, idle, max);
            let mut before = extendable.deadline();
            for activity in activities {
                let now = start + Duration::from_secs(activity);
                extendable.record_activity(now);
                let deadline = extendable.deadline();
                prop_assert!(deadline >= before && deadline <= start + max.max(idle));
                prop_assert!(deadline >= (now + idle).min(start + max.max(idle)));
                before = deadline;
            }
        }
    }
}
