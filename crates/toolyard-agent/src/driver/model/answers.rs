//! Answers that need no model.

use std::sync::Arc;

use toolyard_model::ToolCalling;

use super::{model_io::question, step_view::StepView};
use crate::{
    AgentParts, CoordinationAgent, Language, Run, StepEnd, StepPhase, StepReport,
    prompt::templates::{RunTemplates, fill},
};

fn reports(views: &[StepView]) -> Vec<StepReport> {
    views.iter().map(StepView::report).collect()
}

fn answer_language(parts: &AgentParts, run: &Run) -> Language {
    parts.config.language.for_question(question(run))
}

fn coordination_agent(parts: &AgentParts, run: &Run) -> CoordinationAgent {
    CoordinationAgent::new(Arc::clone(&parts.config)).with_language(answer_language(parts, run))
}

/// The best result so far.
pub(super) fn fallback_answer(parts: &AgentParts, run: &Run, views: &[StepView]) -> Option<String> {
    coordination_agent(parts, run).fallback_answer(&reports(views))
}

/// The table a single step returned, for small models that would only talk about it.
pub(super) fn direct_answer(parts: &AgentParts, run: &Run, views: &[StepView]) -> Option<String> {
    let (ToolCalling::Schema, [only]) = (parts.model.tool_calling(), views) else { return None };
    coordination_agent(parts, run).direct_answer(question(run), &reports(views), only.value.as_deref())
}

/// Notice at the end of an answer that reached the model's output limit.
pub(super) fn truncation_notice(parts: &AgentParts, run: &Run) -> &'static str {
    coordination_agent(parts, run).truncation_notice()
}

/// The tools and sources an answer is based on.
pub(super) fn sources(parts: &AgentParts, run: &Run, views: &[StepView]) -> Vec<String> {
    coordination_agent(parts, run).sources(&reports(views))
}

/// Why there is no answer, and what to do about it.
pub(super) fn failure(parts: &AgentParts, run: &Run, views: &[StepView]) -> (String, Option<String>) {
    let hint = views.iter().find_map(|view| match &view.step.phase {
        StepPhase::Ended(StepEnd::Failed { hint, .. }) => hint.clone(),
        _ => None,
    });
    if views.is_empty() {
        let problems: Vec<String> = run.problems().iter().map(ToString::to_string).collect();
        let templates = RunTemplates::of(answer_language(parts, run));
        let message = fill(templates.no_plan, &[("problems", &problems.join("; "))]);
        return (message, Some(templates.no_plan_hint.to_owned()));
    }
    (coordination_agent(parts, run).failure_answer(&reports(views)), hint)
}

/// The calls that a dry run did not make.
pub(super) fn dry_run_answer(parts: &AgentParts, run: &Run, views: &[StepView]) -> String {
    let simulated =
        views.iter().filter(|view| matches!(view.step.phase, StepPhase::Ended(StepEnd::Simulated)));
    let lines = simulated.map(|view| format!("- {}: {}", view.step.step.id, view.step.step.tool_type));
    let heading = RunTemplates::of(answer_language(parts, run)).rehearsed.to_owned();
    let lines: Vec<String> = std::iter::once(heading).chain(lines).collect();
    lines.join("\n")
}
