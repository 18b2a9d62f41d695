//! Runs that an earlier process left open: those that go on by themselves are taken over, others are counted.

use std::time::{Duration, SystemTime};

use toolyard_agent::{RUN_KIND, RunEnd, RunEvent, RunNews, replay};
use toolyard_core::{JournalError, RunRecord, RunState};

use super::live_runs::AgentDoor;

/// So many of the latest runs are looked at.
const LOOKED_AT: usize = 10_000;
/// Nobody remembers what was begun before that.
const REMEMBERED: Duration = Duration::from_hours(24);
/// Whoever begins a run takes it within this time.
const JUST_BEGUN: Duration = Duration::from_secs(1);

/// Whoever goes on with a run so often without getting anywhere leaves it: it may be what ends them.
const MOST_ATTEMPTS: usize = 3;

/// What was left open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOpen {
    /// So many runs are gone on with.
    pub taken_over: usize,
    /// So many wait for somebody to go on with them.
    pub left: usize,
    /// So many are somebody's, or were until a moment ago.
    pub held: usize,
}

/// What is to be done about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// It is over, or waits for a person.
    Nothing,
    /// This agent goes on with it.
    TakenOver(String),
    Left,
}

impl AgentDoor {
    /// Goes on with runs that were begun here to go on by themselves, and that nobody works on any more. Others belong to
    /// whoever asked, or to a time nobody remembers: a person says that they go on.
    pub async fn take_over(&self) -> Result<LeftOpen, JournalError> {
        let runs = &self.0;
        let (log, now) = (runs.agents.log(), milliseconds());
        let mut found = LeftOpen::default();
        let is_open = |run: &RunRecord| run.state == RunState::Open && run.kind == RUN_KIND;
        for record in log.runs(LOOKED_AT).await?.into_iter().filter(is_open) {
            if runs.find(&record.id).is_some() {
                continue;
            }
            let events = log.events(&record.id, 0).await?;
            let fate = fate(replay(&events), now.saturating_sub(record.created_at));
            if fate == Fate::Nothing {
                continue;
            }
            if !is_free(&record, now) {
                found.held += 1;
                continue;
            }
            let agent = match &fate {
                Fate::TakenOver(name) => runs.agent(name).ok(),
                _ => None,
            };
            match agent {
                Some(agent) => {
                    runs.go_on(agent, &record.id);
                    found.taken_over += 1;
                }
                None => found.left += 1,
            }
        }
        Ok(found)
    }
}

/// Whether nobody works on a run. It is only looked at: whoever takes it, even for a moment, takes it from somebody who
/// slept through a lease and would go on, and whoever has just begun one is about to take it.
fn is_free(run: &RunRecord, now: i64) -> bool {
    !run.held && (run.owner.is_some() || now.saturating_sub(run.created_at) > milliseconds_of(JUST_BEGUN))
}

/// What is to be done about a run that was begun so many milliseconds ago.
fn fate(news: impl Iterator<Item = RunNews>, age: i64) -> Fate {
    let mut fate = Fate::Nothing;
    let (mut rests, mut attempts) = (false, 0);
    for news in news {
        let RunNews::Event { event, .. } = news else { continue };
        attempts = if matches!(event, RunEvent::Resumed { .. }) { attempts + 1 } else { 0 };
        match event {
            RunEvent::Asked { ask } if ask.detached && age < milliseconds_of(REMEMBERED) => {
                fate = Fate::TakenOver(ask.agent);
            }
            RunEvent::Asked { .. } => fate = Fate::Left,
            RunEvent::Ended { end: RunEnd::Suspended { .. } } => rests = true,
            RunEvent::Resumed { .. } => rests = false,
            RunEvent::Ended { .. } => return Fate::Nothing,
            _ => {}
        }
    }
    match fate {
        _ if rests => Fate::Nothing,
        Fate::TakenOver(_) if attempts >= MOST_ATTEMPTS => Fate::Left,
        fate => fate,
    }
}

fn milliseconds() -> i64 {
    milliseconds_of(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

fn milliseconds_of(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use toolyard_agent::Ask;

    use super::*;

    fn of(events: Vec<RunEvent>, age: Duration) -> Fate {
        let news = |(number, event)| RunNews::Event { run: "01".into(), number, event };
        fate((0..).zip(events).map(news), milliseconds_of(age))
    }

    fn asked(detached: bool) -> RunEvent {
        RunEvent::Asked { ask: Ask { agent: "clerk".to_owned(), detached, ..Ask::default() } }
    }

    #[test]
    fn only_runs_that_go_on_by_themselves_and_are_remembered_are_taken_over() {
        let (hour, days) = (Duration::from_hours(1), Duration::from_hours(50));
        let suspended = || RunEvent::Ended { end: RunEnd::Suspended { waiting: Vec::new() } };
        let resumed = || RunEvent::Resumed { owner: "somebody".to_owned() };
        let clerk = || Fate::TakenOver("clerk".to_owned());
        assert_eq!(of(vec![asked(true)], hour), clerk());
        assert_eq!(of(vec![asked(true)], days), Fate::Left);
        assert_eq!(of(vec![asked(false)], hour), Fate::Left);
        assert_eq!(of(vec![asked(true), suspended()], hour), Fate::Nothing);
        assert_eq!(of(vec![asked(true), suspended(), resumed()], hour), clerk());
        assert_eq!(of(vec![asked(true), RunEvent::Ended { end: RunEnd::Cancelled }], hour), Fate::Nothing);
        assert_eq!(of(vec![asked(true), resumed(), resumed()], hour), clerk());
        assert_eq!(
            of(vec![asked(true), resumed(), resumed(), resumed()], hour),
            Fate::Left,
            "it gets nowhere"
        );
        assert_eq!(of(Vec::new(), hour), Fate::Nothing);
    }
}
