//! A step of a run as a page shows it.

use std::{borrow::Cow, fmt::Write as _};

use crate::{
    api::{AttemptView, StepView, VerificationView},
    format::{duration, pretty_json_text, shorten, url_encode},
    svg::{step_state::StepState, svg_text::step_anchor},
    text::DrawingText,
};

/// Characters of an input or output in a list; a step that is shown alone has all that the API returns.
const MAX_LISTED_CHARS: usize = 1_200;

/// A step with its texts.
#[derive(Debug)]
pub(crate) struct StepModel {
    pub(crate) id: String,
    pub(crate) anchor: String,
    pub(crate) tool: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) description: String,
    pub(crate) state: StepState,
    pub(crate) state_label: &'static str,
    pub(crate) duration: Option<String>,
    pub(crate) attempt_count: usize,
    /// Whether it is unfolded.
    pub(crate) is_open: bool,
    /// Input, output and what else there is to say; `None` if the page has no room for it.
    pub(crate) details: Option<StepDetails>,
    /// The query of the page that has all of its details.
    pub(crate) details_query: String,
}

/// Input, output and attempts of a step.
#[derive(Debug)]
pub(crate) struct StepDetails {
    /// Ids of steps, each with a link to its details if the plan has it.
    pub(crate) depends_on: Vec<(String, Option<String>)>,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) attempts: Vec<AttemptView>,
    pub(crate) verification: Option<VerificationView>,
    pub(crate) notes: Vec<String>,
}

impl StepDetails {
    fn byte_count(&self) -> usize {
        let texts = [&self.input, &self.output, &self.error, &self.hint];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let attempts: usize =
            self.attempts.iter().map(|attempt| 200 + attempt.error.as_ref().map_or(0, String::len)).sum();
        let issues = self.verification.iter().flat_map(|verification| &verification.issues);
        let lists: usize = issues.chain(&self.notes).map(|text| text.len() + 40).sum();
        let links: usize = self
            .depends_on
            .iter()
            .map(|(id, link)| id.len() + link.as_ref().map_or(0, String::len) + 30)
            .sum();
        // Markup, and characters that are longer when escaped.
        400 + (texts + attempts + lists + links) * 11 / 10
    }
}

/// The room that a page has for details of steps.
#[derive(Debug)]
pub(crate) struct DetailBudget {
    pub(crate) remaining_bytes: usize,
    /// The step whose details are shown in any case.
    pub(crate) opened_step: Option<String>,
}

impl DetailBudget {
    /// Describes a step, with its details if there is room for them.
    pub(crate) fn describe(
        &mut self,
        step: &StepView,
        page_query: &str,
        page_of: &dyn Fn(&str) -> Option<String>,
        words: &DrawingText,
    ) -> StepModel {
        let state = StepState::of_api(&step.state);
        let is_opened = self.opened_step.as_deref() == Some(&step.id);
        let limit = if is_opened { usize::MAX } else { MAX_LISTED_CHARS };
        let details = details_of(step, limit, page_of);
        let size = details.byte_count();
        let has_room = is_opened || size <= self.remaining_bytes;
        if has_room {
            self.remaining_bytes = self.remaining_bytes.saturating_sub(size);
        }
        let mut details_query = page_query.to_owned();
        let separator = if details_query.is_empty() { '?' } else { '&' };
        let _ = write!(details_query, "{separator}step={}", url_encode(&step.id));
        StepModel {
            id: shorten(&step.id, 80).into_owned(),
            anchor: step_anchor(&step.id),
            tool: step.tool.as_deref().map(|tool| shorten(tool, 80).into_owned()),
            source: step.source.as_deref().map(|source| shorten(source, 80).into_owned()),
            description: shorten(&step.description, 160).into_owned(),
            state,
            state_label: words.state(state),
            duration: step.duration_ms.map(duration),
            attempt_count: step.attempts.len(),
            is_open: is_opened || has_room && matches!(state, StepState::Failed | StepState::Unknown),
            details: has_room.then_some(details),
            details_query,
        }
    }
}

fn details_of(step: &StepView, limit: usize, page_of: &dyn Fn(&str) -> Option<String>) -> StepDetails {
    let link = |id: &String| {
        let href = page_of(id).map(|page| format!("{page}#{}", step_anchor(id)));
        (shorten(id, 80).into_owned(), href)
    };
    let shortened = |text: String| match shorten(&text, limit) {
        Cow::Borrowed(_) => text,
        Cow::Owned(short) => short,
    };
    StepDetails {
        depends_on: step.depends_on.iter().take(40).map(link).collect(),
        input: step.arguments.shown().map(shortened),
        output: pretty_json_text(&step.output).map(shortened),
        error: step.error.clone().map(shortened),
        hint: step.hint.clone(),
        attempts: step.attempts.clone(),
        verification: step.verification.clone(),
        notes: step.notes.clone(),
    }
}
