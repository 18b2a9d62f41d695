//! Builds the requests to models, and reads their replies.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use toolyard_core::{CallerIdentity, DataOwner, ErrorKind};
use toolyard_model::{ModelReply, ModelRequest};

use super::{
    super::steps::{prepare::REDACTED_PREFIX, resolved_tool::ResolvedTool},
    step_view::{StepView, cached_views, depends_on},
};
use crate::{
    AgentParts, AgentTools, CoordinationAgent, ExecutionAgent, ModelTask, Plan, PlanProblem, PlannedTool,
    PlannerDecision, PlanningAgent, PlanningContext, RepairNotes, Run, RunEnd, Step, StepEnd, StepPhase,
    StepReport, StepRun, StepSummary, Verification, VerificationAgent,
    agent::{READ_RESULT, SEARCH_TOOLS},
    check_plan,
    coordination::receipt_lines,
    discovery::{PlanningTask, ToolExperience, tools_for_task},
    planning::{reply::plan_text::clean_answer, tool_search::MAX_TOOL_SEARCHES},
    prompt::PromptTool,
    reference::references,
    tool_access::ToolAccess,
    values::{StepValues, outline, reasoned_text, reasoned_value},
};

/// The issue of a result whose judgement has no opinion that can be read.
const NOT_JUDGED: &str = "not judged: the reply of the model cannot be read";

pub(super) fn build_request(
    parts: &AgentParts,
    run: &Run,
    task: &ModelTask,
    views: &[StepView],
    experience: &ToolExperience,
) -> ModelRequest {
    let mode = parts.model.tool_calling();
    let language = parts.config.language;
    let question = question(run);
    let step = |id: &str| run.step(id).map(|step| &step.step);
    let request = match task {
        ModelTask::Plan { .. } => {
            Some(planning_agent(parts).plan_request(&planning_context(parts, run, views, experience)))
        }
        ModelTask::Reason { step: id } => step(id).map(|step| {
            let needed = views.iter().filter(|view| depends_on(step, &view.step.step.id));
            let values: Vec<(&str, &Value)> = needed
                .filter_map(|view| Some((view.step.step.id.as_str(), view.value.as_deref()?)))
                .collect();
            ExecutionAgent::new(language).reason_request(step, question, &values, mode)
        }),
        ModelTask::Repair { step: id } => run.step(id).and_then(|step| repair_request(parts, step, views)),
        ModelTask::Judge { step: id } => step(id).map(|step| {
            let view = views.iter().find(|view| view.step.step.id == *id);
            let preview = view.map(StepView::preview).unwrap_or_default();
            VerificationAgent::new(language).judge_request(step, question, &preview, mode)
        }),
        ModelTask::Review => run.answered().and_then(RunEnd::answer).map(|answer| {
            let language = language.for_question(question);
            let receipt = receipt_lines(&run.effects(), language);
            VerificationAgent::new(language).review_request(question, &receipt, answer, mode)
        }),
        ModelTask::Answer => {
            let reports: Vec<StepReport> = views.iter().map(StepView::answer_report).collect();
            let history = run.request().map(|request| request.history.as_slice()).unwrap_or_default();
            let agent = CoordinationAgent::new(Arc::clone(&parts.config));
            let mut request = agent.answer_request(question, history, &reports, &*parts.counter);
            let hundredths = run.request().and_then(|request| request.temperature_hundredths);
            request.temperature = hundredths.map(|value| f32::from(value) / 100.0).or(request.temperature);
            Some(request)
        }
    };
    request.unwrap_or_default()
}

pub(super) fn question(run: &Run) -> &str {
    run.request().map(|request| request.question.as_str()).unwrap_or_default()
}

/// Whose data the run reads and leaves behind.
pub(in crate::driver) fn data_owner(run: &Run) -> DataOwner {
    DataOwner::of(run.request().and_then(|request| request.identity.as_deref()))
}

/// What the planner of the run is offered.
fn tool_access(parts: &AgentParts, run: &Run) -> ToolAccess {
    ToolAccess::new(&parts.hub, run.request().and_then(|request| request.identity.clone()))
}

fn planning_agent(parts: &AgentParts) -> PlanningAgent {
    PlanningAgent::new(Arc::clone(&parts.config), Arc::clone(&parts.counter))
}

fn planning_context(
    parts: &AgentParts,
    run: &Run,
    views: &[StepView],
    experience: &ToolExperience,
) -> PlanningContext {
    let request = run.request().cloned().unwrap_or_default();
    let task = PlanningTask { question: &request.question, searches: run.tool_searches() };
    let mut tools = tools_for_task(&parts.config, &parts.hub, &tool_access(parts, run), task, experience);
    let has_own_search = AgentTools::new(&parts.config, &parts.hub).find(SEARCH_TOOLS).is_some();
    if views.is_empty() {
        // There is no result yet whose rest could be read.
        tools.relevant.retain(|tool| tool.name() != READ_RESULT);
    }
    let summary = |view: &StepView| {
        let step = view.step.step.clone();
        StepSummary {
            step: step.id,
            tool: step.tool_type,
            summary: view.summary(),
            lacks_value: !view.step.has_value(),
        }
    };
    PlanningContext {
        can_search: run.tool_searches().len() < MAX_TOOL_SEARCHES && !has_own_search,
        history: request.history,
        problems: run.problems().to_vec(),
        rejected_reply: run.rejected_reply().map(str::to_owned),
        finished: views.iter().map(summary).collect(),
        ..PlanningContext::new(request.question, parts.model.tool_calling(), tools)
    }
}

/// Steps that repeat a call which failed by itself, rather than by an outage.
fn repeated_failures(plan: &Plan, run: &Run) -> Vec<PlanProblem> {
    let has_failed = |step: &&StepRun| match &step.phase {
        StepPhase::Ended(StepEnd::Failed { kind, .. }) => {
            matches!(kind, Some(ErrorKind::Failed | ErrorKind::InvalidArguments))
        }
        // An error that the tool returned as its result.
        StepPhase::Ended(StepEnd::Done { .. }) => !step.has_value(),
        _ => false,
    };
    let is_repeated = |step: &&Step| {
        let is_same = |other: &Step| other.tool_type == step.tool_type && other.arguments == step.arguments;
        run.steps().iter().filter(has_failed).any(|other| is_same(&other.step))
    };
    let problem =
        |step: &Step| PlanProblem::RepeatsFailure { step: step.id.clone(), tool: step.tool_type.clone() };
    plan.steps.iter().filter(is_repeated).map(problem).collect()
}

fn repair_request(parts: &AgentParts, step: &StepRun, views: &[StepView]) -> Option<ModelRequest> {
    let tool = AgentTools::new(&parts.config, &parts.hub).find(&step.step.tool_type)?;
    let tool = PromptTool::from_candidate(&tool).called(&step.step.tool_type, None);
    let problem = match (&step.phase, &step.verification) {
        (StepPhase::Ended(StepEnd::Failed { message, .. }), _) => message.clone(),
        (_, Some(found)) => found.issues.join("; "),
        _ => String::new(),
    };
    let outlines: Vec<(String, String)> = views
        .iter()
        .filter(|view| depends_on(&step.step, &view.step.step.id))
        .filter_map(|view| Some((view.step.step.id.clone(), outline(view.value.as_deref()?))))
        .collect();
    let outlines: Vec<(&str, &str)> =
        outlines.iter().map(|(id, outline)| (id.as_str(), outline.as_str())).collect();
    let agent = ExecutionAgent::new(parts.config.language);
    Some(agent.repair_request(&step.step, &problem, &outlines, &tool, parts.model.tool_calling()))
}

/// Reads a planner's reply. A plan is checked, and gets a dependency for every step its arguments refer to.
pub(super) fn read_plan(
    parts: &AgentParts,
    run: &Run,
    reply: &ModelReply,
) -> Result<(PlannerDecision, RepairNotes), Vec<PlanProblem>> {
    let views = cached_views(run, &StepValues::default());
    let tools = AgentTools::new(&parts.config, &parts.hub).suggested_for(tool_access(parts, run));
    let context = planning_context(parts, run, &views, &ToolExperience::default());
    let parsed = planning_agent(parts).parse_reply(&context, reply, &tools);
    let (decision, notes) = parsed.map_err(|problem| vec![problem])?;
    let mut plan = match decision {
        PlannerDecision::Plan(plan) => plan,
        PlannerDecision::Answer(answer) if answer.trim().is_empty() => {
            return Err(vec![PlanProblem::Unreadable { reason: "nothing was said".to_owned() }]);
        }
        other @ (PlannerDecision::Answer(_) | PlannerDecision::Search(_)) => return Ok((other, notes)),
    };
    let mut limits = run.request().map(|request| request.limits.clone()).unwrap_or_default();
    limits.steps = limits.steps.saturating_sub(run.usage().steps);
    let finished: Vec<&str> =
        run.steps().iter().filter(|step| step.has_value()).map(|step| step.step.id.as_str()).collect();
    let mut problems = check_plan(&plan, &tools, &limits, &finished);
    problems.extend(repeated_failures(&plan, run));
    if !problems.is_empty() {
        return Err(problems);
    }
    let known_steps: Vec<String> = plan
        .steps
        .iter()
        .map(|step| step.id.clone())
        .chain(finished.iter().map(|&id| id.to_owned()))
        .collect();
    for step in &mut plan.steps {
        for reference in references(&step.arguments) {
            if known_steps.contains(&reference.step) && !step.dependencies.contains(&reference.step) {
                step.dependencies.push(reference.step);
            }
        }
    }
    Ok((PlannerDecision::Plan(plan), notes))
}

/// The tools of a plan's steps, by step id.
pub(super) fn planned_tools(
    parts: &AgentParts,
    plan: &Plan,
    mut notes: RepairNotes,
    identity: Option<&Arc<CallerIdentity>>,
) -> BTreeMap<String, PlannedTool> {
    let planned_tool = |step: &Step| {
        let notes = notes.remove(&step.id).unwrap_or_default();
        let tool = ResolvedTool::resolve(parts, &step.tool_type);
        let tool = tool.decided_before_arguments(parts, &step.tool_type, identity);
        (step.id.clone(), tool.into_planned_tool(notes))
    };
    plan.steps.iter().map(planned_tool).collect()
}

/// The model's verdict; without one, the verdict by rule, with a note that it is that.
pub(super) fn read_judgement(reply: &ModelReply, mut by_rule: Verification) -> Verification {
    let by_model = VerificationAgent::default().parse_judgement(reply);
    by_rule.issues.push(NOT_JUDGED.to_owned());
    by_model.map_or(by_rule, |verdict| Verification { reported_error: false, ..verdict })
}

pub(super) fn reasoning_text(run: &Run, step: &StepRun) -> Option<String> {
    let task = ModelTask::Reason { step: step.step.id.clone() };
    run.reply(&task).map(|reply| reasoned_text(&clean_answer(&reply.text)))
}

/// The values of reasoning steps, which are in the run itself.
pub(in crate::driver) fn reasoned_values(run: &Run) -> StepValues {
    let values = StepValues::default();
    for step in run.steps().iter().filter(|step| step.has_value()) {
        let text = reasoning_text(run, step);
        if let Some(text) = text.filter(|text| !text.contains(REDACTED_PREFIX)) {
            values.put(step.journal_name(), reasoned_value(&text));
        }
    }
    values
}
