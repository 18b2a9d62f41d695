//! `toolyard runs`: lists, shows, resumes, approves, cancels and resolves runs.

mod resume;
pub(crate) mod show;

use std::time::Duration;

use serde_json::Value;
use toolyard_agent::{ApprovalDecision, RunEnd, RunEvent};
use toolyard_core::{Journal as _, Resolution, RunId, RunLog as _, RunRecord, RunState, StepRecord};
use toolyard_store::Store;

use crate::{
    cli::{RunsCommand, StepResolution},
    commands::setup::require_store,
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize},
};

/// How many of the latest runs are searched.
const MAX_SEARCHED_RUNS: usize = 10_000;

pub(crate) async fn run(command: RunsCommand, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let store = require_store(context)?;
    match command {
        RunsCommand::List { limit, unfinished } => list(limit, unfinished, store, output).await,
        RunsCommand::Show { run, as_sent: false } => {
            show::show(&find_run(&run, store).await?, store, output).await
        }
        RunsCommand::Show { run, as_sent: true } => {
            show::show_sent(&find_run(&run, store).await?, store, output).await
        }
        RunsCommand::Replay { run, speed } => {
            show::replay(&find_run(&run, store).await?, speed, store, output).await
        }
        RunsCommand::Resume(arguments) => resume::resume(arguments, context, output).await,
        RunsCommand::Approve(arguments) => {
            resume::decide(arguments, ApprovalDecision::Allow, context, output).await
        }
        RunsCommand::Deny(arguments) => {
            resume::decide(arguments, ApprovalDecision::Deny, context, output).await
        }
        RunsCommand::Cancel { run } => resume::cancel(&find_run(&run, store).await?, store, output).await,
        RunsCommand::Unknown => {
            let steps = store.unknown_steps().await?;
            if output.is_json() {
                output.json(&steps);
            } else if steps.is_empty() {
                output.message("No steps with an unknown outcome.");
            } else {
                print_step_table(&steps, output);
                output.message("record an outcome: toolyard runs resolve RUN STEP done|not-done");
            }
            Ok(())
        }
        RunsCommand::Resolve { run, step, outcome } => {
            let resolution = match outcome {
                StepResolution::Done => Resolution::Done,
                StepResolution::NotDone => Resolution::NotDone,
            };
            let run = find_run(&run, store).await?;
            store.resolve(&run, &step, resolution, "cli").await?;
            output.message(match outcome {
                StepResolution::Done => "recorded: the step took effect and is not repeated",
                StepResolution::NotDone => "recorded: the step did not take effect and may be repeated",
            });
            Ok(())
        }
    }
}

/// The run with this id, this unique prefix of its id, or the `last` one.
pub(super) async fn find_run(run: &str, store: &Store) -> Result<RunId, CliError> {
    let run = run.trim();
    let exact = RunId::from(run);
    if !run.is_empty() && store.run(&exact).await.is_ok() {
        return Ok(exact);
    }
    let runs = store.runs(MAX_SEARCHED_RUNS).await?;
    let not_found =
        |message: String| Err(CliError::usage(message).with_hint("list runs: toolyard runs list"));
    if run == "last" {
        return match runs.into_iter().next() {
            Some(record) => Ok(record.id),
            None => Err(CliError::usage("no runs yet").with_hint("start one: toolyard ask QUESTION")),
        };
    }
    let prefix = run.to_uppercase();
    let mut matching = runs.into_iter().map(|record| record.id).filter(|id| id.as_str().starts_with(&prefix));
    match (matching.next(), matching.count()) {
        (Some(only), 0) => Ok(only),
        (Some(_), others) => not_found(format!("`{run}` matches {} runs: use a longer prefix", others + 1)),
        (None, _) => not_found(format!("run `{run}` does not exist")),
    }
}

async fn list(limit: usize, unfinished: bool, store: &Store, output: &Output) -> Result<(), CliError> {
    let mut runs = store.runs(if unfinished { MAX_SEARCHED_RUNS } else { limit }).await?;
    runs.retain(|run| !unfinished || run.state == RunState::Open);
    runs.truncate(limit);
    if output.is_json() {
        output.json(&runs);
        return Ok(());
    }
    let (mut rows, mut orphaned) = (Vec::new(), 0);
    for record in &runs {
        let (question, end) = question_and_end(record, store).await?;
        let state = show::state_label(record, end.as_ref());
        orphaned += usize::from(resume::is_orphaned(record, end.as_ref()));
        rows.push([record.id.to_string(), state, format_timestamp(record.created_at), question]);
    }
    output.table(["RUN", "STATE", "STARTED", "QUESTION"], rows);
    if orphaned > 0 {
        let runs = pluralize(orphaned, "interrupted run");
        output.message(&format!("{runs}; resume one or all: toolyard runs resume [RUN]"));
    }
    Ok(())
}

/// A run's question, and its end if that is its last event.
async fn question_and_end(record: &RunRecord, store: &Store) -> Result<(String, Option<RunEnd>), CliError> {
    let detail = record.detail.to_value();
    let question = detail.get("question").and_then(Value::as_str).unwrap_or(&record.kind).to_owned();
    let events = store.events(&record.id, 0).await?;
    let last = events.last().and_then(|last| last.event.read::<RunEvent>().ok());
    let end = last.and_then(|event| match event {
        RunEvent::Ended { end, .. } => Some(end),
        _ => None,
    });
    Ok((question, end))
}

pub(super) fn print_step_table(steps: &[StepRecord], output: &Output) {
    let row = |step: &StepRecord| {
        [
            step.run.to_string(),
            step.step.clone(),
            step.tool.to_string(),
            step.source.as_ref().map(ToString::to_string).unwrap_or_default(),
            format!("{:?}", step.state).to_lowercase(),
            format_timestamp(step.started_at),
            step.redacted_arguments.to_string(),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    output.table(["RUN", "STEP", "TOOL", "SOURCE", "STATE", "STARTED", "ARGUMENTS"], rows);
}

/// A time in milliseconds since 1970 as UTC, to the second.
pub(super) fn format_timestamp(milliseconds: i64) -> String {
    let seconds = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)).as_secs();
    let at = jiff::Timestamp::from_second(i64::try_from(seconds).unwrap_or(0));
    at.map(|at| at.to_string()).unwrap_or_default()
}
