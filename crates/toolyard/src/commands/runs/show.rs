//! `toolyard runs show` and `replay`.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_agent::{
    ApprovalDetails, ModelTask, RunEnd, RunEvent, RunRequest, RunUpdate, RunWatcher as _, load_run,
    replay_updates, run_trace_id,
};
use toolyard_core::{
    ApprovalKind, ApprovalRecord, Approvals as _, Journal as _, LoggedEvent, RunId, RunLog, RunRecord,
    RunState,
};
use toolyard_model::{ModelReply, ModelRequest};
use toolyard_store::Store;

use super::{format_timestamp, print_step_table};
use crate::{
    error::CliError,
    terminal::{
        Output, line_width,
        run_view::{
            ApprovalMode, RunProgress, RunView, StepStatus, argument_lines, reply_lines, sent_lines,
            stored_run_lines, usage_line,
        },
        sanitize,
    },
};

/// Longer pauses between two events are shortened in a replay.
const MAX_REPLAY_PAUSE: Duration = Duration::from_secs(3);

const SPINNER_INTERVAL: Duration = Duration::from_millis(80);
const MAX_LINE_WIDTH: usize = 110;
const INDENT: &str = "     ";

/// Shows a run: an agent's with its plan, a journalled call as a table of its step.
pub(crate) async fn show(run: &RunId, store: &Store, output: &Output) -> Result<(), CliError> {
    let record = store.run(run).await?;
    let steps = store.steps(run).await?;
    let events = store.events(run, 0).await?;
    if output.is_json() {
        let trace_id = progress(&events).request.map(|request| trace_id(run, &request));
        let events: Vec<Value> = events.iter().map(event_json).collect();
        let mut shown = json!({"run": record, "steps": steps, "events": events});
        if let (Value::Object(shown), Some(trace_id)) = (&mut shown, trace_id) {
            shown.insert("trace_id".to_owned(), trace_id.into());
        }
        output.json(&shown);
        return Ok(());
    }
    if events.is_empty() {
        output.line(&format!("{}   {}, {}", record.id, record.kind, state_label(&record, None)));
        print_step_table(&steps, output);
        return Ok(());
    }
    let progress = progress(&events);
    let state = state_label(&record, progress.end.as_ref());
    output.line(&format!("{}   {state}, started {}", record.id, format_timestamp(record.created_at)));
    if let Some(request) = &progress.request {
        output.line(&format!("  {}: {}", request.agent, request.question));
        output.line(&format!("  trace {}", trace_id(run, request)));
    }
    stored_run_lines(&progress, line_width().min(MAX_LINE_WIDTH)).iter().for_each(|line| output.line(line));
    let approvals = store.approvals_of_run(run).await?;
    let is_pending = |approval: &&ApprovalRecord| {
        record.state == RunState::Open
            && approval.outcome.is_none()
            && approval.kind == ApprovalKind::ToolCall
    };
    for approval in approvals.iter().filter(is_pending) {
        print_call(approval, progress.approval_details(approval.id), |line| output.line(line));
    }
    output.line(&format!("  {}", usage_line(&progress)));
    if let Some(end) = &progress.end {
        let approvals: Vec<&str> = progress.ids_with(StepStatus::AwaitingApproval).collect();
        output.line(&match (end, approvals.as_slice()) {
            (RunEnd::Suspended { .. }, [_, ..]) => {
                format!("waiting for your approval: {}", approvals.join(", "))
            }
            _ => end.to_string(),
        });
    }
    progress.receipt().iter().for_each(|line| output.line(line));
    print_hint(run, &record, &progress, output);
    Ok(())
}

/// Shows what was sent to the model and what it replied.
pub(super) async fn show_sent(run: &RunId, store: &Store, output: &Output) -> Result<(), CliError> {
    let (_, events) = load_run(store, run).await?;
    let exchanges: Vec<_> = replay_updates(&events).filter_map(exchange).collect();
    if output.is_json() {
        let exchange_json = |(task, sent, reply): &Exchange| match reply {
            Ok(reply) => json!({"task": task, "sent": sent, "reply": reply}),
            Err(message) => json!({"task": task, "sent": sent, "error": message}),
        };
        output.json(&exchanges.iter().map(exchange_json).collect::<Vec<_>>());
        return Ok(());
    }
    for (task, sent, reply) in &exchanges {
        let replied = reply.as_ref().map_or_else(|error| vec![format!("[failed] {error}")], reply_lines);
        sent_lines(task, sent).iter().chain(&replied).for_each(|line| output.line(line));
    }
    if exchanges.is_empty() {
        output.message(&format!("run {run} has no recorded model requests"));
        output.message("  hint: earlier versions did not record them");
    }
    Ok(())
}

/// A request to a model, and its reply or why there is none.
type Exchange = (ModelTask, ModelRequest, Result<ModelReply, String>);

fn exchange(update: RunUpdate) -> Option<Exchange> {
    let RunUpdate::Event { event, .. } = update else { return None };
    let (task, sent, reply) = match event {
        RunEvent::ModelReplied { task, reply, sent, .. } => (task, sent, Ok(reply)),
        RunEvent::ModelFailed { task, message, sent, .. } => (task, sent, Err(message)),
        _ => return None,
    };
    Some((task, serde_json::from_value(*sent?).ok()?, reply))
}

/// The id of the run's trace, as tracing systems write it.
fn trace_id(run: &RunId, request: &RunRequest) -> String {
    format!("{:032x}", run_trace_id(run, request))
}

/// Prints a call that waits for an approval, with all its arguments, line by line.
pub(super) fn print_call(approval: &ApprovalRecord, details: Option<&ApprovalDetails>, print: impl Fn(&str)) {
    let step = approval.step.as_deref().unwrap_or_default();
    // Logs of older versions have the text only.
    let (effects, arguments) = details.map_or(("", &approval.text), |call| (&call.effects, &call.arguments));
    let effects = if effects.is_empty() { String::new() } else { format!(" ({effects})") };
    print(&format!("   {step} needs approval{effects}:"));
    let width = line_width().min(MAX_LINE_WIDTH).saturating_sub(INDENT.len());
    argument_lines(arguments, width).iter().for_each(|line| print(&format!("{INDENT}{line}")));
    let notes = details.iter().flat_map(|call| &call.notes);
    notes.for_each(|note| print(&format!("{INDENT}note: {}", sanitize(note))));
}

/// How to continue an unfinished run.
fn print_hint(run: &RunId, record: &RunRecord, progress: &RunProgress, output: &Output) {
    let awaits_approval = progress.ids_with(StepStatus::AwaitingApproval).next().is_some();
    match (record.state, &progress.end) {
        (RunState::Open, Some(RunEnd::Suspended { .. })) => {
            output.message(&match progress.ids_with(StepStatus::Unknown).next() {
                Some(step) if !awaits_approval => format!(
                    "  hint: record the outcome: toolyard runs resolve {run} {step} done|not-done, then: toolyard runs resume {run}"
                ),
                _ => format!("  hint: toolyard runs approve {run} · toolyard runs deny {run}"),
            });
        }
        (RunState::Open, _) => output.message(&format!("  hint: resume it: toolyard runs resume {run}")),
        _ => {}
    }
}

/// A run's state in a word or two.
pub(super) fn state_label(record: &RunRecord, end: Option<&RunEnd>) -> String {
    match (record.state, end) {
        (RunState::Open, Some(RunEnd::Suspended { .. })) => "suspended".to_owned(),
        (RunState::Open, _) => match &record.owner {
            Some(owner) => format!("in use by {owner}"),
            None => "unfinished".to_owned(),
        },
        (RunState::Done, Some(RunEnd::Planned)) => "planned".to_owned(),
        (RunState::Done, _) => "done".to_owned(),
        (RunState::Failed, Some(RunEnd::Partial { .. })) => "partial".to_owned(),
        (RunState::Failed, Some(RunEnd::LimitReached { .. })) => "limit reached".to_owned(),
        (RunState::Failed, _) => "failed".to_owned(),
        (RunState::Cancelled, _) => "cancelled".to_owned(),
    }
}

pub(super) async fn replay(run: &RunId, speed: f64, store: &Store, output: &Output) -> Result<(), CliError> {
    let (_, events) = load_run(store, run).await?;
    let view = RunView::new(output, "", ApprovalMode::Suspend);
    let mut last_at = None;
    let mut end = None;
    for (update, logged) in replay_updates(&events).zip(&events) {
        if view.is_live() {
            pause(&view, last_at.map(|last_at| logged.at - last_at), speed).await;
        }
        last_at = Some(logged.at);
        if let RunUpdate::Event { event: RunEvent::Ended { end: ended, .. }, .. } = &update {
            end = Some(ended.clone());
        }
        view.on_update(&update);
    }
    let (progress, _) = view.finish();
    if let (Some(end), false) = (end, output.is_json()) {
        match &end {
            RunEnd::Answered { answer, .. } | RunEnd::Partial { answer, .. } => output.untrusted_text(answer),
            end => output.message(&end.to_string()),
        }
        progress.receipt().iter().for_each(|line| output.message(line));
    }
    Ok(())
}

/// Waits as long as the event took, up to a maximum, while the spinner turns.
async fn pause(view: &RunView<'_>, milliseconds: Option<i64>, speed: f64) {
    let elapsed = Duration::from_millis(milliseconds.and_then(|time| u64::try_from(time).ok()).unwrap_or(0));
    let pause = elapsed.as_secs_f64() / speed.max(0.001);
    let until =
        tokio::time::Instant::now() + Duration::from_secs_f64(pause.min(MAX_REPLAY_PAUSE.as_secs_f64()));
    while tokio::time::Instant::now() < until {
        tokio::time::sleep(SPINNER_INTERVAL).await;
        view.tick();
    }
}

/// Prints the latest plan of a run as JSON.
pub(crate) async fn print_plan(log: &dyn RunLog, run: &RunId, output: &Output) -> Result<(), CliError> {
    let (_, events) = load_run(log, run).await?;
    let plan = replay_updates(&events).filter_map(|update| match update {
        RunUpdate::Event { event: RunEvent::Planned { plan, .. }, .. } => Some(plan),
        _ => None,
    });
    if let Some(plan) = plan.last() {
        output.json(&plan);
    }
    Ok(())
}

pub(super) fn progress(events: &[LoggedEvent]) -> RunProgress {
    let mut progress = RunProgress::default();
    replay_updates(events).for_each(|update| progress.apply(&update, Duration::ZERO));
    progress
}

fn event_json(event: &LoggedEvent) -> Value {
    let mut logged = event.event.to_value();
    // Much longer than the rest; `--as-sent` shows it.
    logged.as_object_mut().map(|fields| fields.remove("sent"));
    json!({"number": event.number, "at": event.at, "event": logged})
}
