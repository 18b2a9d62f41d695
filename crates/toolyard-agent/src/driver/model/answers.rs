//! Answers that need no model.

use std::sync::Arc;

use toolyard_model::ToolCalling;

use super::{
    super::run_driver::RunDriver,
    model_io::question,
    step_view::{StepView, cached_views},
};
use crate::{
    CoordinationAgent, Language, StepEnd, StepPhase, StepReport, StepRun,
    prompt::templates::{RunTemplates, fill},
    verification::answer::{AnswerReview, MAX_EVIDENCE_BYTES, StepFact, review_answer, tool_changes},
};

impl RunDriver<'_> {
    fn views(&self) -> Vec<StepView> {
        cached_views(&self.run, &self.context.values)
    }

    pub(super) fn reports(&self) -> Vec<StepReport> {
        self.views().iter().map(StepView::report).collect()
    }

    fn answer_language(&self) -> Language {
        self.context.parts.config.language.for_question(question(&self.run))
    }

    pub(super) fn coordination_agent(&self) -> CoordinationAgent {
        CoordinationAgent::new(Arc::clone(&self.context.parts.config)).with_language(self.answer_language())
    }

    /// The best result so far.
    pub(in crate::driver) fn fallback_answer(&self) -> Option<String> {
        self.coordination_agent().fallback_answer(&self.reports())
    }

    /// The table a single step returned, for small models that would only talk about it.
    pub(super) fn direct_answer(&self) -> Option<String> {
        let (views, mode) = (self.views(), self.context.parts.model.tool_calling());
        let (ToolCalling::Schema, [only]) = (mode, views.as_slice()) else { return None };
        let agent = self.coordination_agent();
        agent.direct_answer(question(&self.run), &[only.report()], only.value.as_deref())
    }

    /// Why there is no answer, and what to do about it.
    pub(super) fn failure_and_hint(&self) -> (String, Option<String>) {
        let steps = self.run.steps();
        if steps.is_empty() {
            let problems: Vec<String> = self.run.problems().iter().map(ToString::to_string).collect();
            let templates = RunTemplates::of(self.answer_language());
            let message = fill(templates.no_plan, &[("problems", &problems.join("; "))]);
            return (message, Some(templates.no_plan_hint.to_owned()));
        }
        let hint = steps.iter().find_map(|step| match &step.phase {
            StepPhase::Ended(StepEnd::Failed { hint, .. }) => hint.clone(),
            _ => None,
        });
        (self.coordination_agent().failure_answer(&self.reports()), hint)
    }

    /// Compares an answer with what the steps did. A dry run changes nothing and claims nothing.
    pub(super) fn review(&self, answer: &str) -> AnswerReview {
        if self.run.request().is_some_and(|request| request.dry_run) {
            return AnswerReview::default();
        }
        let dropped = self.run.dropped_steps().iter().map(StepView::without_value);
        let mut free_bytes = MAX_EVIDENCE_BYTES;
        let facts: Vec<StepFact> =
            dropped.chain(self.views()).map(|view| view.fact(&mut free_bytes)).collect();
        review_answer(question(&self.run), answer, &facts)
    }

    /// Whether a step that may change something ended with a result.
    pub(super) fn made_changes(&self) -> bool {
        let changes = |step: &StepRun| {
            step.has_value()
                && !step.is_reasoning()
                && tool_changes(&step.step.tool_type, step.tool.read_only)
        };
        self.run.steps().iter().any(changes)
    }

    /// The calls that a dry run did not make.
    pub(super) fn dry_run_answer(&self) -> String {
        let steps = self.run.steps().iter();
        let simulated = steps.filter(|step| matches!(step.phase, StepPhase::Ended(StepEnd::Simulated)));
        let lines = simulated.map(|step| format!("- {}: {}", step.step.id, step.step.tool_type));
        let heading = RunTemplates::of(self.answer_language()).dry_run_heading.to_owned();
        std::iter::once(heading).chain(lines).collect::<Vec<_>>().join("\n")
    }
}
