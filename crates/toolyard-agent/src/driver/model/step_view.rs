//! [`StepView`]: a step and as much of its value as models and answers need.

use std::sync::Arc;

use serde_json::Value;

use super::super::context::Context;
use crate::{
    ModelTask, Run, Step, StepEnd, StepPhase, StepReport, StepRun,
    reference::references,
    values::{StepValues, blocking::MAX_SIZE_ON_ASYNC_THREAD, compact_table, outline, preview},
};

/// Characters of a result that the model which answers sees at most; the request may truncate it further.
const MAX_RESULT_PREVIEW_CHARS: usize = 2_000;

/// Characters of a value that is shown whole to the model that plans the rest.
const MAX_WHOLE_SUMMARY_CHARS: usize = 240;

#[derive(Debug, Clone)]
pub(super) struct StepView {
    pub(super) step: StepRun,
    pub(super) value: Option<Arc<Value>>,
    /// Stands for a value that is not kept in memory.
    summary: Option<ValueSummary>,
}

#[derive(Debug, Clone)]
struct ValueSummary {
    preview: String,
    outline: String,
}

impl StepView {
    /// Preview of the value, or why there is none.
    pub(super) fn preview(&self) -> String {
        if let (true, None, Some(summary)) = (self.step.has_value(), &self.value, &self.summary) {
            return summary.preview.clone();
        }
        match (&self.step.phase, &self.value) {
            (_, Some(value)) if self.step.has_value() => preview(value, MAX_RESULT_PREVIEW_CHARS),
            (StepPhase::Ended(StepEnd::Done { preview, .. }), _) => preview.clone(),
            (StepPhase::Ended(StepEnd::Failed { message, .. } | StepEnd::Unknown { message }), _) => {
                message.clone()
            }
            // These texts are part of prompts.
            (StepPhase::Ended(StepEnd::Skipped { because }), _) => {
                format!("not begun, because {because} failed")
            }
            (StepPhase::Ended(StepEnd::Denied { by }), _) => format!("not allowed by {by}"),
            (StepPhase::Ended(StepEnd::Simulated), _) => {
                "not called, because nothing was to be changed".to_owned()
            }
            (StepPhase::Waiting | StepPhase::Started, _) => String::new(),
        }
    }

    /// Outline of the value, or why there is none.
    pub(super) fn outline(&self) -> String {
        match (&self.value, &self.summary) {
            (Some(value), _) if self.step.has_value() => outline(value),
            (None, Some(summary)) if self.step.has_value() => summary.outline.clone(),
            _ => self.preview(),
        }
    }

    /// The value for planning the rest: whole if it is short, else its outline; or why there is none.
    pub(super) fn summary(&self) -> String {
        match &self.value {
            Some(value) if self.step.has_value() && is_short(value) => {
                preview(value, MAX_WHOLE_SUMMARY_CHARS)
            }
            _ => self.outline(),
        }
    }

    /// The report for the model that answers: a table as rows, because small models lose their way in cells with metadata.
    pub(super) fn answer_report(&self) -> StepReport {
        let value = self.value.as_deref().filter(|_| self.step.has_value());
        let report = self.report();
        StepReport { preview: value.and_then(compact_table).unwrap_or(report.preview), ..report }
    }

    pub(super) fn report(&self) -> StepReport {
        let source = match &self.step.phase {
            StepPhase::Ended(StepEnd::Done { source: Some(source), .. }) => Some(source),
            _ => self.step.tool.source.as_ref(),
        };
        StepReport {
            step: self.step.step.id.clone(),
            tool: self.step.step.tool_type.clone(),
            source: source.map(ToString::to_string),
            preview: self.preview(),
            lacks_value: !self.step.has_value(),
            reasoned: self.step.is_reasoned_out(),
            verified: self.step.is_verified(),
            issues: self.step.verification.as_ref().map(|found| found.issues.clone()).unwrap_or_default(),
        }
    }
}

/// All steps, with the values that are in memory.
pub(super) fn cached_views(run: &Run, values: &StepValues) -> Vec<StepView> {
    let view = |step: &StepRun| StepView {
        step: step.clone(),
        value: values.cached(&step.journal_name()),
        summary: None,
    };
    run.steps().iter().map(view).collect()
}

/// All steps, with the values that a task needs read from the journal.
pub(super) async fn load_views(context: &Context<'_>, run: &Run, task: &ModelTask) -> Vec<StepView> {
    let (log, id) = (&*context.parts.log, &context.lease.run);
    let mut views = cached_views(run, &context.values);
    let needs_whole_value = matches!(task, ModelTask::Reason { .. } | ModelTask::Repair { .. });
    for view in views.iter_mut().filter(|view| view.value.is_none() && view.step.has_value()) {
        // A large value is not loaded just for a preview. An unreadable value is represented by its logged preview.
        let is_large = view.step.size() > MAX_SIZE_ON_ASYNC_THREAD;
        if is_needed(task, run, &view.step) && (needs_whole_value || !is_large) {
            let value = context.values.peek(log, id, &view.step.journal_name()).await.ok();
            if needs_whole_value {
                view.value = value;
            } else {
                // Only a summary is kept, not the value: all values together may not fit into memory.
                view.summary = value.map(|value| ValueSummary {
                    preview: preview(&value, MAX_RESULT_PREVIEW_CHARS),
                    outline: outline(&value),
                });
            }
        }
    }
    views
}

/// Whether a task needs a step's value: plans and answers need all values, a judgement that of its own step, reasoning and
/// repair those of the steps that their step depends on.
fn is_needed(task: &ModelTask, run: &Run, other: &StepRun) -> bool {
    match task {
        ModelTask::Plan { .. } | ModelTask::Answer => true,
        ModelTask::Review => false,
        ModelTask::Judge { step } => other.step.id == *step,
        ModelTask::Reason { step } | ModelTask::Repair { step } => {
            run.step(step).is_some_and(|step| depends_on(&step.step, &other.step.id))
        }
    }
}

pub(super) fn depends_on(step: &Step, other: &str) -> bool {
    step.dependencies.iter().any(|id| id == other)
        || references(&step.arguments).iter().any(|reference| reference.step == other)
}

fn is_short(value: &Value) -> bool {
    preview(value, MAX_WHOLE_SUMMARY_CHARS + 1).chars().count() <= MAX_WHOLE_SUMMARY_CHARS
}
