//! Removes steps of a plan that repeat a call or that the answer replaces. Each removal adds a note for the approver.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::super::plan::{NO_TOOL, Plan, Step};
use crate::reference::{references, references_in};

/// Notes per step; a tool has hardly more parameters.
const MAX_NOTES: usize = 40;

/// Notes about the repairs of a plan, by step id.
pub type RepairNotes = BTreeMap<String, Vec<String>>;

pub(super) fn add_note(notes: &mut RepairNotes, step: &str, note: String) {
    let step_notes = notes.entry(step.to_owned()).or_default();
    if step_notes.len() < MAX_NOTES {
        step_notes.push(note);
    }
}

/// Removes unreferenced steps that repeat an earlier call with the same arguments, or with references to its result in place
/// of some of them: small models append such steps to a complete plan. `finished` are steps of earlier plans; dependencies on
/// them are kept, even if a step of that id was removed.
pub(in crate::planning) fn remove_repeated_calls(
    plan: Plan,
    finished: &[&str],
    notes: &mut RepairNotes,
) -> Plan {
    let referenced: HashSet<String> =
        plan.steps.iter().flat_map(|step| references(&step.arguments)).map(|used| used.step).collect();
    let mut kept: Vec<Step> = Vec::with_capacity(plan.steps.len());
    let mut removed: HashSet<String> = HashSet::new();
    for step in plan.steps {
        let is_removable = step.tool_type != NO_TOOL && !referenced.contains(&step.id);
        match kept.iter().find(|earlier| is_removable && is_repetition(&step, earlier)) {
            None => kept.push(step),
            Some(earlier) => {
                add_note(notes, &earlier.id, format!("dropped `{}`: repeats this call", step.id));
                removed.insert(step.id);
            }
        }
    }
    for step in &mut kept {
        step.dependencies.retain(|id| !removed.contains(id) || finished.contains(&id.as_str()));
    }
    Plan { steps: kept }
}

/// Removes steps without a tool that no call needs: the answer is what they would say.
pub(in crate::planning) fn remove_final_reasoning(mut plan: Plan, notes: &mut RepairNotes) -> Plan {
    if plan.steps.iter().all(|step| step.tool_type == NO_TOOL) {
        return plan;
    }
    loop {
        let needed: HashSet<String> = plan.steps.iter().flat_map(|step| plan.dependencies_of(step)).collect();
        let is_final = |step: &Step| {
            step.tool_type == NO_TOOL && !step.dependencies.is_empty() && !needed.contains(&step.id)
        };
        let Some(at) = plan.steps.iter().position(is_final) else { return plan };
        let removed = plan.steps.remove(at);
        if let Some(last) = removed.dependencies.last() {
            add_note(notes, last, format!("dropped `{}`: left to the answer", removed.id));
        }
    }
}

fn is_repetition(step: &Step, earlier: &Step) -> bool {
    let is_same_argument = |(name, value): (&String, &Value)| {
        earlier.arguments.get(name) == Some(value)
            || (earlier.arguments.contains_key(name) && is_result_of(value, &earlier.id))
    };
    let has_own_argument = || step.arguments.values().any(|value| !is_result_of(value, &earlier.id));
    step.tool_type == earlier.tool_type
        && step.arguments.len() == earlier.arguments.len()
        && step.arguments.iter().all(is_same_argument)
        && (step.arguments.is_empty() || has_own_argument())
}

/// Whether a value consists only of references to a step.
fn is_result_of(value: &Value, id: &str) -> bool {
    match value {
        Value::String(_) => {
            matches!(references_in(value).as_slice(), [only] if only.is_whole_argument && only.step == id)
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| is_result_of(item, id)),
        _ => false,
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
