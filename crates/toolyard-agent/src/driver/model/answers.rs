//! Answers that need no model.

use std::sync::Arc;

use serde_json::Value;

use super::{
    super::run_driver::RunDriver,
    model_io::question,
    step_view::{StepView, cached_views},
};
use crate::{
    CoordinationAgent, Language, StepEnd, StepPhase, StepReport,
    prompt::templates::{RunTemplates, fill},
    verification::Evidence,
};

/// Bytes of results that are compared with an answer.
const MAX_EVIDENCE_BYTES: usize = 64 << 10;

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

    /// Values of an answer that are neither in a result nor in what the user wrote. None where nothing was returned, or where more
    /// was returned than is compared.
    pub(super) fn unfounded_values(&self, answer: &str) -> Vec<String> {
        let Some(request) = self.run.request().filter(|request| !request.dry_run) else { return Vec::new() };
        let mut evidence = Evidence::default();
        evidence.add(&request.question);
        request.history.iter().for_each(|message| evidence.add(&message.text));
        let (mut free_bytes, mut has_results) = (MAX_EVIDENCE_BYTES, false);
        for view in self.views() {
            evidence.add_value(&Value::Object(view.step.step.arguments.clone()));
            if !view.step.has_value() {
                evidence.add(&view.preview());
                continue;
            }
            // What a model thought out is no evidence for what a model says.
            if view.step.is_reasoning() || view.step.is_reasoned_out() {
                continue;
            }
            let value = view.value.as_deref().filter(|_| view.step.size() <= free_bytes);
            let Some(value) = value else { return Vec::new() };
            free_bytes -= view.step.size();
            has_results = true;
            evidence.add_value(value);
        }
        if has_results { evidence.missing_from(answer) } else { Vec::new() }
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
