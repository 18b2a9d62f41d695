//! What processes of a cluster tell each other about runs. A notice may get lost: the store has what it says, and is polled.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolyard_core::{ContentHash, RunId};

use super::active_runs::ActiveRuns;

/// The name under which processes reach each other about runs.
pub const RUN_PEER_SERVICE: &str = "runs";

/// The process that comes next in the order of a run waits this long before it tries to take the run.
const TURN: Duration = Duration::from_millis(50);
const MAX_TURNS: u32 = 10;

/// What happened to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunNotice {
    /// It waits for a process with capacity.
    Queued,
    /// Somebody decided on an approval, or to cancel it.
    Decided,
}

#[derive(Debug, Serialize, Deserialize)]
struct NoticeMessage {
    notice: RunNotice,
    run: RunId,
}

impl ActiveRuns {
    /// Tells the other processes of the cluster, if there is one.
    pub(super) fn notify_peers(&self, notice: RunNotice, run: &RunId) {
        let Some(peers) = &self.config.peers else { return };
        if let Ok(message) = serde_json::to_vec(&NoticeMessage { notice, run: run.clone() }) {
            peers.notify_all(RUN_PEER_SERVICE, message);
        }
    }
}

/// The notice and the run of a message of another process.
pub(super) fn parse_notice(message: &[u8]) -> Option<(RunNotice, RunId)> {
    let NoticeMessage { notice, run } = serde_json::from_slice(message).ok()?;
    Some((notice, run))
}

/// How long a process waits before it tries to take a queued run, so that not all try at once: each run has an order of its own,
/// and the first one does not wait.
pub(super) fn claim_delay(run: &RunId, own_number: u64, members: &[u64]) -> Duration {
    let weight =
        |number: u64| ContentHash::of_parts([run.as_str().as_bytes(), number.to_be_bytes().as_slice()]);
    let own = weight(own_number);
    let before = members.iter().filter(|number| weight(**number).as_bytes() < own.as_bytes()).count();
    TURN * u32::try_from(before).unwrap_or(MAX_TURNS).min(MAX_TURNS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_process_has_its_turn_and_the_first_one_differs_between_runs() {
        let members: Vec<u64> = (1..=4).collect();
        let mut first = HashSet::new();
        for run in 0..100 {
            let run: RunId = run.to_string().as_str().into();
            let mut delays: Vec<_> =
                members.iter().map(|number| (claim_delay(&run, *number, &members), *number)).collect();
            delays.sort_unstable();
            let turns: Vec<Duration> = delays.iter().map(|(delay, _)| *delay).collect();
            assert_eq!(turns, [Duration::ZERO, TURN, TURN * 2, TURN * 3]);
            first.insert(delays[0].1);
        }
        assert_eq!(first.len(), 4);
    }

    #[test]
    fn a_process_that_knows_no_other_does_not_wait() {
        assert_eq!(claim_delay(&"run".into(), 7, &[]), Duration::ZERO);
        assert_eq!(claim_delay(&"run".into(), 7, &[7]), Duration::ZERO);
        let many: Vec<u64> = (0..1_000).collect();
        assert!(many.iter().all(|number| claim_delay(&"run".into(), *number, &many) <= TURN * MAX_TURNS));
    }

    #[test]
    fn what_is_no_notice_is_ignored() {
        assert_eq!(
            parse_notice(br#"{"notice":"decided","run":"01J"}"#),
            Some((RunNotice::Decided, "01J".into()))
        );
        for message in [&b""[..], b"{}", br#"{"notice":"other","run":"01J"}"#, b"\xff"] {
            assert_eq!(parse_notice(message), None);
        }
    }
}
