//! `toolyard runs show` and `replay`: a run as it stands, and as it went.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard::told;
use toolyard_agent::{RunEnd, RunEvent, RunNews, RunWatcher as _, load, replay};
use toolyard_core::{Journal as _, LoggedEvent, RunId, RunLog, RunRecord, RunState};
use toolyard_store::Store;

use super::runs::{step_table, time_of};
use crate::{
    failure::Failure,
    output::{Output, harmless, line_width},
    run_view::{Decider, RunTree, View, row_lines, spent_line},
};

/// A pause between two transitions is not shown longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Shows a run: of an agent as its tree, any other as its steps.
pub(super) async fn show(run: &RunId, store: &Store, output: &Output) -> Result<(), Failure> {
    let record = store.run(run).await?;
    let steps = store.steps(run).await?;
    let events = store.events(run, 0).await?;
    if output.wants_json() {
        let events: Vec<Value> = events.iter().map(logged).collect();
        output.json(&json!({"run": record, "steps": steps, "events": events}));
        return Ok(());
    }
    if events.is_empty() {
        output.line(&format!("{}   {}, {}", record.id, harmless(&record.kind), state_word(&record, None)));
        step_table(&steps, output);
        return Ok(());
    }
    let tree = tree(&events);
    let state = state_word(&record, tree.end.as_ref());
    output.line(&format!("{}   {state}, begun {}", record.id, time_of(record.created_at)));
    if let Some(ask) = &tree.asked {
        output.line(&harmless(&format!("  {}: {}", ask.agent, ask.question)));
    }
    row_lines(&tree, line_width().min(110)).iter().for_each(|line| output.line(line));
    output.line(&format!("  {}", spent_line(&tree)));
    if let Some(end) = &tree.end {
        output.line(&harmless(&told(end)));
    }
    hints(run, &record, tree.end.as_ref(), output);
    Ok(())
}

/// What can be done about a run that is not over.
fn hints(run: &RunId, record: &RunRecord, end: Option<&RunEnd>, output: &Output) {
    match (record.state, end) {
        (RunState::Open, Some(RunEnd::Suspended { .. })) => {
            output.talk(&format!("  hint: toolyard runs approve {run}   (or, to say no: --deny)"));
        }
        (RunState::Open, _) => output.talk(&format!("  hint: go on with it: toolyard runs resume {run}")),
        _ => {}
    }
}

/// How a run is doing, in a word or two.
pub(super) fn state_word(record: &RunRecord, end: Option<&RunEnd>) -> String {
    match (record.state, end) {
        (RunState::Open, Some(RunEnd::Suspended { .. })) => "waits for a person".to_owned(),
        (RunState::Open, _) => match &record.owner {
            Some(owner) => format!("open, held by {}", harmless(owner)),
            None => "open".to_owned(),
        },
        (RunState::Done, Some(RunEnd::Planned)) => "planned".to_owned(),
        (RunState::Done, _) => "done".to_owned(),
        (RunState::Failed, Some(RunEnd::Capped { .. })) => "ended at a limit".to_owned(),
        (RunState::Failed, _) => "failed".to_owned(),
        (RunState::Cancelled, _) => "cancelled".to_owned(),
    }
}

/// Shows a run as it went, from what was kept of it.
pub(super) async fn play(run: &RunId, speed: f64, store: &Store, output: &Output) -> Result<(), Failure> {
    let (_, events) = load(store, run).await?;
    let view = View::new(output, "", Decider::Nobody);
    let mut last = None;
    let mut end = None;
    for (news, logged) in replay(&events).zip(&events) {
        if view.is_live() {
            pause(&view, last.map(|last| logged.at - last), speed).await;
        }
        last = Some(logged.at);
        if let RunNews::Event { event: RunEvent::Ended { end: ended }, .. } = &news {
            end = Some(ended.clone());
        }
        view.see(&news);
    }
    view.end();
    if let (Some(end), false) = (end, output.wants_json()) {
        match &end {
            RunEnd::Answered { answer, .. } => output.foreign(answer),
            end => output.talk(&harmless(&told(end))),
        }
    }
    Ok(())
}

/// Waits as long as it took, but never long; wheels turn meanwhile.
async fn pause(view: &View<'_>, milliseconds: Option<i64>, speed: f64) {
    let took = Duration::from_millis(milliseconds.and_then(|time| u64::try_from(time).ok()).unwrap_or(0));
    let slowed = took.as_secs_f64() / speed.max(0.001);
    let until =
        tokio::time::Instant::now() + Duration::from_secs_f64(slowed.min(LONGEST_PAUSE.as_secs_f64()));
    while tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(80)).await;
        view.tick();
    }
}

/// The plan of a run as data.
pub(super) async fn print_plan(log: &dyn RunLog, run: &RunId, output: &Output) -> Result<(), Failure> {
    let (_, events) = load(log, run).await?;
    let plan = replay(&events).filter_map(|news| match news {
        RunNews::Event { event: RunEvent::Planned { plan, .. }, .. } => Some(plan),
        _ => None,
    });
    if let Some(plan) = plan.last() {
        output.json(&plan);
    }
    Ok(())
}

/// Where a run stands.
fn tree(events: &[LoggedEvent]) -> RunTree {
    let mut tree = RunTree::default();
    replay(events).for_each(|news| tree.see(&news, Duration::ZERO));
    tree
}

fn logged(event: &LoggedEvent) -> Value {
    json!({"number": event.number, "at": event.at, "event": event.event.to_value()})
}
