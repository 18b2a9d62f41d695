//! `toolyard runs`: what was journalled, and what waits for a person's word.

use serde_json::json;
use toolyard_core::{Journal as _, Resolution, RunId, StepRecord};
use toolyard_store::Store;

use crate::{
    cli::{Outcome, RunsCommand},
    failure::Failure,
    output::{Output, harmless},
};

/// Lists, shows, resolves.
pub(crate) async fn run(command: RunsCommand, store: &Store, output: &Output) -> Result<(), Failure> {
    match command {
        RunsCommand::List => {
            let runs = store.runs(50).await?;
            if output.wants_json() {
                output.json(&runs);
                return Ok(());
            }
            let row = |run: &toolyard_core::RunRecord| {
                let state = format!("{:?}", run.state).to_lowercase();
                [run.id.to_string(), harmless(&run.kind), state, time(run.created_at)]
            };
            output.table(["RUN", "KIND", "STATE", "BEGUN"], &runs.iter().map(row).collect::<Vec<_>>());
            Ok(())
        }
        RunsCommand::Show { run } => {
            let run = RunId::from(run);
            let record = store.run(&run).await?;
            let steps = store.steps(&run).await?;
            if output.wants_json() {
                output.json(&json!({"run": record, "steps": steps}));
            } else {
                output.line(&format!("{}   {}, {:?}", record.id, harmless(&record.kind), record.state));
                show(&steps, output);
            }
            Ok(())
        }
        RunsCommand::Unknown => {
            let steps = store.unknown().await?;
            if output.wants_json() {
                output.json(&steps);
            } else if steps.is_empty() {
                output.talk("nothing is unknown");
            } else {
                show(&steps, output);
                output.talk("say what happened: toolyard runs resolve RUN STEP done|not-done");
            }
            Ok(())
        }
        RunsCommand::Resolve { run, step, outcome } => {
            let resolution = match outcome {
                Outcome::Done => Resolution::Done,
                Outcome::NotDone => Resolution::NotDone,
            };
            store.resolve(&RunId::from(run), &step, resolution, "cli").await?;
            output.talk(match outcome {
                Outcome::Done => "noted: it happened and will not be called again",
                Outcome::NotDone => "noted: it did not happen and may be called when the run goes on",
            });
            Ok(())
        }
    }
}

fn show(steps: &[StepRecord], output: &Output) {
    let row = |step: &StepRecord| {
        [
            step.run.to_string(),
            harmless(&step.step),
            harmless(&step.tool),
            step.source.as_ref().map(ToString::to_string).unwrap_or_default(),
            format!("{:?}", step.state).to_lowercase(),
            time(step.started_at),
            harmless(&step.shown_arguments),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    output.table(["RUN", "STEP", "TOOL", "SOURCE", "STATE", "STARTED", "ARGUMENTS"], &rows);
}

fn time(at: i64) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}
