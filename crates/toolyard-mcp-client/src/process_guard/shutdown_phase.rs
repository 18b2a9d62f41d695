//! The steps from a graceful shutdown to killing, decided without touching a process.

use std::time::{Duration, Instant};

/// How long processes may take after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_millis(300);
/// The same for processes that the server left behind when it exited.
const LEFTOVER_GRACE: Duration = Duration::from_millis(150);
/// How long SIGKILL is repeated. A process that survives that cannot be killed by us.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownPhase {
    /// The server is running and has not been asked to end.
    Serving,
    /// The server's input is closed; it may exit by itself `until` then.
    Draining { until: Instant },
    /// Every process of the tree got SIGTERM.
    Terminating { until: Instant },
    /// Every process of the tree gets SIGKILL repeatedly.
    Killing { until: Instant },
    /// A process cannot be killed: it belongs to another user, or the kernel holds it.
    Failed,
}

/// What the monitor knows at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observations {
    pub(super) now: Instant,
    /// The server's input was closed, or the process that started the guard is gone.
    pub(super) input_closed: bool,
    /// The guard got a signal to end.
    pub(super) terminated: bool,
    /// The server's own process exited.
    pub(super) server_exited: bool,
}

impl ShutdownPhase {
    /// The next phase. Never an earlier one.
    pub(super) fn next(self, observed: Observations, grace: Duration) -> Self {
        let now = observed.now;
        match self {
            Self::Serving | Self::Draining { .. } if observed.server_exited => {
                Self::Terminating { until: now + LEFTOVER_GRACE }
            }
            // The server's input is still open, so waiting for an exit is pointless.
            Self::Serving | Self::Draining { .. } if observed.terminated => {
                Self::Terminating { until: now + TERMINATE_GRACE }
            }
            Self::Serving if observed.input_closed => Self::Draining { until: now + grace },
            Self::Draining { until } if now >= until => Self::Terminating { until: now + TERMINATE_GRACE },
            Self::Terminating { until } if now >= until => Self::Killing { until: now + KILL_TIMEOUT },
            Self::Killing { until } if now >= until => Self::Failed,
            same => same,
        }
    }

    /// When the phase ends if nothing happens before.
    pub(super) fn until(self) -> Option<Instant> {
        match self {
            Self::Serving | Self::Failed => None,
            Self::Draining { until } | Self::Terminating { until } | Self::Killing { until } => Some(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn phase_order(phase: ShutdownPhase) -> u8 {
        match phase {
            ShutdownPhase::Serving => 0,
            ShutdownPhase::Draining { .. } => 1,
            ShutdownPhase::Terminating { .. } => 2,
            ShutdownPhase::Killing { .. } => 3,
            ShutdownPhase::Failed => 4,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// In every order of events: never back, never ahead without a reason, and killing starts in time.
        #[test]
        fn phases_only_advance_and_in_time(
            steps in prop::collection::vec((0_u64..400, any::<[bool; 3]>()), 1..40),
            grace in 0_u64..1_000,
        ) {
            let grace = Duration::from_millis(grace);
            let mut phase = ShutdownPhase::Serving;
            let (mut now, mut first_reason) = (Instant::now(), None);
            let mut observations = Observations { now, input_closed: false, terminated: false, server_exited: false };
            for (pause, [input_closed, terminated, server_exited]) in steps {
                now += Duration::from_millis(pause);
                observations.now = now;
                observations.input_closed |= input_closed;
                observations.terminated |= terminated;
                observations.server_exited |= server_exited;
                if observations.input_closed || observations.terminated || observations.server_exited {
                    first_reason.get_or_insert(now);
                }
                let next = phase.next(observations, grace);
                prop_assert!(phase_order(next) >= phase_order(phase));
                prop_assert!(phase_order(next) <= phase_order(phase) + 2);
                prop_assert_eq!(next == ShutdownPhase::Serving, first_reason.is_none());
                if let (Some(reason), Some(until)) = (first_reason, next.until())
                    && phase_order(next) < 3
                {
                    // Each of the two waits may begin late by one pause.
                    prop_assert!(until <= reason + grace + TERMINATE_GRACE + Duration::from_millis(800));
                }
                phase = next;
            }
        }
    }

    #[test]
    fn a_server_whose_input_is_closed_is_ended_in_steps() {
        let start = Instant::now();
        let running_at = |millis: u64| Observations {
            now: start + Duration::from_millis(millis),
            input_closed: true,
            terminated: false,
            server_exited: false,
        };
        let exited_at = |millis: u64| Observations { server_exited: true, ..running_at(millis) };
        let grace = Duration::from_millis(700);
        let draining = ShutdownPhase::Serving.next(running_at(0), grace);
        assert_eq!(draining, ShutdownPhase::Draining { until: start + grace });
        assert_eq!(draining.next(running_at(699), grace), draining);
        let terminating = draining.next(running_at(700), grace);
        assert_eq!(terminating, ShutdownPhase::Terminating { until: start + Duration::from_millis(1_000) });
        assert!(matches!(terminating.next(running_at(1_000), grace), ShutdownPhase::Killing { .. }));
        let terminating_children = draining.next(exited_at(10), grace);
        assert_eq!(
            terminating_children,
            ShutdownPhase::Terminating { until: start + Duration::from_millis(160) }
        );
    }
}
