//! Reads the reply of a planner: a plan or an answer, as native calls, constrained JSON or plain text.

pub(crate) mod plan_json;
pub(crate) mod plan_text;

use toolyard_model::{
    FinishReason, ModelReply, ModelToolCall, ToolCalling,
    json_text::{JsonTextError, parse_document, without_fence},
};

use self::{
    plan_json::{BrokenText, parse_decision},
    plan_text::{INVALID_REASON, TRUNCATED_REASON},
};
use super::{
    agent::{MAKE_PLAN_TOOL, PlanningAgent},
    context::{PlannerDecision, PlanningContext},
    normalize::{RepairNotes, normalize, restore_formulas},
    plan::{Plan, PlanProblem, Step},
    plan_check::ToolCatalog,
    tool_search::search_words,
};

impl PlanningAgent {
    /// Parses the reply and normalizes the plan; returns it with notes about repairs. The plan is not checked yet.
    pub fn parse_reply(
        &self,
        context: &PlanningContext,
        reply: &ModelReply,
        tools: &dyn ToolCatalog,
    ) -> Result<(PlannerDecision, RepairNotes), PlanProblem> {
        let decision = if reply.calls.is_empty() {
            parse_text_reply(context.mode, reply, tools)?
        } else {
            PlannerDecision::Plan(self.parse_calls(context, reply, tools)?)
        };
        let mut notes = RepairNotes::new();
        if let PlannerDecision::Plan(plan) = &decision
            && let Some(words) = search_words(plan).filter(|_| context.can_search)
        {
            return Ok((PlannerDecision::Search(words), notes));
        }
        let decision = match decision {
            search @ PlannerDecision::Search(_) => search,
            PlannerDecision::Answer(answer) => PlannerDecision::Answer(plan_text::clean_answer(&answer)),
            PlannerDecision::Plan(plan) => {
                let finished = context.finished_ids();
                let plan = normalize(plan, tools, &finished, &mut notes);
                PlannerDecision::Plan(match context.mode {
                    // Small models use this mode.
                    ToolCalling::Schema => restore_formulas(plan, &context.question, &mut notes),
                    ToolCalling::Native | ToolCalling::Text => plan,
                })
            }
        };
        Ok((decision, notes))
    }

    /// A plan passed to `make_plan`, or independent calls.
    fn parse_calls(
        &self,
        context: &PlanningContext,
        reply: &ModelReply,
        tools: &dyn ToolCatalog,
    ) -> Result<Plan, PlanProblem> {
        let is_json = |call: &&ModelToolCall| call.arguments.trim_start().starts_with(['{', '[']);
        let mut arguments = reply.calls.iter().filter(is_json).map(|call| parse_document(&call.arguments));
        let mistake = arguments.find_map(Result::err);
        if matches!(reply.finish_reason, FinishReason::Length | FinishReason::Refused)
            || mistake == Some(JsonTextError::Incomplete)
        {
            return Err(PlanProblem::unreadable(TRUNCATED_REASON));
        }
        if mistake.is_some() {
            return Err(PlanProblem::unreadable(INVALID_REASON));
        }
        if let Some(call) = reply.calls.iter().find(|call| call.name == MAKE_PLAN_TOOL) {
            let parsed = parse_document(&call.arguments).ok();
            return match parsed.and_then(|parsed| parse_decision(&parsed)) {
                Some(PlannerDecision::Plan(plan)) => Ok(plan),
                _ => Err(PlanProblem::unreadable("`make_plan` was called without steps that can be read")),
            };
        }
        let is_known = |name: &str| tools.input_schema(name).is_some();
        let all_known = reply.calls.iter().all(|call| is_known(&call.name));
        // Aliases are only needed for names that providers do not accept.
        let aliases = if all_known { None } else { self.native_prompt(context).map(|prompt| prompt.aliases) };
        let resolve_alias = |name: &str| match aliases.as_ref().and_then(|aliases| aliases.get(name)) {
            Some(real) if !is_known(name) => real.clone(),
            _ => name.to_owned(),
        };
        let steps = reply
            .calls
            .iter()
            .map(|call| plan_text::step_from_json(&call.id, &resolve_alias(&call.name), &call.arguments));
        let steps: Result<Vec<Step>, BrokenText> = steps.collect();
        steps.map(|steps| Plan { steps }).map_err(|BrokenText| PlanProblem::unreadable(INVALID_REASON))
    }
}

fn parse_text_reply(
    mode: ToolCalling,
    reply: &ModelReply,
    tools: &dyn ToolCatalog,
) -> Result<PlannerDecision, PlanProblem> {
    let is_truncated = reply.finish_reason == FinishReason::Length;
    let json = without_fence(plan_text::strip_reasoning(&reply.text));
    let is_list = json.strip_prefix('[').is_some_and(|items| items.trim_start().starts_with('{'));
    if mode == ToolCalling::Schema
        && (json.starts_with('{') || is_list || parse_document(json) != Err(JsonTextError::Invalid))
    {
        return plan_text::decision_from_json(json, is_truncated, INVALID_REASON);
    }
    // In the other modes, a call without tags is only shown as an example.
    let is_call = |name: &str| mode == ToolCalling::Text && tools.input_schema(name).is_some();
    match plan_text::parse_text(&reply.text, is_truncated, &is_call)? {
        PlannerDecision::Answer(text)
            if mode == ToolCalling::Text && plan_text::is_broken_plan(&text, &is_call) =>
        {
            plan_text::decision_from_json(&text, is_truncated, INVALID_REASON)
        }
        decision => Ok(decision),
    }
}
