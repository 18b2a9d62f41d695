//! Runs that another process left unfinished: detached ones are resumed, the others counted.

use std::time::Duration;

use toolyard_agent::{AGENT_RUN_KIND, RunEnd, RunEvent, RunUpdate, replay_updates};
use toolyard_core::{JournalError, RunRecord, RunState};

use super::{
    service::AgentService,
    unix_time::{milliseconds, now_milliseconds},
};

const MAX_CHECKED_RUNS: usize = 10_000;
/// Older runs are not resumed automatically.
const MAX_RESUME_AGE: Duration = Duration::from_hours(24);
/// The creator of a run claims it within this time.
const MAX_CLAIM_DELAY: Duration = Duration::from_secs(1);
/// A run that was resumed this often in a row without progress is not resumed again: it may crash the process.
const MAX_FUTILE_RESUMES: usize = 3;

/// How many unfinished runs this process does not drive yet were resumed or left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrphanedRuns {
    /// Runs that this process resumed.
    pub resumed: usize,
    /// Runs that are left to the user.
    pub not_resumed: usize,
    /// Runs that another process drives, or drove until a moment ago.
    pub leased: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// The run is over, or awaits an approval.
    Ignore,
    /// Resume it with this agent.
    Resume(String),
    LeaveToUser,
}

impl AgentService {
    /// Resumes detached runs that no process drives any more. A run that a client waited for, or an old one, is left to the
    /// user.
    pub async fn resume_orphaned(&self) -> Result<OrphanedRuns, JournalError> {
        let (runs, log, now) = (&self.0, &self.0.config.log, now_milliseconds());
        let mut counts = OrphanedRuns::default();
        let is_open = |run: &RunRecord| run.state == RunState::Open && run.kind == AGENT_RUN_KIND;
        for record in log.runs(MAX_CHECKED_RUNS).await?.into_iter().filter(is_open) {
            if runs.find(&record.id).is_some() {
                continue;
            }
            let events = log.events(&record.id, 0).await?;
            let action = action(replay_updates(&events), now.saturating_sub(record.created_at));
            if action == Action::Ignore {
                continue;
            }
            if !is_unclaimed(&record, now) {
                counts.leased += 1;
                continue;
            }
            let agent = match &action {
                Action::Resume(name) => runs.agent(name).ok(),
                _ => None,
            };
            match agent {
                Some(agent) => {
                    runs.spawn(agent, &record.id);
                    counts.resumed += 1;
                }
                None => counts.not_resumed += 1,
            }
        }
        Ok(counts)
    }
}

/// Whether no process drives the run. Trying to claim it instead would take it from an owner that was suspended until its
/// lease expired, or from a creator that is about to claim it.
fn is_unclaimed(run: &RunRecord, now: i64) -> bool {
    !run.leased && (run.owner.is_some() || now.saturating_sub(run.created_at) > milliseconds(MAX_CLAIM_DELAY))
}

/// What to do with a run that was created `age` milliseconds ago.
fn action(updates: impl Iterator<Item = RunUpdate>, age: i64) -> Action {
    let mut action = Action::Ignore;
    let (mut is_suspended, mut futile_resumes) = (false, 0);
    for update in updates {
        let RunUpdate::Event { event, .. } = update else { continue };
        futile_resumes = if matches!(event, RunEvent::Resumed { .. }) { futile_resumes + 1 } else { 0 };
        match event {
            RunEvent::Requested { request } if request.detached && age < milliseconds(MAX_RESUME_AGE) => {
                action = Action::Resume(request.agent);
            }
            RunEvent::Requested { .. } => action = Action::LeaveToUser,
            RunEvent::Ended { end: RunEnd::Suspended { .. } } => is_suspended = true,
            RunEvent::Resumed { .. } => is_suspended = false,
            RunEvent::Ended { .. } => return Action::Ignore,
            _ => {}
        }
    }
    match action {
        _ if is_suspended => Action::Ignore,
        Action::Resume(_) if futile_resumes >= MAX_FUTILE_RESUMES => Action::LeaveToUser,
        action => action,
    }
}

#[cfg(test)]
mod tests {
    use toolyard_agent::RunRequest;

    use super::*;

    fn action_for(events: Vec<RunEvent>, age: Duration) -> Action {
        let update = |(number, event)| RunUpdate::Event { run: "01".into(), number, event };
        action((0..).zip(events).map(update), milliseconds(age))
    }

    fn requested(detached: bool) -> RunEvent {
        RunEvent::Requested {
            request: RunRequest { agent: "clerk".to_owned(), detached, ..RunRequest::default() },
        }
    }

    #[test]
    fn only_recent_detached_runs_are_resumed() {
        let (hour, days) = (Duration::from_hours(1), Duration::from_hours(50));
        let suspended = || RunEvent::Ended { end: RunEnd::Suspended { waiting_for: Vec::new() } };
        let resumed = || RunEvent::Resumed { owner: "other".to_owned() };
        let resume = || Action::Resume("clerk".to_owned());
        assert_eq!(action_for(vec![requested(true)], hour), resume());
        assert_eq!(action_for(vec![requested(true)], days), Action::LeaveToUser);
        assert_eq!(action_for(vec![requested(false)], hour), Action::LeaveToUser);
        assert_eq!(action_for(vec![requested(true), suspended()], hour), Action::Ignore);
        assert_eq!(action_for(vec![requested(true), suspended(), resumed()], hour), resume());
        let cancelled = RunEvent::Ended { end: RunEnd::Cancelled };
        assert_eq!(action_for(vec![requested(true), cancelled], hour), Action::Ignore);
        assert_eq!(action_for(vec![requested(true), resumed(), resumed()], hour), resume());
        let resumed_three_times = vec![requested(true), resumed(), resumed(), resumed()];
        assert_eq!(
            action_for(resumed_three_times, hour),
            Action::LeaveToUser,
            "three resumes without progress"
        );
        assert_eq!(action_for(Vec::new(), hour), Action::Ignore);
    }
}
