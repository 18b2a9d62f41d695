//! A run as a page shows it: pure functions from the API's answer to texts and drawings.

use std::collections::HashMap;

use super::{
    run_state::RunState,
    step_model::{DetailBudget, StepModel},
};
use crate::{
    api::{RunDetails, StepView},
    format::{count, url_encode},
    pages::approval_card::{ApprovalCard, ReturnTo, approval_cards},
    svg::{
        plan_graph::draw_plan,
        step_state::{STEP_STATES, StepState},
        timeline::draw_timeline,
    },
    text::{DrawingText, Language, RunsText, fill},
};

/// Steps up to which a page lists all of them.
const MAX_STEPS_ON_ONE_PAGE: usize = 60;
/// Steps in the list of one page of a larger run, whose graph needs most of the page.
const STEPS_PER_PAGE: usize = 10;
/// Size that a page stays below, as far as steps are concerned.
const PAGE_BYTES: usize = 92_000;
/// Bytes of the frame, and of the row of a step without its details.
const FRAME_BYTES: usize = 9_000;
const STEP_ROW_BYTES: usize = 420;

/// The part of a run that a visitor looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RunPart {
    #[default]
    Plan,
    Timeline,
    Events,
}

impl RunPart {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "timeline" => Self::Timeline,
            "events" => Self::Events,
            _ => Self::Plan,
        }
    }

    /// The query of the page with this part and the steps from a position on.
    fn query(self, from: usize) -> String {
        match self {
            Self::Plan => format!("?from={from}"),
            Self::Timeline => format!("?view=timeline&from={from}"),
            Self::Events => format!("?view=events&from={from}"),
        }
    }

    /// The query that leads to the page of a step; empty if it is the page that starts at `from`.
    pub(crate) fn page_query(self, position: usize, from: usize, steps_total: usize) -> String {
        let start = page_start(position, steps_total);
        if start == from { String::new() } else { self.query(start) }
    }
}

/// A run with its texts.
#[derive(Debug)]
pub(crate) struct RunModel {
    /// What the API says of it, without the approvals.
    pub(crate) details: RunDetails,
    /// The path of its page.
    pub(crate) path: String,
    pub(crate) state_class: &'static str,
    pub(crate) state_label: &'static str,
    /// Whether events may follow.
    pub(crate) is_active: bool,
    pub(crate) is_suspended: bool,
    /// Whether the run is suspended and waits for nobody, such as after a restart of the gateway.
    pub(crate) can_resume: bool,
    pub(crate) question: String,
    /// The question, or the id of the run without one.
    pub(crate) heading: String,
    pub(crate) answer: Option<String>,
    pub(crate) usage: Option<String>,
    pub(crate) approvals: Vec<ApprovalCard>,
    /// How many approvals are not shown.
    pub(crate) more_approvals: Option<String>,
    /// The number of the newest event; -1 if there is none.
    pub(crate) last_event: i64,
    /// The page to which forms lead back.
    pub(crate) return_to: ReturnTo,
}

impl RunModel {
    pub(crate) fn new(mut details: RunDetails, language: Language, return_to: ReturnTo) -> Self {
        let text = RunsText::of(language);
        let state = RunState::of_api(&details.state);
        let is_suspended = state == RunState::Suspended;
        let has_decisions = !details.pending_approvals.is_empty() || !details.unknown_steps.is_empty();
        let question = details.question.take().unwrap_or_default();
        let usage = &details.usage;
        let usage = (usage.input_tokens > 0 || usage.output_tokens > 0).then(|| {
            let tokens = fill(&fill(text.usage_text, count(usage.input_tokens)), count(usage.output_tokens));
            match usage.cost_micros {
                Some(micros) if micros > 0 => format!("{tokens} · {}", dollars(micros)),
                _ => tokens,
            }
        });
        let (approvals, more_approvals) =
            approval_cards(std::mem::take(&mut details.pending_approvals), language, return_to);
        Self {
            path: format!("/console/runs/{}", url_encode(&details.run)),
            state_class: state.class(),
            state_label: state.label(text),
            is_active: state.is_active(),
            is_suspended,
            can_resume: is_suspended && !has_decisions,
            heading: if question.trim().is_empty() { details.run.clone() } else { question.clone() },
            question,
            answer: details.answer.take().filter(|answer| !answer.is_empty()),
            usage,
            approvals,
            more_approvals,
            last_event: details.last_event.unwrap_or(-1),
            return_to,
            details,
        }
    }

    pub(crate) fn event_count(&self) -> i64 {
        self.last_event.saturating_add(1)
    }

    /// The path of the chat with its conversation.
    pub(crate) fn chat_path(&self) -> Option<String> {
        let conversation = self.details.conversation.as_deref()?;
        Some(format!("/console/chat?conversation={}", url_encode(conversation)))
    }
}

/// Micro-dollars with as many digits as matter.
fn dollars(micros: u64) -> String {
    if micros < 10_000 {
        format!("${}.{:06}", 0, micros)
    } else {
        format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000)
    }
}

/// One state and how many steps are in it.
#[derive(Debug)]
pub(crate) struct LegendEntry {
    pub(crate) state: StepState,
    pub(crate) label: &'static str,
    pub(crate) short_label: &'static str,
    pub(crate) count: usize,
}

/// The graph of a plan with its legend.
#[derive(Debug)]
pub(crate) struct GraphModel {
    pub(crate) svg: String,
    pub(crate) legend: Vec<LegendEntry>,
    pub(crate) notes: Vec<String>,
}

impl GraphModel {
    /// Draws the steps; `None` if there are none.
    pub(crate) fn of_steps(
        steps: &[StepView],
        available_width: usize,
        language: Language,
        page_of: &dyn Fn(usize) -> String,
    ) -> Option<Self> {
        if steps.is_empty() {
            return None;
        }
        let (words, text) = (DrawingText::of(language), RunsText::of(language));
        let graph = draw_plan(steps, available_width, words, page_of);
        let entry = |state| LegendEntry {
            state,
            label: words.state(state),
            short_label: words.short_state(state),
            count: steps.iter().filter(|step| StepState::of_api(&step.state) == state).count(),
        };
        let mut notes = Vec::new();
        if graph.hidden_steps > 0 {
            notes.push(fill(text.hidden_steps, graph.hidden_steps));
        }
        if graph.hidden_dependencies > 0 {
            notes.push(fill(text.hidden_dependencies, graph.hidden_dependencies));
        }
        Some(Self { svg: graph.svg, legend: STEP_STATES.map(entry).into_iter().collect(), notes })
    }
}

/// A drawn timeline.
#[derive(Debug)]
pub(crate) struct TimelineModel {
    pub(crate) svg: String,
    /// Says that steps are missing in the drawing.
    pub(crate) note: Option<String>,
}

/// The timeline of the steps that were started; `None` if none was. `page_of` returns the query of the page that lists the
/// step at a position.
pub(crate) fn timeline_of(
    steps: &[StepView],
    now: i64,
    language: Language,
    page_of: &dyn Fn(usize) -> String,
) -> Option<TimelineModel> {
    let (svg, hidden) = draw_timeline(steps, now, DrawingText::of(language), page_of)?;
    let note = (hidden > 0).then(|| fill(RunsText::of(language).hidden_rows, hidden));
    Some(TimelineModel { svg, note })
}

/// One page of the list of steps.
#[derive(Debug)]
pub(crate) struct StepPage {
    pub(crate) steps: Vec<StepModel>,
    /// Such as `51 to 60 of 200`; `None` if the page has all steps.
    pub(crate) range: Option<String>,
    /// The number of the first step.
    pub(crate) first_number: usize,
    /// The query of the page with the steps before.
    pub(crate) earlier: Option<String>,
    /// The query of the page with the steps after.
    pub(crate) later: Option<String>,
}

/// The position of the first step on the page with the step at `position`.
pub(crate) fn page_start(position: usize, steps_total: usize) -> usize {
    let size = page_size(steps_total);
    position / size * size
}

fn page_size(steps_total: usize) -> usize {
    if steps_total <= MAX_STEPS_ON_ONE_PAGE { MAX_STEPS_ON_ONE_PAGE } else { STEPS_PER_PAGE }
}

impl StepPage {
    /// The steps from position `from` on, with details as long as the page stays small.
    pub(crate) fn new(
        steps: &[StepView],
        part: RunPart,
        from: usize,
        opened_step: Option<String>,
        other_bytes: usize,
        language: Language,
    ) -> Self {
        let (words, text) = (DrawingText::of(language), RunsText::of(language));
        let shown = steps.iter().skip(from).take(page_size(steps.len()));
        let rows = shown.len() * STEP_ROW_BYTES;
        let remaining_bytes = PAGE_BYTES.saturating_sub(FRAME_BYTES + other_bytes + rows);
        let mut budget = DetailBudget { remaining_bytes, opened_step };
        let steps_total = steps.len();
        let positions: HashMap<&str, usize> =
            steps.iter().enumerate().map(|(position, step)| (step.id.as_str(), position)).collect();
        // Dependencies may be on another page of the list.
        let page_of = |id: &str| {
            let position = positions.get(id)?;
            Some(part.page_query(*position, from, steps_total))
        };
        let query = part.query(from);
        let described: Vec<StepModel> =
            shown.map(|step| budget.describe(step, &query, &page_of, words)).collect();
        let end = from + described.len();
        let range = (described.len() < steps_total)
            .then(|| fill(&fill(&fill(text.steps_range, from + 1), end), steps_total));
        Self {
            steps: described,
            range,
            first_number: from + 1,
            earlier: from.checked_sub(page_size(steps_total)).map(|start| part.query(start)),
            later: (end < steps_total).then(|| part.query(end)),
        }
    }
}
