//! Renders the progress of a run as lines of text. Pure: width, time and spinner position are inputs.

use std::time::Duration;

use toolyard_agent::{ModelTask, RunEvent, RunUpdate};
use toolyard_core::group_digits;
use unicode_width::UnicodeWidthStr as _;

use super::run_progress::{RunProgress, StepRow, StepStatus};
use crate::terminal::{fit_line, sanitize, truncate_to_width};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Maximum widths of the columns step, tool and source.
const MAX_COLUMN_WIDTHS: [usize; 3] = [20, 28, 16];
const DURATION_WIDTH: usize = 10;
/// Shown in the column of steps.
const VERIFY_LABEL: &str = "verify";

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// The time since the view was created.
    pub(super) now: Duration,
    pub(super) width: usize,
    /// Position of the spinner.
    pub(super) spinner: usize,
}

impl Frame {
    /// A line with a right-aligned part.
    fn line(&self, left: &str, right: &str) -> String {
        let room = self.width.saturating_sub(right.width() + 1);
        let left = truncate_to_width(left, room);
        let gap = self.width.saturating_sub(left.width() + right.width());
        format!("{left}{}{right}", " ".repeat(gap)).trim_end().to_owned()
    }
}

/// `0.04 s`, `1.2 s`, `2 min 5 s`.
pub(crate) fn format_duration(milliseconds: u64) -> String {
    let seconds = Duration::from_millis(milliseconds).as_secs_f64();
    match milliseconds {
        ..1_000 => format!("{seconds:.2} s"),
        1_000..100_000 => format!("{seconds:.1} s"),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}

/// A cost, given in millionths of the currency unit of the model's price: `0.001500`, `2.34`.
pub(super) fn format_cost(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    if micros < 10_000 { format!("{whole}.{rest:06}") } else { format!("{whole}.{:02}", rest / 10_000) }
}

pub(super) fn plan_line(progress: &RunProgress, model: &str, frame: &Frame) -> Option<String> {
    let (plan_summary, milliseconds) = progress.plans.last()?;
    let label = if progress.plans.len() > 1 { "replan" } else { "plan" };
    let right = match model {
        "" => format_duration(*milliseconds),
        model => format!("{}, {}", sanitize(model), format_duration(*milliseconds)),
    };
    Some(frame.line(&format!("{label:<8} {}", sanitize(plan_summary)), &right))
}

/// The whole run, as the live view draws it.
pub(super) fn progress_lines(progress: &RunProgress, model: &str, frame: &Frame) -> Vec<String> {
    let mut lines: Vec<String> = plan_line(progress, model, frame).into_iter().collect();
    lines.extend(progress.rows.iter().flat_map(|row| step_lines(progress, row, frame)));
    lines.extend(verify_line(progress, frame));
    if progress.end.is_none() {
        lines.extend(model_line(progress, model, frame));
    }
    lines
}

/// A stored run as the live view would draw it, for `runs show`.
pub(crate) fn stored_run_lines(progress: &RunProgress, width: usize) -> Vec<String> {
    let frame = Frame { now: Duration::ZERO, width, spinner: 0 };
    progress_lines(progress, "", &frame)
}

/// Model calls, tokens and cost in one line.
pub(crate) fn usage_line(progress: &RunProgress) -> String {
    let usage = progress.usage;
    let count = |number: u64| group_digits(usize::try_from(number).unwrap_or(usize::MAX));
    let cached = if usage.cached > 0 { format!(" ({} cached)", count(usage.cached)) } else { String::new() };
    let cost = if usage.cost_micros > 0 {
        format!(", cost {}", format_cost(usage.cost_micros))
    } else {
        String::new()
    };
    let calls = match progress.model_calls {
        1 => "1 model call".to_owned(),
        calls => format!("{calls} model calls"),
    };
    format!(
        "{calls}, {} input tokens{cached}, {} output tokens{cost}",
        count(usage.input),
        count(usage.output)
    )
}

/// The lines printed for an update where nothing is redrawn; none for most updates.
pub(super) fn plain_lines(
    progress: &RunProgress,
    update: &RunUpdate,
    model: &str,
    frame: &Frame,
) -> Vec<String> {
    let RunUpdate::Event { event, .. } = update else { return Vec::new() };
    match event {
        RunEvent::Planned { .. } => plan_line(progress, model, frame).into_iter().collect(),
        RunEvent::PlanRejected { problems } => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            vec![frame.line(&sanitize(&format!("plan     rejected: {}", problems.join("; "))), "")]
        }
        RunEvent::ToolsSearched { words } => {
            vec![frame.line(&sanitize(&format!("plan     searched other tools: {words}")), "")]
        }
        // If the planning call fails, the run ends, and its end reports the failure.
        RunEvent::ModelFailed { message, task, .. } if !matches!(task, ModelTask::Plan { .. }) => {
            vec![frame.line(&sanitize(&format!("model    failed: {message}")), "")]
        }
        RunEvent::StepEnded { step, .. } | RunEvent::ApprovalRequested { step, .. } => {
            progress.row(step).map(|row| step_lines(progress, row, frame)).unwrap_or_default()
        }
        RunEvent::StepRepaired { step, .. } => {
            let line = |row: &StepRow| format!("   {step}: {}", single_line(&row.detail));
            progress.row(step).map(|row| frame.line(&sanitize(&line(row)), "")).into_iter().collect()
        }
        RunEvent::Verified { verification, step } if !verification.issues.is_empty() => {
            let label = if verification.verified { "note on" } else { "verification failed:" };
            let issues = verification.issues.join("; ");
            vec![frame.line(&sanitize(&format!("   {label} {step}: {issues}")), "")]
        }
        RunEvent::Ended { .. } => verify_line(progress, frame).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A step with its repairs, verification issues and hint.
fn step_lines(progress: &RunProgress, row: &StepRow, frame: &Frame) -> Vec<String> {
    let widths = column_widths(progress);
    let rejected = row.verification.as_ref().filter(|verification| !verification.verified);
    let symbol = match row.status {
        StepStatus::Waiting => "·",
        StepStatus::Running => spinner(frame),
        StepStatus::AwaitingApproval | StepStatus::Unknown => "?",
        StepStatus::Done if rejected.is_none() => "✓",
        StepStatus::Done | StepStatus::Failed => "✗",
        StepStatus::Skipped | StepStatus::Denied => "-",
        StepStatus::Simulated => "~",
    };
    let [id, tool, source] = [(&row.id, 0), (&row.tool, 1), (&row.source, 2)]
        .map(|(text, at)| padded(text, widths.get(at).copied().unwrap_or(0)));
    let duration = match row.status {
        StepStatus::Running => seconds_since(row.started, frame.now),
        StepStatus::Done | StepStatus::Failed | StepStatus::Unknown => {
            row.milliseconds.map(format_duration).unwrap_or_default()
        }
        _ => String::new(),
    };
    let text = match row.status {
        StepStatus::Running if row.detail.is_empty() => &row.arguments,
        StepStatus::Waiting if row.detail.is_empty() => &row.description,
        _ => &row.detail,
    };
    let left = format!(" {symbol} {id}  {tool}  {source}  {}", sanitize(&single_line(text)));
    let mut lines = vec![frame.line(left.trim_end(), &format!("{duration:>DURATION_WIDTH$}"))];
    lines.extend(row.notes.iter().map(|note| frame.line(&sanitize(&format!("     note: {note}")), "")));
    let issues = rejected.into_iter().flat_map(|verification| &verification.issues);
    lines
        .extend(issues.map(|issue| frame.line(&sanitize(&format!("     verification failed: {issue}")), "")));
    lines.extend(row.hint.iter().map(|hint| frame.line(&sanitize(&format!("     hint: {hint}")), "")));
    lines
}

fn verify_line(progress: &RunProgress, frame: &Frame) -> Option<String> {
    let is_finished = |row: &StepRow| {
        !matches!(row.status, StepStatus::Waiting | StepStatus::Running | StepStatus::AwaitingApproval)
    };
    let (checked, passed) = progress.verification_counts();
    let is_shown = checked > 0 && progress.rows.iter().all(is_finished);
    let symbol = if checked == passed { "✓" } else { "✗" };
    let id = padded(VERIFY_LABEL, column_widths(progress)[0]);
    let not_done = progress.rows.iter().filter(|row| {
        matches!(
            row.status,
            StepStatus::Failed | StepStatus::Skipped | StepStatus::Denied | StepStatus::Unknown
        )
    });
    let not_done: Vec<String> = not_done.map(|row| sanitize(&row.id)).collect();
    let rest =
        if not_done.is_empty() { String::new() } else { format!("; not done: {}", not_done.join(", ")) };
    is_shown.then(|| frame.line(&format!(" {symbol} {id}  {passed} of {checked} steps{rest}"), ""))
}

fn model_line(progress: &RunProgress, model: &str, frame: &Frame) -> Option<String> {
    let (task, since) = progress.model_task.as_ref()?;
    let activity = match task {
        ModelTask::Plan { repair: true, .. } => "repairs the rejected plan",
        ModelTask::Plan { round: 0, .. } => "plans",
        ModelTask::Plan { .. } => "replans",
        // Shown by the step itself.
        ModelTask::Reason { .. } => return None,
        ModelTask::Repair { .. } => "repairs the arguments of a step",
        ModelTask::Judge { .. } => "judges a result",
        ModelTask::Answer => "answers",
        ModelTask::Review => "says whether this is what was asked for",
    };
    let model = if model.is_empty() { "the model".to_owned() } else { sanitize(model) };
    let line = format!(" {} {model} {activity}", spinner(frame));
    Some(frame.line(&line, &seconds_since(*since, frame.now)))
}

fn spinner(frame: &Frame) -> &'static str {
    SPINNER.get(frame.spinner % SPINNER.len()).copied().unwrap_or("…")
}

fn seconds_since(since: Duration, now: Duration) -> String {
    format!("{} s", now.saturating_sub(since).as_secs())
}

/// Widths of the columns step, tool and source.
fn column_widths(progress: &RunProgress) -> [usize; 3] {
    let widest =
        |of: fn(&StepRow) -> &str| progress.rows.iter().map(|row| of(row).width()).max().unwrap_or(0);
    let needed =
        [widest(|row| &row.id).max(VERIFY_LABEL.len()), widest(|row| &row.tool), widest(|row| &row.source)];
    let mut widths = MAX_COLUMN_WIDTHS;
    for (width, needed) in widths.iter_mut().zip(needed) {
        *width = needed.min(*width);
    }
    widths
}

fn padded(text: &str, width: usize) -> String {
    let text = fit_line(&sanitize(text), width);
    let gap = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(gap))
}

fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
