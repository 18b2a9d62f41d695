//! Turns model replies into events.

use serde_json::{Map, Value};
use toolyard_core::params;
use toolyard_model::{FinishReason, ModelErrorKind, ModelReply};

use super::{
    super::{run_driver::RunDriver, steps},
    answer_stream::unstreamed,
    model_io::{planned_tools, read_judgement, read_plan, reasoning_text},
};
use crate::{
    AgentError, AgentParts, AgentTools, ExecutionAgent, ModelTask, PlanProblem, PlannerDecision, Review,
    ReviewRule, RunEnd, RunEvent, RunLimit, RunUpdate, StepEnd, StepPhase, StepRun, Task, ToolCatalog as _,
    VerificationAgent,
    planning::{
        argument_changes::argument_changes,
        paths::{add_settled_arguments, wants_absolute_paths, with_absolute_paths},
        reply::plan_text::clean_answer,
    },
    values::reasoned_value,
};

impl RunDriver<'_> {
    /// Processes the reply to a task, if there is one. Returns whether the run changed.
    pub(in crate::driver) fn read_plan_reply(&mut self, task: &Task) -> Result<bool, AgentError> {
        let Some(reply) = task.model_task().and_then(|task| self.run.reply(&task)) else { return Ok(false) };
        match read_plan(self.context.parts, &self.run, reply) {
            Ok((PlannerDecision::Answer(answer), _)) => {
                let truncated = is_truncated(reply);
                self.end_with_model_answer(answer, truncated)?;
            }
            Ok((PlannerDecision::Search(words), _)) => {
                self.discard_streamed();
                self.record(RunEvent::ToolsSearched { words })?;
            }
            Ok((PlannerDecision::Plan(plan), notes)) => {
                self.discard_streamed();
                let identity = self.run.request().and_then(|request| request.identity.clone());
                let tools = planned_tools(self.context.parts, &plan, notes, identity.as_ref());
                self.record(RunEvent::Planned { plan, tools })?;
            }
            Err(problems) => {
                self.discard_streamed();
                self.record(RunEvent::PlanRejected { problems })?;
            }
        }
        Ok(true)
    }

    /// Ends a reasoning step whose model request has ended.
    pub(in crate::driver) fn read_reasoning_reply(&mut self, id: &str) -> Result<bool, AgentError> {
        let Some(step) = self.run.step(id).cloned() else { return Ok(false) };
        if step.phase != StepPhase::Started || self.in_flight.calls.contains_key(id) {
            return Ok(false);
        }
        let task = ModelTask::Reason { step: id.to_owned() };
        if let Some((message, hint)) = self.run.model_failure(&task) {
            let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
            self.end_step(id, StepEnd::Failed { message, hint, kind: None })?;
            return Ok(true);
        }
        let Some(text) = reasoning_text(&self.run, &step) else { return Ok(false) };
        let has_text = self.run.reply(&task).is_some_and(|reply| !reply.text.trim().is_empty());
        if has_text && text.is_empty() {
            let message = "the model called a tool instead of reasoning".to_owned();
            self.end_step(id, StepEnd::Failed { message, hint: None, kind: None })?;
            return Ok(true);
        }
        let value = self.context.values.put(step.journal_name(), reasoned_value(&text));
        let verification = steps::call::verify_by_rule(&step, &value, &text, None, &[]);
        let (preview, size) = (steps::preview(&text), text.chars().count());
        self.end_step(id, StepEnd::Done { source: None, preview, size, reasoned: !step.is_reasoning() })?;
        self.record(RunEvent::Verified { step: id.to_owned(), verification })?;
        Ok(true)
    }

    pub(in crate::driver) fn read_repair_reply(&mut self, id: &str) -> Result<bool, AgentError> {
        if let Some(arguments) = self.run.step(id).and_then(|step| repair_paths(self.context.parts, step)) {
            return self.repair_step(id, arguments).map(|()| true);
        }
        let task = ModelTask::Repair { step: id.to_owned() };
        let (Some(step), Some(reply)) = (self.run.step(id), self.run.reply(&task)) else { return Ok(false) };
        let repair_failed =
            |reason: &str| RunEvent::RepairFailed { step: id.to_owned(), reason: reason.to_owned() };
        let repaired = ExecutionAgent::default().parse_repair(reply);
        match repaired.map(|arguments| with_settled(self.context.parts, step, arguments)) {
            Some(arguments) if arguments == step.step.arguments => {
                self.record(repair_failed("the model repeated the same arguments"))?;
            }
            Some(arguments) => self.repair_step(id, arguments)?,
            None => self.record(repair_failed("the model returned no readable arguments"))?,
        }
        Ok(true)
    }

    fn repair_step(&mut self, id: &str, arguments: Map<String, Value>) -> Result<(), AgentError> {
        let before = self.run.step(id).map(|step| step.step.arguments.clone()).unwrap_or_default();
        let notes = argument_changes(&before, &arguments);
        self.record(RunEvent::StepRepaired { step: id.to_owned(), arguments, notes })
    }

    pub(in crate::driver) fn read_judgement_reply(&mut self, id: &str) -> Result<bool, AgentError> {
        let task = ModelTask::Judge { step: id.to_owned() };
        let (Some(step), Some(reply)) = (self.run.step(id), self.run.reply(&task)) else { return Ok(false) };
        let by_rule = step.verification.clone().unwrap_or_default();
        let verification = read_judgement(reply, by_rule);
        self.record(RunEvent::Verified { step: id.to_owned(), verification }).map(|()| true)
    }

    /// Ends the run once its answer is known, from a model or without one.
    pub(in crate::driver) fn read_answer_reply(&mut self) -> Result<bool, AgentError> {
        let reply = self.run.reply(&ModelTask::Answer);
        let reply = reply.map(|reply| (clean_answer(&reply.text), is_truncated(reply)));
        match reply {
            Some((answer, truncated)) if !answer.is_empty() => {
                self.end_with_model_answer(answer, truncated)?;
            }
            // Of runs without any value, only dry runs get here; others end with `Task::Fail`.
            None if !self.run.steps().iter().any(StepRun::has_value) => {
                self.end_with_answer(self.dry_run_answer(), false)?;
            }
            None if self.run.model_failure(&ModelTask::Answer).is_none() => return Ok(false),
            _ => match self.fallback_answer() {
                Some(answer) => self.end_with_answer(answer, false)?,
                None => self.fail()?,
            },
        }
        Ok(true)
    }

    fn end_with_model_answer(&mut self, answer: String, truncated: bool) -> Result<(), AgentError> {
        let unfounded = self.unfounded_values(&answer);
        let answer = self.coordination_agent().answer_with_notes(answer, &unfounded, &self.reports());
        self.end_with_answer(answer, truncated)
    }

    /// Streams the part of the answer that was not streamed yet, and ends the run, after a review if there shall be one.
    /// Whether the run is a success is decided by its steps alone.
    fn end_with_answer(&mut self, mut answer: String, truncated: bool) -> Result<(), AgentError> {
        if unstreamed(&answer, &self.streamed).is_none() {
            self.discard_streamed();
        }
        let mut rest = unstreamed(&answer, &self.streamed).unwrap_or_default().to_owned();
        if truncated {
            let notice = format!("\n\n{}", self.coordination_agent().truncation_notice());
            rest.push_str(&notice);
            answer.push_str(&notice);
        }
        if !rest.is_empty() {
            self.context.watcher.on_update(&RunUpdate::AnswerDelta { text: rest, tentative: false });
        }
        let sources = self.coordination_agent().sources(&self.reports());
        let unfinished_steps = self.run.unfinished_steps();
        let end = match unfinished_steps.as_slice() {
            [] => RunEnd::Answered { answer, sources, truncated },
            _ => RunEnd::Partial { answer, sources, unfinished_steps },
        };
        if self.wants_review() { self.record(RunEvent::Answered { end }) } else { self.end(end) }
    }

    fn wants_review(&self) -> bool {
        let Some(request) = self.run.request().filter(|request| !request.dry_run) else { return false };
        match request.review {
            ReviewRule::Auto => !self.run.effects().is_empty(),
            ReviewRule::Always => true,
            ReviewRule::Never => false,
        }
    }

    /// Ends the run once a model has said what it thinks of the answer, or failed to.
    pub(in crate::driver) fn end_after_review(&mut self) -> Result<bool, AgentError> {
        let is_reviewed = self.run.reply(&ModelTask::Review).is_some()
            || self.run.model_failure(&ModelTask::Review).is_some();
        match self.run.answered().cloned() {
            Some(end) if is_reviewed => self.end(end).map(|()| true),
            _ => Ok(false),
        }
    }

    pub(in crate::driver) fn review_of_answer(&self) -> Option<Review> {
        VerificationAgent::default().parse_review(self.run.reply(&ModelTask::Review)?)
    }

    /// Tells the watcher that what was streamed is not the answer.
    pub(in crate::driver) fn discard_streamed(&mut self) {
        if !self.streamed.is_empty() {
            self.streamed.clear();
            self.context.watcher.on_update(&RunUpdate::AnswerDiscarded);
        }
    }

    /// Ends a run without an answer: at the limit of steps, or with the failure of planning or of the steps.
    pub(in crate::driver) fn fail(&mut self) -> Result<(), AgentError> {
        let is_too_long =
            self.run.problems().iter().any(|problem| matches!(problem, PlanProblem::TooLong { .. }));
        if is_too_long && self.run.steps().is_empty() {
            let end = self.limit_reached(RunLimit::Steps);
            return self.end(end);
        }
        let round = self.run.round();
        // The failure of the repair request is newer than that of the first request.
        let planning_failure = [true, false].into_iter().find_map(|repair| {
            let task = ModelTask::Plan { round, repair };
            let (message, hint) = self.run.model_failure(&task)?;
            Some((message.to_owned(), hint.map(str::to_owned), self.run.model_failure_kind(&task)))
        });
        let (message, hint, model_error) = planning_failure.unwrap_or_else(|| {
            let (message, hint) = self.failure_and_hint();
            (message, hint, self.reasoning_failure())
        });
        self.end(RunEnd::Failed { message, hint, model_error })
    }

    /// Why a model did not reply to a step, if the run has only steps that a model reasons out.
    fn reasoning_failure(&self) -> Option<ModelErrorKind> {
        let steps = self.run.steps();
        let failure =
            |step: &StepRun| self.run.model_failure_kind(&ModelTask::Reason { step: step.step.id.clone() });
        steps.iter().all(StepRun::is_reasoning).then(|| steps.iter().find_map(failure)).flatten()
    }
}

/// The arguments of a call whose server refused relative paths, with paths from its only folder, or else from its working
/// folder. No model is needed.
fn repair_paths(parts: &AgentParts, step: &StepRun) -> Option<Map<String, Value>> {
    let StepPhase::Ended(StepEnd::Failed { message, .. }) = &step.phase else { return None };
    let places = AgentTools::new(&parts.config, &parts.hub).places(&step.step.tool_type);
    let folder = places.only_folder().or(places.working_folder.as_deref())?;
    let is_refusal = wants_absolute_paths(message, &step.step.arguments);
    if is_refusal { with_absolute_paths(&step.step.arguments, folder) } else { None }
}

/// Repaired arguments with what the settings decide, which the model was not asked for.
fn with_settled(parts: &AgentParts, step: &StepRun, mut arguments: Map<String, Value>) -> Map<String, Value> {
    let tools = AgentTools::new(&parts.config, &parts.hub);
    if let Some(schema) = tools.input_schema(&step.step.tool_type) {
        add_settled_arguments(
            &mut arguments,
            &params(&schema.to_value()),
            &tools.places(&step.step.tool_type),
        );
    }
    arguments
}

fn is_truncated(reply: &ModelReply) -> bool {
    reply.finish_reason == FinishReason::Length
}
