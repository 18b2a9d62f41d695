//! The receipt of a run: what became of each call that may have changed something, from its recorded steps alone.

use serde_json::{Map, Value};
use toolyard_core::{ErrorKind, RawJson, redact_json};

use super::{
    effect::{Effect, EffectCause, EffectState},
    event::StepEnd,
    state::Run,
    step::{ApprovalState, StepPhase, StepRun},
};
use crate::reference::references_in;

/// Longer arguments do not tell which thing a call is about.
const MAX_TARGET_PART_CHARS: usize = 120;
const MAX_TARGET_PARTS: usize = 3;

impl Run {
    /// The receipt: what became of every planned call of a tool that may change something, in the order of the plans.
    pub fn effects(&self) -> Vec<Effect> {
        let given_up = self.given_up_changes();
        // A step that was replaced before it was begun has the line of the step that replaced it.
        let is_told = |step: &&StepRun| {
            step.has_value() || step.was_begun() || given_up.contains(&step.step.id.as_str())
        };
        let dropped = self.dropped_steps.iter().filter(is_told);
        dropped.chain(&self.steps).filter(|step| step.may_change()).map(effect_of).collect()
    }

    /// The steps that keep the run from being a success: those of the last plan without a result, and changes of earlier
    /// plans that no later step made.
    pub fn unfinished_steps(&self) -> Vec<String> {
        if self.request.as_ref().is_some_and(|request| request.dry_run) {
            return Vec::new();
        }
        let is_unfinished = |step: &&StepRun| !step.has_value() || step.is_unmade_change();
        let last_plan = self.steps.iter().filter(is_unfinished).map(|step| step.step.id.as_str());
        self.given_up_changes().into_iter().chain(last_plan).map(str::to_owned).collect()
    }

    /// Changes of earlier plans that were not made, without those that a step of a later plan made instead. Each needs a step of
    /// its own, of the same tool; for a call that failed, another tool does.
    fn given_up_changes(&self) -> Vec<&str> {
        let made = |step: &&StepRun| step.may_change() && step.has_value() && !step.is_reasoned_out();
        let mut replacements: Vec<&StepRun> = self.steps.iter().filter(made).collect();
        let mut given_up = Vec::new();
        let unmade = |step: &&StepRun| step.may_change() && (!step.has_value() || step.is_reasoned_out());
        for dropped in self.dropped_steps.iter().filter(unmade) {
            let later = |step: &&StepRun| step.round > dropped.round;
            let same_tool = |step: &&StepRun| later(step) && step.step.tool_type == dropped.step.tool_type;
            let same_step = |step: &&StepRun| same_tool(step) && step.step.id == dropped.step.id;
            let position = replacements
                .iter()
                .position(same_step)
                .or_else(|| replacements.iter().position(same_tool))
                .or_else(|| replacements.iter().position(later).filter(|_| dropped.was_begun()));
            match position {
                Some(position) => drop(replacements.remove(position)),
                None => given_up.push(dropped.step.id.as_str()),
            }
        }
        given_up
    }
}

impl StepRun {
    /// Whether its tool may change something, by what was known when it was planned or called. Nothing is known of a tool that no
    /// source has.
    pub(crate) fn may_change(&self) -> bool {
        !self.is_reasoning()
            && (!self.tool.read_only || self.tool.source.is_none() || self.calls_changing_tool)
    }

    /// Whether it came to a call or a decision about one.
    fn was_begun(&self) -> bool {
        !self.call.is_empty()
            || !matches!(self.phase, StepPhase::Waiting | StepPhase::Ended(StepEnd::Skipped { .. }))
    }

    /// Whether a model only thought out what a tool should have changed.
    fn is_unmade_change(&self) -> bool {
        self.may_change() && self.is_reasoned_out()
    }
}

/// The line of a step on the receipt.
fn effect_of(step: &StepRun) -> Effect {
    let (state, cause, reason) = fate(step);
    let target = match step.target.as_str() {
        "" => target_of(&step.step.arguments),
        target => target.to_owned(),
    };
    let source = match &step.phase {
        StepPhase::Ended(StepEnd::Done { source: Some(source), .. }) => Some(source),
        _ => step.tool.source.as_ref(),
    };
    Effect {
        step: step.step.id.clone(),
        tool: step.step.tool_type.clone(),
        source: source.map(ToString::to_string),
        target,
        state,
        cause,
        reason,
        called: !step.call.is_empty(),
    }
}

/// What became of a step that may change something, why, and the details.
fn fate(step: &StepRun) -> (EffectState, Option<EffectCause>, Option<String>) {
    let not_done = |cause, reason| (EffectState::NotDone, Some(cause), reason);
    let unknown = |cause, reason| (EffectState::Unknown, Some(cause), reason);
    match &step.phase {
        StepPhase::Ended(StepEnd::Done { reasoned: true, .. }) => not_done(EffectCause::ReasonedOut, None),
        StepPhase::Ended(StepEnd::Done { .. }) => match &step.verification {
            None => unknown(EffectCause::Unchecked, None),
            Some(_) if step.has_value() => (EffectState::Done, None, None),
            Some(found) => not_done(EffectCause::Failed, Some(found.issues.join("; "))),
        },
        // The first call may have taken effect, whatever became of the step after its process died.
        StepPhase::Ended(StepEnd::Failed { message, .. }) if step.was_interrupted => {
            unknown(EffectCause::NoAnswer, Some(message.clone()))
        }
        StepPhase::Ended(StepEnd::Skipped { .. } | StepEnd::Denied { .. } | StepEnd::Simulated)
        | StepPhase::Waiting
            if step.was_interrupted =>
        {
            unknown(EffectCause::NoAnswer, None)
        }
        StepPhase::Ended(StepEnd::Failed { message, kind, .. }) if loses_answer(*kind) => {
            unknown(EffectCause::NoAnswer, Some(message.clone()))
        }
        StepPhase::Ended(StepEnd::Failed { message, .. }) => {
            not_done(EffectCause::Failed, Some(message.clone()))
        }
        StepPhase::Ended(StepEnd::Skipped { because }) => {
            not_done(EffectCause::Skipped, Some(because.clone()))
        }
        StepPhase::Ended(StepEnd::Denied { by }) => not_done(EffectCause::Denied, Some(by.clone())),
        StepPhase::Ended(StepEnd::Simulated) => not_done(EffectCause::DryRun, None),
        StepPhase::Ended(StepEnd::Unknown { message }) => {
            unknown(EffectCause::NoAnswer, Some(message.clone()))
        }
        StepPhase::Started if step.call.is_empty() => not_done(EffectCause::NotBegun, None),
        StepPhase::Started => unknown(EffectCause::NoAnswer, None),
        StepPhase::Waiting => match step.approval {
            ApprovalState::Requested { .. } => not_done(EffectCause::NotApproved, None),
            _ => not_done(EffectCause::NotBegun, None),
        },
    }
}

/// Whether an error leaves open whether the call took effect. A repeatable call ends with it too; others are `Unknown` then.
fn loses_answer(kind: Option<ErrorKind>) -> bool {
    matches!(
        kind,
        Some(ErrorKind::Timeout | ErrorKind::ResponseLost | ErrorKind::OutcomeUnknown | ErrorKind::Internal)
    )
}

/// The short arguments of a call in the order of its parameters, secrets redacted: they tell which thing it is about, and longer
/// ones are what is written to it. References to steps have no value yet.
pub(crate) fn target_of(arguments: &Map<String, Value>) -> String {
    let is_short = |value: &Value| match value {
        Value::Number(_) => true,
        Value::String(text) => {
            !text.trim().is_empty()
                && !text.contains(['\n', '\r'])
                && references_in(value).is_empty()
                && text.chars().nth(MAX_TARGET_PART_CHARS).is_none()
        }
        _ => false,
    };
    let short = arguments.iter().filter(|(_, value)| is_short(value));
    let short: Map<String, Value> = short.map(|(name, value)| (name.clone(), value.clone())).collect();
    let (redacted, _) = redact_json(&RawJson::from(Value::Object(short)));
    let Value::Object(shown) = redacted.to_value() else { return String::new() };
    let parts = shown.values().take(MAX_TARGET_PARTS).map(|value| match value {
        Value::String(text) if is_plain(text.trim()) => text.trim().to_owned(),
        other => other.to_string(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether a text cannot be taken for the rest of a receipt's line. Others are shown in quotes.
fn is_plain(text: &str) -> bool {
    !text.contains(['"', ',', ';', '→', '(', ')', '，', '；', '（', '）', '：']) && !text.contains(": ")
}
