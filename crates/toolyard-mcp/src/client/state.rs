//! The life of one server as pure decisions: what state it is in, and when it may be tried again.

use std::time::Duration;

use tokio::time::Instant;

/// After the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that lived this long does not fail at once.
const PROVEN: Duration = Duration::from_secs(5);

/// Where a server is in its life: configured → known → starting → ready → degraded → down.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerState {
    /// The operator switched it off.
    Disabled,
    /// Never seen: nobody knows its tools.
    Configured,
    /// Its tools are known from earlier; it is not running.
    Known,
    /// It is being started.
    Starting {
        /// Since when.
        since: Instant,
    },
    /// It answers.
    Ready {
        /// Since when.
        since: Instant,
    },
    /// It answers, but something is wrong with it.
    Degraded {
        /// Since when.
        since: Instant,
        /// What.
        reason: String,
    },
    /// It does not answer.
    Down {
        /// Why.
        reason: String,
        /// How often in a row.
        failures: u32,
        /// When it is tried again; calls before that fail at once.
        retry_at: Instant,
    },
}

impl ServerState {
    /// One word for people and programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Configured => "configured",
            Self::Known => "known",
            Self::Starting { .. } => "starting",
            Self::Ready { .. } => "ready",
            Self::Degraded { .. } => "degraded",
            Self::Down { .. } => "down",
        }
    }
}

/// A server's state and what it depends on.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: ServerState,
    known: bool,
    failures: u32,
}

impl Lifecycle {
    pub(super) fn new(enabled: bool, known: bool) -> Self {
        let state = if enabled { ServerState::Configured } else { ServerState::Disabled };
        let mut lifecycle = Self { state, known, failures: 0 };
        if enabled {
            lifecycle.rest();
        }
        lifecycle
    }

    pub(super) fn state(&self) -> &ServerState {
        &self.state
    }

    /// Whether its tools are known.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether it may be started for a call now; else how long not, and why.
    pub(super) fn may_start(&self, now: Instant) -> Result<(), (String, Duration)> {
        match &self.state {
            ServerState::Disabled => Err(("it is disabled".to_owned(), Duration::ZERO)),
            ServerState::Down { reason, retry_at, .. } if *retry_at > now => {
                Err((reason.clone(), *retry_at - now))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn starting(&mut self, now: Instant) {
        self.state = ServerState::Starting { since: now };
    }

    /// It answers; `concern` says what is wrong with it all the same.
    pub(super) fn ready(&mut self, now: Instant, concern: Option<String>) {
        let since = match self.state {
            ServerState::Ready { since } | ServerState::Degraded { since, .. } => since,
            _ => now,
        };
        self.known = true;
        self.state = match concern {
            Some(reason) => ServerState::Degraded { since, reason },
            None => ServerState::Ready { since },
        };
    }

    /// It could not be started, or is gone. `jitter` is between 0 and 1. Whoever worked for a while and is gone may come
    /// back at once; whoever fails again and again is given ever more time.
    pub(super) fn failed(&mut self, now: Instant, reason: String, jitter: f64) {
        let worked = match self.state {
            ServerState::Ready { since } | ServerState::Degraded { since, .. } => now - since >= PROVEN,
            _ => false,
        };
        self.failures = if worked { 0 } else { self.failures.saturating_add(1) };
        let retry_at = if worked { now } else { now + pause_after(self.failures, jitter) };
        self.state = ServerState::Down { reason, failures: self.failures, retry_at };
    }

    /// It was stopped, or nobody needs it any more.
    pub(super) fn rest(&mut self) {
        self.failures = 0;
        self.state = if self.known { ServerState::Known } else { ServerState::Configured };
    }
}

/// Between half and the whole of a pause that doubles with each failure, so that many servers do not come back at once.
fn pause_after(failures: u32, jitter: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_life() {
        let now = Instant::now();
        let mut life = Lifecycle::new(true, false);
        assert_eq!(life.state(), &ServerState::Configured);
        life.starting(now);
        life.ready(now, None);
        assert_eq!(life.state().word(), "ready");
        life.ready(now + Duration::from_secs(5), Some("1 definition changed".to_owned()));
        assert_eq!(
            life.state(),
            &ServerState::Degraded { since: now, reason: "1 definition changed".to_owned() }
        );
        life.rest();
        assert_eq!(life.state(), &ServerState::Known);
        life.failed(now, "it ended".to_owned(), 1.0);
        assert_eq!(life.may_start(now), Err(("it ended".to_owned(), Duration::from_secs(1))));
        assert_eq!(life.may_start(now + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn who_worked_for_a_while_may_come_back_at_once_and_who_dies_at_once_may_not() {
        let now = Instant::now();
        let mut life = Lifecycle::new(true, true);
        life.ready(now, None);
        life.failed(now + PROVEN, "it ended".to_owned(), 1.0);
        assert_eq!(life.may_start(now + PROVEN), Ok(()));
        for pause in [1, 2, 4] {
            life.ready(now, None);
            life.failed(now, "it ended".to_owned(), 1.0);
            assert_eq!(life.may_start(now), Err(("it ended".to_owned(), Duration::from_secs(pause))));
        }
    }

    #[test]
    fn a_disabled_server_is_never_started() {
        let life = Lifecycle::new(false, true);
        assert!(life.may_start(Instant::now()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn pauses_grow_and_stay_within_a_minute(failures in 1_u32..200, jitter in 0.0..=1.0) {
            let pause = pause_after(failures, jitter);
            prop_assert!(pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE);
            prop_assert!(pause_after(failures + 1, jitter) >= pause);
        }
    }
}
