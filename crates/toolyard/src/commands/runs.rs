//! `toolyard runs`: what was begun, how it stands, and what waits for a person's word.

use std::time::Duration;

use serde_json::Value;
use toolyard_agent::{RunEnd, RunEvent};
use toolyard_core::{Journal as _, Resolution, RunId, RunLog as _, RunRecord, RunState, StepRecord};
use toolyard_store::Store;

use super::{kept, runs_resume, runs_show};
use crate::{
    cli::{Outcome, RunsCommand},
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
};

/// So many of the latest runs are looked at for one that is named by its first letters.
const LOOKED_AT: usize = 10_000;

/// Lists, shows, goes on, cancels, approves, replays, resolves.
pub(crate) async fn run(command: RunsCommand, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let store = kept(workplace)?;
    match command {
        RunsCommand::List { lines, open } => list(lines, open, store, output).await,
        RunsCommand::Show { run } => runs_show::show(&find(&run, store).await?, store, output).await,
        RunsCommand::Replay { run, speed } => {
            runs_show::play(&find(&run, store).await?, speed, store, output).await
        }
        RunsCommand::Resume(arguments) => runs_resume::resume(arguments, workplace, output).await,
        RunsCommand::Approve(arguments) => runs_resume::approve(arguments, workplace, output).await,
        RunsCommand::Cancel { run } => {
            runs_resume::cancel_run(&find(&run, store).await?, store, output).await
        }
        RunsCommand::Unknown => {
            let steps = store.unknown().await?;
            if output.wants_json() {
                output.json(&steps);
            } else if steps.is_empty() {
                output.talk("nothing is unknown");
            } else {
                step_table(&steps, output);
                output.talk("say what happened: toolyard runs resolve RUN STEP done|not-done");
            }
            Ok(())
        }
        RunsCommand::Resolve { run, step, outcome } => {
            let resolution = match outcome {
                Outcome::Done => Resolution::Done,
                Outcome::NotDone => Resolution::NotDone,
            };
            let run = find(&run, store).await?;
            store.resolve(&run, &step, resolution, "cli").await?;
            output.talk(match outcome {
                Outcome::Done => "noted: it happened and will not be called again",
                Outcome::NotDone => "noted: it did not happen and may be called when the run goes on",
            });
            Ok(())
        }
    }
}

/// The run that is meant: by its id, by letters that only its id begins with, or the last one.
pub(super) async fn find(named: &str, store: &Store) -> Result<RunId, Failure> {
    let named = named.trim();
    let exact = RunId::from(named);
    if !named.is_empty() && store.run(&exact).await.is_ok() {
        return Ok(exact);
    }
    let runs = store.runs(LOOKED_AT).await?;
    let unknown = |message: String| {
        Err(Failure::new(Code::BadUse, message).with_hint("see what there is: toolyard runs list"))
    };
    if named == "last" {
        return match runs.into_iter().next() {
            Some(record) => Ok(record.id),
            None => unknown("there are no runs yet".to_owned()),
        };
    }
    let wanted = named.to_uppercase();
    let mut fitting = runs.into_iter().map(|record| record.id).filter(|id| id.as_str().starts_with(&wanted));
    match (fitting.next(), fitting.count()) {
        (Some(only), 0) => Ok(only),
        (Some(_), others) => unknown(format!("{} runs begin with `{named}`: give more letters", others + 1)),
        (None, _) => unknown(format!("there is no run {named}")),
    }
}

async fn list(lines: usize, open: bool, store: &Store, output: &Output) -> Result<(), Failure> {
    let mut runs = store.runs(if open { LOOKED_AT } else { lines }).await?;
    runs.retain(|run| !open || run.state == RunState::Open);
    runs.truncate(lines);
    if output.wants_json() {
        output.json(&runs);
        return Ok(());
    }
    let (mut rows, mut left) = (Vec::new(), 0);
    for record in &runs {
        let (question, end) = summary(record, store).await?;
        let state = runs_show::state_word(record, end.as_ref());
        left += usize::from(runs_resume::is_left(record, end.as_ref()));
        rows.push([record.id.to_string(), state, time_of(record.created_at), harmless(&question)]);
    }
    output.table(["RUN", "STATE", "BEGUN", "WHAT"], &rows);
    if left > 0 {
        let what = if left == 1 { "1 run is open".to_owned() } else { format!("{left} runs are open") };
        output.talk(&format!(
            "{what}, and nobody on this machine works on that; go on, with one or all: toolyard runs resume [RUN]"
        ));
    }
    Ok(())
}

/// What a run is about, and how it stands by its last transition.
async fn summary(record: &RunRecord, store: &Store) -> Result<(String, Option<RunEnd>), Failure> {
    let detail = record.detail.to_value();
    let question = detail.get("question").and_then(Value::as_str).unwrap_or(&record.kind).to_owned();
    let events = store.events(&record.id, 0).await?;
    let last = events.last().and_then(|last| last.event.read::<RunEvent>().ok());
    let end = last.and_then(|event| match event {
        RunEvent::Ended { end } => Some(end),
        _ => None,
    });
    Ok((question, end))
}

pub(super) fn step_table(steps: &[StepRecord], output: &Output) {
    let row = |step: &StepRecord| {
        [
            step.run.to_string(),
            harmless(&step.step),
            harmless(&step.tool),
            step.source.as_ref().map(ToString::to_string).unwrap_or_default(),
            format!("{:?}", step.state).to_lowercase(),
            time_of(step.started_at),
            harmless(&step.shown_arguments),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    output.table(["RUN", "STEP", "TOOL", "SOURCE", "STATE", "STARTED", "ARGUMENTS"], &rows);
}

/// A moment as people write it, in universal time.
pub(super) fn time_of(at: i64) -> String {
    let seconds = Duration::from_millis(u64::try_from(at).unwrap_or(0)).as_secs();
    let at = jiff::Timestamp::from_second(i64::try_from(seconds).unwrap_or(0));
    at.map(|at| at.to_string()).unwrap_or_default()
}
