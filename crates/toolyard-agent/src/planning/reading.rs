//! What a model said when it was asked for a plan: an answer, or a plan that is put in order.

use toolyard_model::{FinishReason, ModelReply, NativeCall, ToolCalling};

use super::{
    Decision, MAKE_PLAN, PlanNotes, PlanningAgent, Situation, lenient,
    mend::{without_made_up_cells, without_repeats},
    read::{Said, said},
    text,
    tidy::tidied,
};
use crate::{KnownTools, Plan, PlanProblem};

impl PlanningAgent {
    /// What the model decided, put in order where only one thing can be meant. A plan is not checked yet.
    pub fn read(
        &self,
        situation: &Situation,
        reply: &ModelReply,
        tools: &dyn KnownTools,
    ) -> Result<Decision, PlanProblem> {
        self.read_with_notes(situation, reply, tools).map(|(decision, _)| decision)
    }

    /// The same, and what was mended in its steps.
    pub fn read_with_notes(
        &self,
        situation: &Situation,
        reply: &ModelReply,
        tools: &dyn KnownTools,
    ) -> Result<(Decision, PlanNotes), PlanProblem> {
        let decided = if reply.calls.is_empty() {
            self.read_text(situation.mode, reply, tools)?
        } else {
            Said::Plan(self.read_calls(situation, reply, tools)?)
        };
        let mut notes = PlanNotes::new();
        let decision = match decided {
            Said::Answer(answer) => Decision::Answer(text::cleaned(&answer)),
            Said::Plan(plan) => {
                let plan = tidied(plan, tools, &situation.done_ids(), &situation.question, &mut notes);
                Decision::Plan(match situation.mode {
                    ToolCalling::Schema => {
                        let plan = without_repeats(plan, &situation.done_ids(), &mut notes);
                        without_made_up_cells(plan, tools, &situation.all_said(), &mut notes)
                    }
                    ToolCalling::Native | ToolCalling::Text => plan,
                })
            }
        };
        Ok((decision, notes))
    }

    fn read_text(
        &self,
        mode: ToolCalling,
        reply: &ModelReply,
        tools: &dyn KnownTools,
    ) -> Result<Said, PlanProblem> {
        let cut_off = reply.finish == FinishReason::Length;
        if mode == ToolCalling::Schema
            && let Some(read) = lenient::read(text::without_thoughts(&reply.text))
        {
            if cut_off || read.cut_off {
                return Err(unreadable("it was cut off; write a shorter one"));
            }
            return said(&read.value).ok_or_else(|| unreadable("it has neither steps nor an answer"));
        }
        // Whoever has another way of calling shows a call when it writes one without tags.
        let is_call = |name: &str| mode == ToolCalling::Text && tools.input_schema(name).is_some();
        text::read(&reply.text, cut_off, &is_call)
    }

    /// A plan that was given by a function, or calls that need nothing of each other.
    fn read_calls(
        &self,
        situation: &Situation,
        reply: &ModelReply,
        tools: &dyn KnownTools,
    ) -> Result<Plan, PlanProblem> {
        let is_cut_off = |call: &NativeCall| {
            call.arguments.trim_start().starts_with(['{', '['])
                && lenient::read(&call.arguments).is_none_or(|read| read.cut_off)
        };
        if matches!(reply.finish, FinishReason::Length | FinishReason::Refused)
            || reply.calls.iter().any(is_cut_off)
        {
            return Err(unreadable("it was cut off; write a shorter one"));
        }
        if let Some(call) = reply.calls.iter().find(|call| call.name == MAKE_PLAN) {
            let read = lenient::read(&call.arguments).filter(|read| !read.cut_off);
            return match read.and_then(|read| said(&read.value)) {
                Some(Said::Plan(plan)) => Ok(plan),
                _ => Err(unreadable("`make_plan` was called without steps that can be read")),
            };
        }
        let is_known = |name: &str| tools.input_schema(name).is_some();
        let all_known = reply.calls.iter().all(|call| is_known(&call.name));
        // What a tool is really called is only looked for when it must be.
        let aliases =
            if all_known { None } else { self.native_prompt(situation).map(|prompt| prompt.aliases) };
        let meant = |name: &str| match aliases.as_ref().and_then(|aliases| aliases.get(name)) {
            Some(real) if !is_known(name) => real.clone(),
            _ => name.to_owned(),
        };
        let steps = reply.calls.iter().map(|call| text::step(&call.id, &meant(&call.name), &call.arguments));
        Ok(Plan { steps: steps.collect() })
    }
}

pub(super) fn unreadable(reason: &str) -> PlanProblem {
    PlanProblem::Unreadable { reason: reason.to_owned() }
}
