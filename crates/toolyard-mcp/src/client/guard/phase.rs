//! The steps down the shutdown ladder, decided without touching a process.

use std::time::{Duration, Instant};

/// How long those who were told to end may take.
const TOLD: Duration = Duration::from_millis(300);
/// How long what a server left behind may take when the server itself has ended.
const LEFTOVERS: Duration = Duration::from_millis(150);
/// How long killing is tried. What still lives then cannot be killed by us.
const KILLING: Duration = Duration::from_secs(10);

/// How far down the ladder we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server works, and somebody wants it to.
    Serving,
    /// The server's input is closed; it may end by itself until then.
    Asked { until: Instant },
    /// Every process of the tree got SIGTERM.
    Told { until: Instant },
    /// Every process of the tree gets SIGKILL, again and again.
    Killing { until: Instant },
    /// Something cannot be killed: another user's process, or one the kernel does not let go.
    GivenUp,
}

/// What is known at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) now: Instant,
    /// The hub closed the server's input, or is gone.
    pub(super) hub_gone: bool,
    /// The guardian was told to end.
    pub(super) told_to_end: bool,
    /// The server's own process ended.
    pub(super) server_ended: bool,
}

impl Phase {
    /// The phase that follows. Only ever down.
    pub(super) fn next(self, seen: Seen, grace: Duration) -> Self {
        let now = seen.now;
        match self {
            Self::Serving | Self::Asked { .. } if seen.server_ended => Self::Told { until: now + LEFTOVERS },
            // The server's input is still open then, so there is nothing to wait for.
            Self::Serving | Self::Asked { .. } if seen.told_to_end => Self::Told { until: now + TOLD },
            Self::Serving if seen.hub_gone => Self::Asked { until: now + grace },
            Self::Asked { until } if now >= until => Self::Told { until: now + TOLD },
            Self::Told { until } if now >= until => Self::Killing { until: now + KILLING },
            Self::Killing { until } if now >= until => Self::GivenUp,
            same => same,
        }
    }

    /// When to look again at the latest, if nothing happens.
    pub(super) fn until(self) -> Option<Instant> {
        match self {
            Self::Serving | Self::GivenUp => None,
            Self::Asked { until } | Self::Told { until } | Self::Killing { until } => Some(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn depth(phase: Phase) -> u8 {
        match phase {
            Phase::Serving => 0,
            Phase::Asked { .. } => 1,
            Phase::Told { .. } => 2,
            Phase::Killing { .. } => 3,
            Phase::GivenUp => 4,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever happens in whatever order: never up the ladder, never down without a reason, and killing starts
        /// within the grace and the time for those who were told.
        #[test]
        fn the_ladder_only_goes_down_and_in_time(
            steps in prop::collection::vec((0_u64..400, any::<[bool; 3]>()), 1..40),
            grace in 0_u64..1_000,
        ) {
            let grace = Duration::from_millis(grace);
            let mut phase = Phase::Serving;
            let (mut now, mut first_reason) = (Instant::now(), None);
            let mut seen = Seen { now, hub_gone: false, told_to_end: false, server_ended: false };
            for (pause, [hub_gone, told_to_end, server_ended]) in steps {
                now += Duration::from_millis(pause);
                seen.now = now;
                seen.hub_gone |= hub_gone;
                seen.told_to_end |= told_to_end;
                seen.server_ended |= server_ended;
                if seen.hub_gone || seen.told_to_end || seen.server_ended {
                    first_reason.get_or_insert(now);
                }
                let next = phase.next(seen, grace);
                prop_assert!(depth(next) >= depth(phase));
                prop_assert!(depth(next) <= depth(phase) + 2);
                prop_assert_eq!(next == Phase::Serving, first_reason.is_none());
                if let (Some(reason), Some(until)) = (first_reason, next.until())
                    && depth(next) < 3
                {
                    // Each of the two waits may begin late by one pause.
                    prop_assert!(until <= reason + grace + TOLD + Duration::from_millis(800));
                }
                phase = next;
            }
        }
    }

    #[test]
    fn a_hub_that_is_gone_costs_the_server_its_life_in_steps() {
        let start = Instant::now();
        let seen = |after: u64, server_ended| Seen {
            now: start + Duration::from_millis(after),
            hub_gone: true,
            told_to_end: false,
            server_ended,
        };
        let grace = Duration::from_millis(700);
        let asked = Phase::Serving.next(seen(0, false), grace);
        assert_eq!(asked, Phase::Asked { until: start + grace });
        assert_eq!(asked.next(seen(699, false), grace), asked);
        let told = asked.next(seen(700, false), grace);
        assert_eq!(told, Phase::Told { until: start + Duration::from_millis(1_000) });
        assert!(matches!(told.next(seen(1_000, false), grace), Phase::Killing { .. }));
        let leftovers = asked.next(seen(10, true), grace);
        assert_eq!(leftovers, Phase::Told { until: start + Duration::from_millis(160) });
    }
}
