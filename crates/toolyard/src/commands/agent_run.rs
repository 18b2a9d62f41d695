//! Drives a run for `ask`, `chat` and `runs`, and reports how it ended.

use std::time::Duration;

use toolyard::Toolyard;
use toolyard_agent::{Agent, AgentError, CancelToken, RunEnd, RunLimit, RunRequest};
use toolyard_core::RunId;

use crate::{
    error::{CliError, ExitStatus},
    terminal::{
        Output,
        progress::interrupt_signal,
        run_view::{RunProgress, RunView, StepStatus},
    },
};

/// Duration of the lease on a run: short, so that the user can soon resume a run whose command was killed.
const LEASE_DURATION: Duration = Duration::from_secs(6);
/// The caller that `ask` records with its runs.
pub(super) const ASK_CALLER: &str = "cli";
const SPINNER_INTERVAL: Duration = Duration::from_millis(120);

/// An agent for a command, and the name of its model.
pub(super) fn load_agent(
    toolyard: &Toolyard,
    name: &str,
    model: Option<&str>,
) -> Result<(Agent, String), CliError> {
    let agents = toolyard.agents();
    let agent = agents.agent(name, model)?.with_lease_duration(LEASE_DURATION);
    Ok((agent, agents.model_name(name, model)?))
}

pub(super) fn suggest_model_test(toolyard: &Toolyard, model: &str, output: &Output) {
    let agents = toolyard.agents();
    let models = agents.models();
    if models.settings(model).is_some_and(|settings| models.tool_calling(settings).is_none()) {
        output.message(&format!(
            "note: model {model} has not been tested for tool calling: toolyard models test {model}"
        ));
    }
}

/// Drives a run until it ends or is suspended. The first interrupt releases the run once its calls in flight have ended,
/// the second one at once; the run can be resumed, and the error says so.
pub(super) async fn drive(
    agent: &Agent,
    run: &RunId,
    view: &RunView<'_>,
    stop: &CancelToken,
) -> Result<RunEnd, CliError> {
    let result = drive_until_interrupted(agent, run, view, stop).await;
    if result.is_err() {
        view.stop();
    }
    result
}

async fn drive_until_interrupted(
    agent: &Agent,
    run: &RunId,
    view: &RunView<'_>,
    stop: &CancelToken,
) -> Result<RunEnd, CliError> {
    let mut work = std::pin::pin!(agent.drive(run, view, stop));
    loop {
        let mut interrupt = std::pin::pin!(interrupt_signal());
        loop {
            tokio::select! {
                ended = &mut work => return match ended {
                    Err(AgentError::Released(_)) => Err(interrupted_error(run)),
                    ended => Ok(ended?),
                },
                () = tokio::time::sleep(SPINNER_INTERVAL) => view.tick(),
                () = &mut interrupt => break,
            }
        }
        if stop.is_stopping() {
            return Err(interrupted_error(run));
        }
        stop.release();
        view.message(if view.has_running_step() {
            "interrupting: waiting for calls in flight to end; interrupt again to stop at once"
        } else {
            "interrupting; interrupt again to stop at once"
        });
    }
}

fn interrupted_error(run: &RunId) -> CliError {
    CliError::new(ExitStatus::Interrupted, "the run is interrupted")
        .with_hint(format!("toolyard runs resume {run} · toolyard runs cancel {run}"))
}

/// Prints the answer or error, and how to find the run again.
pub(super) fn report_end(
    run: &RunId,
    end: &RunEnd,
    view: RunView<'_>,
    output: &Output,
) -> Result<(), CliError> {
    let result = finish_view(run, end, view, output);
    if output.is_json() {
        return result;
    }
    if let Err(failure) = &result {
        failure.print(output);
    }
    output.message(&format!("run {run}   inspect: toolyard runs show {run}"));
    result.map_err(CliError::without_message)
}

/// Draws the view for the last time, prints the answer unless it was streamed, and returns the result of the command.
pub(super) fn finish_view(
    run: &RunId,
    end: &RunEnd,
    view: RunView<'_>,
    output: &Output,
) -> Result<(), CliError> {
    let (progress, streamed) = view.finish();
    if output.is_json() {
        return command_result(run, end, &progress).map_err(CliError::without_message);
    }
    if let Some(answer) = end.answer() {
        if !streamed.is_empty() {
            output.chunk("\n");
        }
        if streamed.trim() != answer.trim() {
            output.untrusted_text(answer);
        }
    }
    progress.receipt().iter().for_each(|line| output.message(line));
    command_result(run, end, &progress)
}

/// Maps the end of a run to the result of the command.
fn command_result(run: &RunId, end: &RunEnd, progress: &RunProgress) -> Result<(), CliError> {
    match end {
        RunEnd::Answered { .. } | RunEnd::Planned => Ok(()),
        RunEnd::Partial { unfinished_steps, .. } => {
            let steps = unfinished_steps.join(", ");
            let message = if progress.is_partly_done() {
                format!("partly done: {steps} did not succeed")
            } else {
                format!("the task was not done: {steps} did not succeed")
            };
            Err(CliError::new(ExitStatus::Failed, message)
                .with_hint(format!("see what each step did: toolyard runs show {run}")))
        }
        RunEnd::Failed { message, hint, .. } => {
            let has_step = |status| progress.rows.iter().any(|row| row.status == status);
            let status = match () {
                () if has_step(StepStatus::Denied) && !has_step(StepStatus::Failed) => ExitStatus::Denied,
                () if progress.rows.is_empty() && progress.model_problem.is_some() => ExitStatus::Unreachable,
                () => ExitStatus::Failed,
            };
            Err(CliError::new(status, message.clone()).with_optional_hint(hint.clone()))
        }
        RunEnd::Suspended { waiting_for } => Err(suspended_error(run, waiting_for, progress)),
        RunEnd::Cancelled => {
            let unknown = progress.rows.iter().find(|row| row.status == StepStatus::Unknown);
            let hint = unknown.map(|row| {
                let step = &row.id;
                format!("the outcome of {step} is unknown; record it: toolyard runs resolve {run} {step} done|not-done")
            });
            Err(CliError::new(ExitStatus::Interrupted, "the run was cancelled").with_optional_hint(hint))
        }
        RunEnd::LimitReached { message, limit } => {
            Err(CliError::failed(message.clone()).with_hint(limit_hint(*limit, progress.request.as_ref())))
        }
        other => Err(CliError::failed(other.to_string())),
    }
}

/// How to raise the limit that ended a run. Only `ask` has the option --timeout.
fn limit_hint(limit: RunLimit, request: Option<&RunRequest>) -> String {
    if limit == RunLimit::Time && request.is_some_and(|request| &*request.caller == ASK_CALLER) {
        return "ask again with a longer --timeout".to_owned();
    }
    let agent = request.map(|request| request.agent.as_str()).unwrap_or_default();
    format!("raise the limit in toolyard.toml: `limits` of [agents.{agent}]")
}

/// The error for a run that waits for the user: for an approval, or for the outcome of a step.
fn suspended_error(run: &RunId, waiting_for: &[String], progress: &RunProgress) -> CliError {
    let awaiting = progress.rows.iter().filter(|row| row.status == StepStatus::AwaitingApproval);
    let approvals: Vec<&str> = awaiting.map(|row| row.tool.as_str()).collect();
    let unknown: Vec<&str> = progress.ids_with(StepStatus::Unknown).collect();
    match (approvals.as_slice(), unknown.as_slice()) {
        ([], [step, ..]) => CliError::new(
            ExitStatus::OutcomeUnknown,
            format!("the run is suspended: the outcome of {} is unknown", unknown.join(", ")),
        )
        .with_hint(format!(
            "record it: toolyard runs resolve {run} {step} done|not-done, then: toolyard runs resume {run}"
        )),
        _ => {
            let calls = if approvals.is_empty() { waiting_for.join(", ") } else { approvals.join(", ") };
            let message = format!("the run is suspended until you approve: {calls}");
            CliError::new(ExitStatus::AwaitingApproval, message)
                .with_hint(format!("toolyard runs approve {run} · toolyard runs deny {run}"))
        }
    }
}

#[cfg(test)]
#[path = "../../../toolyard-gateway/src/agents/every_end.rs"]
mod every_end;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use toolyard_agent::{Plan, RunEvent, RunUpdate, Step, StepEnd};

    use super::{
        every_end::{every_run_end, every_step_end},
        *,
    };

    #[test]
    fn every_end_of_a_run_has_an_exit_status() {
        for end in every_run_end() {
            let expected = match json!(end)["state"].as_str().unwrap() {
                "answered" | "planned" => None,
                "partial" | "failed" | "limit_reached" => Some(ExitStatus::Failed),
                "suspended" => Some(ExitStatus::AwaitingApproval),
                "cancelled" => Some(ExitStatus::Interrupted),
                new => panic!("decide on the exit status of {new}"),
            };
            let result = command_result(&"01J".into(), &end, &RunProgress::default());
            assert_eq!(result.err().map(|error| error.status()), expected, "{end:?}");
        }
    }

    #[test]
    fn a_task_of_which_something_was_done_is_partly_done() {
        let step = |id: &str| Step { id: id.to_owned(), ..Step::default() };
        let done = StepEnd::Done { source: None, preview: "5".to_owned(), size: 1, reasoned: false };
        let end = RunEnd::Partial {
            answer: "Done.".to_owned(),
            sources: Vec::new(),
            unfinished_steps: vec!["write".to_owned()],
        };
        let message = |effects: serde_json::Value| {
            let mut progress = RunProgress::default();
            for event in [
                RunEvent::Planned {
                    plan: Plan { steps: vec![step("read"), step("write")] },
                    tools: BTreeMap::new(),
                },
                RunEvent::StepEnded { step: "read".to_owned(), outcome: done.clone(), milliseconds: 1 },
                RunEvent::Ended {
                    end: end.clone(),
                    effects: serde_json::from_value(effects).unwrap(),
                    review: None,
                },
            ] {
                progress.apply(&RunUpdate::Event { run: "01J".into(), number: 0, event }, Duration::ZERO);
            }
            command_result(&"01J".into(), &end, &progress).unwrap_err().message().to_owned()
        };
        let write = |state: &str| json!({"step": "write", "tool": "write_note", "state": state});
        let partly = "partly done: write did not succeed";
        assert_eq!(message(json!([])), partly, "nothing was to be changed, and a step has a result");
        assert_eq!(message(json!([write("not_done"), write("done")])), partly);
        assert_eq!(message(json!([write("not_done")])), "the task was not done: write did not succeed");
    }

    #[test]
    fn only_a_step_with_an_unknown_outcome_is_unknown() {
        for outcome in every_step_end() {
            let is_unknown = matches!(outcome, StepEnd::Unknown { .. });
            let plan = Plan { steps: vec![Step { id: "s".to_owned(), ..Step::default() }] };
            let mut progress = RunProgress::default();
            for event in [
                RunEvent::Planned { plan, tools: BTreeMap::new() },
                RunEvent::StepEnded { step: "s".to_owned(), outcome: outcome.clone(), milliseconds: 1 },
            ] {
                let update = RunUpdate::Event { run: "01J".into(), number: 0, event };
                progress.apply(&update, Duration::ZERO);
            }
            let status = progress.row("s").map(|row| row.status);
            assert_eq!(status == Some(StepStatus::Unknown), is_unknown, "{outcome:?}");
        }
    }

    #[test]
    fn the_time_limit_of_a_question_is_raised_with_an_option() {
        let hint = |limit: RunLimit, caller: &str| {
            let request =
                RunRequest { agent: "clerk".to_owned(), caller: caller.into(), ..RunRequest::default() };
            limit_hint(limit, Some(&request))
        };
        let settings = "raise the limit in toolyard.toml: `limits` of [agents.clerk]";
        assert_eq!(hint(RunLimit::Time, ASK_CALLER), "ask again with a longer --timeout");
        assert_eq!(hint(RunLimit::Time, "chat"), settings);
        assert_eq!(hint(RunLimit::Tokens, ASK_CALLER), settings);
    }
}
