//! How long a call is waited for: signs of life prolong it, up to a limit.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long a call is waited for. Whoever carries it out tells of signs of life; whoever waits looks at the deadline.
#[derive(Debug)]
pub struct Patience {
    began: Instant,
    silence: Duration,
    longest: Duration,
    /// Nanoseconds from the beginning to the deadline.
    until: AtomicU64,
    /// Questions that somebody is asked at this moment.
    questions: AtomicU32,
}

impl Patience {
    /// From now on: up to `silence` after each sign of life, and up to `longest` in all.
    pub fn new(began: Instant, silence: Duration, longest: Duration) -> Self {
        let (longest, until) = (longest.max(silence), AtomicU64::new(nanoseconds(silence)));
        Self { began, silence, longest, until, questions: AtomicU32::new(0) }
    }

    /// How long it may be silent.
    pub fn silence(&self) -> Duration {
        self.silence
    }

    /// The call goes on.
    pub fn sign_of_life(&self, now: Instant) {
        let until = now.saturating_duration_since(self.began).saturating_add(self.silence);
        self.until.fetch_max(nanoseconds(until.min(self.longest)), Ordering::AcqRel);
    }

    /// Somebody is asked something. Until that is answered, nobody waits for the tool.
    pub fn asked(&self) {
        self.questions.fetch_add(1, Ordering::AcqRel);
    }

    /// The question is answered, or nobody asks it any more.
    pub fn answered(&self, now: Instant) {
        self.sign_of_life(now);
        self.questions.fetch_sub(1, Ordering::AcqRel);
    }

    /// When the call is given up, as things stand.
    pub fn deadline(&self) -> Instant {
        let asking = self.questions.load(Ordering::Acquire) > 0;
        let until = Duration::from_nanos(self.until.load(Ordering::Acquire));
        self.began + if asking { self.longest } else { until }
    }

    /// When to look at the deadline next, which may have come nearer by then: a question was answered.
    pub fn next_look(&self, now: Instant) -> Instant {
        self.deadline().min(now + self.silence)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_question_stops_the_clock_and_its_answer_starts_it_anew() {
        let began = Instant::now();
        let patience = Patience::new(began, 30 * SECOND, 600 * SECOND);
        assert_eq!(patience.deadline(), began + 30 * SECOND);
        patience.asked();
        assert_eq!(patience.deadline(), began + 600 * SECOND);
        assert_eq!(patience.next_look(began + 5 * SECOND), began + 35 * SECOND);
        patience.answered(began + 100 * SECOND);
        assert_eq!(patience.deadline(), began + 130 * SECOND);
    }

    proptest! {
        #[test]
        fn signs_of_life_prolong_a_call_and_never_beyond_the_limit(
            silence in 1_u64..100, longest in 1_u64..1_000, signs in prop::collection::vec(0_u64..2_000, 0..20),
        ) {
            let began = Instant::now();
            let (silence, longest) = (Duration::from_secs(silence), Duration::from_secs(longest));
            let patience = Patience::new(began, silence, longest);
            let mut before = patience.deadline();
            for sign in signs {
                let now = began + Duration::from_secs(sign);
                patience.sign_of_life(now);
                let deadline = patience.deadline();
                prop_assert!(deadline >= before && deadline <= began + longest.max(silence));
                prop_assert!(deadline >= (now + silence).min(began + longest.max(silence)));
                before = deadline;
            }
        }
    }
}
