//! Where a run stands as lines of text. Pure: width, time and the turn of the wheel come from outside.

use std::time::Duration;

use toolyard_agent::{ModelTask, RunEvent, RunNews};
use toolyard_core::grouped;
use unicode_width::UnicodeWidthStr as _;

use super::tree::{RowState, RunTree, StepRow};
use crate::output::{cut, fitted, harmless};

/// What turns while something is under way.
const WHEEL: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// The widest columns; what is wider is cut.
const WIDEST: [usize; 3] = [20, 28, 16];
/// Room for the time at the end of a line.
const TIME: usize = 10;

/// A moment at which lines are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Duration,
    pub(super) width: usize,
    pub(super) turn: usize,
}

impl Moment {
    /// A line with something at its right end.
    fn line(&self, left: &str, right: &str) -> String {
        let room = self.width.saturating_sub(right.width() + 1);
        let left = cut(left, room);
        let gap = self.width.saturating_sub(left.width() + right.width());
        format!("{left}{}{right}", " ".repeat(gap)).trim_end().to_owned()
    }
}

/// How long something took, as a person says it.
pub(crate) fn time(milliseconds: u64) -> String {
    let seconds = Duration::from_millis(milliseconds).as_secs_f64();
    match milliseconds {
        ..1_000 => format!("{seconds:.2} s"),
        1_000..100_000 => format!("{seconds:.1} s"),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}

/// Money in millionths as a person writes it.
pub(super) fn money(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    if micros < 10_000 { format!("{whole}.{rest:06}") } else { format!("{whole}.{:02}", rest / 10_000) }
}

/// The line of the last plan.
pub(super) fn plan_line(tree: &RunTree, model: &str, moment: &Moment) -> Option<String> {
    let (stages, milliseconds) = tree.plans.last()?;
    let word = if tree.plans.len() > 1 { "replan" } else { "plan" };
    let right = match model {
        "" => time(*milliseconds),
        model => format!("{}, {}", harmless(model), time(*milliseconds)),
    };
    Some(moment.line(&format!("{word:<8} {}", harmless(stages)), &right))
}

/// The whole tree as it is drawn.
pub(super) fn tree_lines(tree: &RunTree, model: &str, moment: &Moment) -> Vec<String> {
    let mut lines: Vec<String> = plan_line(tree, model, moment).into_iter().collect();
    lines.extend(tree.rows.iter().flat_map(|row| step_lines(tree, row, moment)));
    lines.extend(verify_line(tree, moment));
    if tree.end.is_none() {
        lines.extend(thinking_line(tree, model, moment));
    }
    lines
}

/// Rows of a run that is over, for `runs show`.
pub(crate) fn row_lines(tree: &RunTree, width: usize) -> Vec<String> {
    let moment = Moment { now: Duration::ZERO, width, turn: 0 };
    tree_lines(tree, "", &moment)
}

/// What was used, in a line.
pub(crate) fn spent_line(tree: &RunTree) -> String {
    let usage = tree.usage;
    let count = |number: u64| grouped(usize::try_from(number).unwrap_or(usize::MAX));
    let cached = if usage.cached > 0 { format!(" ({} cached)", count(usage.cached)) } else { String::new() };
    let cost =
        if usage.cost_micros > 0 { format!(", cost {}", money(usage.cost_micros)) } else { String::new() };
    let asked = match tree.model_calls {
        1 => "model asked once".to_owned(),
        times => format!("model asked {times} times"),
    };
    format!("{asked}, tokens {} read{cached} and {} written{cost}", count(usage.input), count(usage.output))
}

/// What is said where nothing is drawn over again: a line when something is over.
pub(super) fn plain_lines(tree: &RunTree, news: &RunNews, model: &str, moment: &Moment) -> Vec<String> {
    let RunNews::Event { event, .. } = news else { return Vec::new() };
    match event {
        RunEvent::Planned { .. } => plan_line(tree, model, moment).into_iter().collect(),
        RunEvent::PlanRefused { problems } => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            vec![
                moment
                    .line(&harmless(&format!("plan     cannot be carried out: {}", problems.join("; "))), ""),
            ]
        }
        // Without a plan there is nothing, and the end says why.
        RunEvent::ModelFailed { message, task, .. } if !matches!(task, ModelTask::Plan { .. }) => {
            vec![moment.line(&harmless(&format!("model    did not answer: {message}")), "")]
        }
        RunEvent::StepEnded { step, .. } | RunEvent::ApprovalAsked { step, .. } => {
            tree.row_of(step).map(|row| step_lines(tree, row, moment)).unwrap_or_default()
        }
        RunEvent::StepRepaired { step, .. } => {
            vec![moment.line(&harmless(&format!("   {step}: its arguments were written anew")), "")]
        }
        RunEvent::Verified { verification, step } if !verification.issues.is_empty() => {
            let word = if verification.verified { "note on" } else { "not verified:" };
            let issues = verification.issues.join("; ");
            vec![moment.line(&harmless(&format!("   {word} {step}: {issues}")), "")]
        }
        RunEvent::Ended { .. } => verify_line(tree, moment).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// A step, and what was found about it.
fn step_lines(tree: &RunTree, row: &StepRow, moment: &Moment) -> Vec<String> {
    let widths = widths(tree);
    let mark = match row.state {
        RowState::Waiting => "·",
        RowState::Running => WHEEL.get(moment.turn % WHEEL.len()).copied().unwrap_or("…"),
        RowState::Asks | RowState::Unknown => "?",
        RowState::Done => "✓",
        RowState::Failed => "✗",
        RowState::Skipped | RowState::Denied => "-",
        RowState::Rehearsed => "~",
    };
    let [id, tool, source] = [(&row.id, 0), (&row.tool, 1), (&row.source, 2)]
        .map(|(text, at)| padded(text, widths.get(at).copied().unwrap_or(0)));
    let took = match row.state {
        RowState::Running => seconds_since(row.since, moment.now),
        RowState::Done | RowState::Failed | RowState::Unknown => {
            row.milliseconds.map(time).unwrap_or_default()
        }
        _ => String::new(),
    };
    let said = match row.state {
        RowState::Running if row.detail.is_empty() => &row.arguments,
        RowState::Waiting if row.detail.is_empty() => &row.description,
        _ => &row.detail,
    };
    let left = format!(" {mark} {id}  {tool}  {source}  {}", harmless(&first_line(said)));
    let mut lines = vec![moment.line(left.trim_end(), &format!("{took:>TIME$}"))];
    let issues = row.verification.iter().filter(|found| !found.verified).flat_map(|found| &found.issues);
    lines.extend(issues.map(|issue| moment.line(&harmless(&format!("     not verified: {issue}")), "")));
    lines.extend(row.hint.iter().map(|hint| moment.line(&harmless(&format!("     hint: {hint}")), "")));
    lines
}

fn verify_line(tree: &RunTree, moment: &Moment) -> Option<String> {
    let is_over =
        |row: &StepRow| !matches!(row.state, RowState::Waiting | RowState::Running | RowState::Asks);
    let (looked, fine) = tree.verified();
    let shown = looked > 0 && tree.rows.iter().all(is_over);
    let mark = if looked == fine { "✓" } else { "✗" };
    let id = padded("verify", widths(tree)[0]);
    shown.then(|| moment.line(&format!(" {mark} {id}  {fine} of {looked} results"), ""))
}

fn thinking_line(tree: &RunTree, model: &str, moment: &Moment) -> Option<String> {
    let (task, since) = tree.thinking.as_ref()?;
    let what = match task {
        ModelTask::Plan { repair: true, .. } => "plans again, because the plan cannot be carried out",
        ModelTask::Plan { round: 0, .. } => "plans",
        ModelTask::Plan { .. } => "plans anew",
        // Seen at the step itself.
        ModelTask::Reason { .. } => return None,
        ModelTask::Repair { .. } => "writes the arguments of a step anew",
        ModelTask::Judge { .. } => "judges a result",
        ModelTask::Answer => "answers",
    };
    let who = if model.is_empty() { "the model".to_owned() } else { harmless(model) };
    let wheel = WHEEL.get(moment.turn % WHEEL.len()).copied().unwrap_or("…");
    Some(moment.line(&format!(" {wheel} {who} {what}"), &seconds_since(*since, moment.now)))
}

fn seconds_since(since: Duration, now: Duration) -> String {
    format!("{} s", now.saturating_sub(since).as_secs())
}

/// How wide the columns of a run are.
fn widths(tree: &RunTree) -> [usize; 3] {
    let widest = |of: fn(&StepRow) -> &str| tree.rows.iter().map(|row| of(row).width()).max().unwrap_or(0);
    let found = [widest(|row| &row.id).max(6), widest(|row| &row.tool), widest(|row| &row.source)];
    let mut widths = WIDEST;
    for (width, found) in widths.iter_mut().zip(found) {
        *width = found.min(*width);
    }
    widths
}

fn padded(text: &str, width: usize) -> String {
    let text = fitted(&harmless(text), width);
    let gap = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(gap))
}

/// Several lines as one.
fn first_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
