//! Where the driver meets the pure parts: what models are asked, and what is made of their replies.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};
use toolyard_core::{Capability, RawJson, ResultForm};
use toolyard_model::{ModelReply, ModelRequest, ToolCalling};

use super::{aside::LARGE, session::Context, standing::Standing};
pub(super) use crate::Decision;
use crate::{
    AgentConfig, AgentParts, AgentTools, CoordinationAgent, Digest, ExecutionAgent, Language, ModelTask,
    Phase, Plan, PlanNotes, PlanProblem, PlanningAgent, Rates, ResultForAnswer, Run, Situation, Step,
    StepEnd, StepFacts, StepRun, Verification, VerificationAgent, VerifyInput, check_plan,
    planning::words::{Words, filled},
    preview,
    prompt::PromptTool,
    references, shape, tools_for_task,
    values::Values,
};

/// So much of a result is shown to whoever answers, in characters; it cuts further itself.
const SHOWN: usize = 2_000;

/// A step and its value, as far as it is at hand.
#[derive(Debug, Clone)]
pub(super) struct Known {
    step: StepRun,
    value: Option<Arc<Value>>,
    /// What is shown of a value that is not held, and its shape.
    seen: Option<(String, String)>,
}

impl Known {
    /// What is shown of its value, or why it has none.
    fn shown(&self) -> String {
        if let (true, None, Some((shown, _))) = (self.step.has_value(), &self.value, &self.seen) {
            return shown.clone();
        }
        match (&self.step.phase, &self.value) {
            (_, Some(value)) if self.step.has_value() => preview(value, SHOWN),
            (Phase::Ended(StepEnd::Done { preview, .. }), _) => preview.clone(),
            (Phase::Ended(StepEnd::Failed { message, .. } | StepEnd::Unknown { message }), _) => {
                message.clone()
            }
            (Phase::Ended(StepEnd::Skipped { because }), _) => format!("not begun, because {because} failed"),
            (Phase::Ended(StepEnd::Denied { by }), _) => format!("not allowed by {by}"),
            (Phase::Ended(StepEnd::Rehearsed), _) => {
                "not called, because nothing was to be changed".to_owned()
            }
            (Phase::Waiting | Phase::Started, _) => String::new(),
        }
    }

    fn result(&self) -> ResultForAnswer {
        let source = match &self.step.phase {
            Phase::Ended(StepEnd::Done { source: Some(source), .. }) => Some(source),
            _ => self.step.facts.source.as_ref(),
        };
        ResultForAnswer {
            step: self.step.step.id.clone(),
            description: self.step.step.description.clone(),
            tool: self.step.step.tool_type.clone(),
            source: source.map(ToString::to_string),
            shown: self.shown(),
            failed: !self.step.has_value(),
            verified: self.step.is_verified(),
            issues: self.step.verification.as_ref().map(|found| found.issues.clone()).unwrap_or_default(),
        }
    }
}

/// All steps, with the values that are held in memory.
pub(super) fn known_now(run: &Run, values: &Values) -> Vec<Known> {
    let known =
        |step: &StepRun| Known { step: step.clone(), value: values.known(&step.journal_name()), seen: None };
    run.steps().iter().map(known).collect()
}

/// All steps, with the values that a model is told of.
pub(super) async fn known(context: &Context<'_>, run: &Run, task: &ModelTask) -> Vec<Known> {
    let (log, id) = (&*context.parts.log, &context.lease.run);
    let mut all = known_now(run, &context.values);
    for known in all.iter_mut().filter(|known| known.value.is_none() && known.step.has_value()) {
        let whole = matches!(task, ModelTask::Reason { .. } | ModelTask::Repair { .. });
        if concerns(task, run, &known.step) && (whole || !is_large(&known.step)) {
            // What cannot be read is shown by its beginning, which the run knows.
            let value = context.values.look(log, id, &known.step.journal_name()).await.ok();
            if whole {
                known.value = value;
            } else {
                // One at a time: all of them together may be more than there is room for.
                known.seen = value.map(|value| (preview(&value, SHOWN), shape(&value)));
            }
        }
    }
    all
}

/// Values that are not read again only to show their beginning.
fn is_large(step: &StepRun) -> bool {
    step.size() > LARGE
}

/// Whether a task is about a step's value: all of them for plans and answers, else what a step refers to.
fn concerns(task: &ModelTask, run: &Run, other: &StepRun) -> bool {
    match task {
        ModelTask::Plan { .. } | ModelTask::Answer => true,
        ModelTask::Judge { step } => other.step.id == *step,
        ModelTask::Reason { step } | ModelTask::Repair { step } => {
            run.step(step).is_some_and(|step| needs(&step.step, &other.step.id))
        }
    }
}

fn needs(step: &Step, other: &str) -> bool {
    step.dependencies.iter().any(|id| id == other)
        || references(&step.arguments).iter().any(|reference| reference.step == other)
}

/// What a model is asked for a task.
pub(super) fn request(
    parts: &AgentParts,
    run: &Run,
    task: &ModelTask,
    known: &[Known],
    forms: &[ResultForm],
) -> ModelRequest {
    let mode = parts.model.tool_calling();
    let language = parts.config.language;
    let question = run.ask().map(|ask| ask.question.as_str()).unwrap_or_default();
    let step = |id: &str| run.step(id).map(|step| &step.step);
    let made = match task {
        ModelTask::Plan { .. } => Some(planning(parts).request(&situation(parts, run, known, forms))),
        ModelTask::Reason { step: id } => step(id).map(|step| {
            let values = known.iter().filter(|known| needs(step, &known.step.step.id));
            let values: Vec<(&str, &Value)> = values
                .filter_map(|known| Some((known.step.step.id.as_str(), known.value.as_deref()?)))
                .collect();
            ExecutionAgent::new(language).reason_request(step, question, &values)
        }),
        ModelTask::Repair { step: id } => run.step(id).and_then(|step| repair(parts, step, known)),
        ModelTask::Judge { step: id } => step(id).map(|step| {
            let shown = known.iter().find(|known| known.step.step.id == *id).map(Known::shown);
            let shown = shown.unwrap_or_default();
            VerificationAgent::new(language).judge_request(step, question, &shown, mode)
        }),
        ModelTask::Answer => {
            let results: Vec<ResultForAnswer> = known.iter().map(Known::result).collect();
            let history = run.ask().map(|ask| ask.history.as_slice()).unwrap_or_default();
            let agent = CoordinationAgent::new(parts.config.clone());
            Some(agent.request(question, history, &results, &*parts.counter))
        }
    };
    made.unwrap_or_default()
}

fn planning(parts: &AgentParts) -> PlanningAgent {
    PlanningAgent::new(parts.config.clone(), Arc::clone(&parts.counter))
}

/// Everything that a plan is asked for with.
fn situation(parts: &AgentParts, run: &Run, known: &[Known], forms: &[ResultForm]) -> Situation {
    let ask = run.ask().cloned().unwrap_or_default();
    let tools = tools_for_task(&parts.config, &parts.hub, &ask.question, Rates::new(), forms);
    let digest = |known: &Known| {
        let failed = !known.step.has_value();
        let shown = match (&known.value, &known.seen) {
            (Some(value), _) if !failed => shape(value),
            (None, Some((_, shape))) if !failed => shape.clone(),
            _ => known.shown(),
        };
        let step = known.step.step.clone();
        Digest { step: step.id, description: step.description, tool: step.tool_type, shown, failed }
    };
    Situation {
        history: ask.history,
        problems: run.problems().to_vec(),
        previous: run.refused().map(str::to_owned),
        done: known.iter().map(digest).collect(),
        ..Situation::new(ask.question, parts.model.tool_calling(), tools)
    }
}

/// What the planner decided. A plan is checked, and its steps depend on all that they refer to.
pub(super) fn read_plan(
    parts: &AgentParts,
    run: &Run,
    reply: &ModelReply,
) -> Result<(Decision, PlanNotes), Vec<PlanProblem>> {
    let known = known_now(run, &Values::default());
    let tools = AgentTools::new(&parts.config, &parts.hub);
    let read = planning(parts).read_with_notes(&situation(parts, run, &known, &[]), reply, &tools);
    let (decision, notes) = read.map_err(|problem| vec![problem])?;
    let mut plan = match decision {
        Decision::Plan(plan) => plan,
        Decision::Answer(answer) if answer.trim().is_empty() => {
            return Err(vec![PlanProblem::Unreadable { reason: "nothing was said".to_owned() }]);
        }
        answer @ Decision::Answer(_) => return Ok((answer, notes)),
    };
    let mut caps = run.ask().map(|ask| ask.caps.clone()).unwrap_or_default();
    caps.steps = caps.steps.saturating_sub(run.spent().steps);
    let done: Vec<&str> =
        run.steps().iter().filter(|step| step.has_value()).map(|step| step.step.id.as_str()).collect();
    let problems = check_plan(&plan, &tools, &caps, &done);
    if !problems.is_empty() {
        return Err(problems);
    }
    let exists: Vec<String> =
        plan.steps.iter().map(|step| step.id.clone()).chain(done.iter().map(|&id| id.to_owned())).collect();
    for step in &mut plan.steps {
        for reference in references(&step.arguments) {
            if exists.contains(&reference.step) && !step.dependencies.contains(&reference.step) {
                step.dependencies.push(reference.step);
            }
        }
    }
    Ok((Decision::Plan(plan), notes))
}

/// What is known of the steps of a plan: their tools, and what was mended in them.
pub(super) fn facts(parts: &AgentParts, plan: &Plan, mut notes: PlanNotes) -> BTreeMap<String, StepFacts> {
    let facts = |step: &Step| {
        let facts = Standing::of(parts, &step.tool_type).facts();
        (step.id.clone(), StepFacts { notes: notes.remove(&step.id).unwrap_or_default(), ..facts })
    };
    plan.steps.iter().map(facts).collect()
}

fn repair(parts: &AgentParts, step: &StepRun, known: &[Known]) -> Option<ModelRequest> {
    let snapshot = parts.hub.snapshot();
    let tool = PromptTool::of(snapshot.find(&step.step.tool_type)?.used.first()?);
    let problem = match (&step.phase, &step.verification) {
        (Phase::Ended(StepEnd::Failed { message, .. }), _) => message.clone(),
        (_, Some(found)) => found.issues.join("; "),
        _ => String::new(),
    };
    let shapes: Vec<(String, String)> = known
        .iter()
        .filter(|known| needs(&step.step, &known.step.step.id))
        .filter_map(|known| Some((known.step.step.id.clone(), shape(known.value.as_deref()?))))
        .collect();
    let shapes: Vec<(&str, &str)> = shapes.iter().map(|(id, shape)| (id.as_str(), shape.as_str())).collect();
    let agent = ExecutionAgent::new(parts.config.language);
    Some(agent.repair_request(&step.step, &problem, &shapes, &tool, parts.model.tool_calling()))
}

/// Better arguments, if the model gave some.
pub(super) fn read_repair(reply: &ModelReply) -> Result<Map<String, Value>, String> {
    let read = ExecutionAgent::default().read_repair(reply);
    read.ok_or_else(|| "the model gave no arguments that can be read".to_owned())
}

/// The model's opinion; without one, what was found by rule.
pub(super) fn read_judgement(reply: &ModelReply, before: Verification) -> Verification {
    let judged = VerificationAgent::default().read_judgement(reply);
    judged.map_or(before, |judged| Verification { said_error: false, ..judged })
}

/// Arguments for a step that nobody gave any.
pub(super) fn prepare_tool_input(step: &Step, schema: Option<&RawJson>) -> Option<Map<String, Value>> {
    crate::prepare_tool_input(step, schema?)
}

/// What a step's tool is good for, if it is not there.
pub(super) fn infer_capability(step: &Step) -> Option<Capability> {
    ExecutionAgent::default().infer_capability(step)
}

/// Looks at a result by rule.
pub(super) fn verify(
    step: &Step,
    value: &Value,
    text: &str,
    output_schema: Option<&RawJson>,
    earlier: &[(String, String)],
) -> Verification {
    let earlier: Vec<(&str, &str)> =
        earlier.iter().map(|(step, text)| (step.as_str(), text.as_str())).collect();
    let input = VerifyInput { step, value, text, output_schema, is_error: false, earlier: &earlier };
    VerificationAgent::default().verify(&input)
}

fn results(known: &[Known]) -> Vec<ResultForAnswer> {
    known.iter().map(Known::result).collect()
}

/// Who answers, in the language of the question.
fn answering(parts: &AgentParts, run: &Run) -> CoordinationAgent {
    CoordinationAgent::new(AgentConfig { language: language(parts, run), ..parts.config.clone() })
}

fn language(parts: &AgentParts, run: &Run) -> Language {
    let question = run.ask().map(|ask| ask.question.as_str()).unwrap_or_default();
    parts.config.language.of_question(question)
}

/// The answer without a model.
pub(super) fn fallback(parts: &AgentParts, run: &Run, known: &[Known]) -> Option<String> {
    answering(parts, run).fallback(&results(known))
}

/// The answer that only shows what a step gave, for models that would only talk about it.
pub(super) fn direct(parts: &AgentParts, run: &Run, known: &[Known]) -> Option<String> {
    let (ToolCalling::Schema, [only]) = (parts.model.tool_calling(), known) else { return None };
    let question = run.ask().map(|ask| ask.question.as_str()).unwrap_or_default();
    CoordinationAgent::new(parts.config.clone()).direct(question, &results(known), only.value.as_deref())
}

/// What stands at the end of an answer that the model could not end.
pub(super) fn cut_off(parts: &AgentParts, run: &Run) -> &'static str {
    answering(parts, run).cut_off()
}

/// Who an answer rests on.
pub(super) fn sources(parts: &AgentParts, known: &[Known]) -> Vec<String> {
    CoordinationAgent::new(parts.config.clone()).sources(&results(known))
}

/// Why there is no answer, and what to do about it.
pub(super) fn failure(parts: &AgentParts, run: &Run, known: &[Known]) -> (String, Option<String>) {
    let hint = known.iter().find_map(|known| match &known.step.phase {
        Phase::Ended(StepEnd::Failed { hint, .. }) => hint.clone(),
        _ => None,
    });
    if known.is_empty() {
        let problems: Vec<String> = run.problems().iter().map(ToString::to_string).collect();
        let words = Words::of(language(parts, run));
        let message = filled(words.no_plan, &[("problems", &problems.join("; "))]);
        return (message, Some(words.no_plan_hint.to_owned()));
    }
    (answering(parts, run).failure(&results(known)), hint)
}

/// What would be called, in a run that may change nothing.
pub(super) fn rehearsal(parts: &AgentParts, run: &Run, known: &[Known]) -> String {
    let would = known.iter().filter(|known| matches!(known.step.phase, Phase::Ended(StepEnd::Rehearsed)));
    let lines = would.map(|known| format!("- {}: {}", known.step.step.id, known.step.step.tool_type));
    let heading = Words::of(language(parts, run)).rehearsed.to_owned();
    let lines: Vec<String> = std::iter::once(heading).chain(lines).collect();
    lines.join("\n")
}
