//! Normalizes a plan without asking the model again, where the intent is unambiguous: tool names, step ids, references, and
//! arguments that do not fit the schema of their tool. Arguments that fit are never changed, but for formulas of small models.
//!
//! | file | purpose |
//! |---|---|
//! | `step_ids.rs` | gives steps unique ids and rewrites references to them |
//! | `formulas.rs` | restores the `=` of formulas, for small models only |
//! | `infer_arguments.rs` | arguments of a step without any, from its description |
//! | `repair_notes.rs` | notes about repairs |

mod formulas;
mod infer_arguments;
mod repair_notes;
mod step_ids;

use std::collections::HashSet;

use serde_json::Value;
use toolyard_core::{RawJson, ToolKind, extract_capabilities};

pub(crate) use self::infer_arguments::prepare_tool_input;
pub use self::repair_notes::RepairNotes;
use self::{formulas::restore_equals_signs, repair_notes::add_note, step_ids::assign_ids};
use super::{
    argument_changes::argument_changes,
    paths::{ToolPlaces, add_settled_arguments},
    plan::{NO_TOOL, Plan, Step},
    plan_check::{ToolCatalog, is_misfit},
    tool_params::ToolParams,
};
use crate::reference::coerce::coerce_value;

/// Names with which models say that a step needs no tool.
const NO_TOOL_NAMES: [&str; 14] = [
    "",
    "none",
    "null",
    "no_tool",
    "notool",
    "n/a",
    "reason",
    "reasoning",
    "direct_reasoning",
    "llm",
    "think",
    "answer",
    "final_answer",
    "无",
];
/// Characters of a description derived from arguments.
const MAX_DESCRIPTION_CHARS: usize = 80;
/// Prefixes that models put before a tool's name.
const TOOL_PREFIXES: [&str; 4] = ["functions.", "function.", "tools.", "tool:"];

/// Normalizes step ids and tool names, and repairs arguments that do not fit. `finished` are steps of earlier plans.
pub(super) fn normalize(
    mut plan: Plan,
    tools: &dyn ToolCatalog,
    finished: &[&str],
    notes: &mut RepairNotes,
) -> Plan {
    assign_ids(&mut plan, finished);
    let ids: Vec<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let known_steps: HashSet<&str> = ids.iter().map(String::as_str).chain(finished.iter().copied()).collect();
    for step in &mut plan.steps {
        step.tool_type = resolve_tool_name(&step.tool_type, tools);
        if let Some(selected) = tools.name_for_arguments(&step.tool_type, &step.arguments) {
            step.tool_type = selected;
        }
        // A step does not depend on itself. The plan check reports unknown dependencies and references.
        step.dependencies.retain(|id| *id != step.id);
        if let Some(schema) = tools.input_schema(&step.tool_type).filter(|_| step.tool_type != NO_TOOL) {
            let written = step.arguments.clone();
            repair_arguments(step, &schema, &known_steps, &tools.places(&step.tool_type));
            for change in argument_changes(&written, &step.arguments) {
                add_note(notes, &step.id, change);
            }
            leave_empty_calculation_to_model(step, &schema, notes);
        }
        if step.description.is_empty() && step.tool_type != NO_TOOL {
            step.description = describe_call(step);
        }
    }
    plan
}

/// Repairs what does not fit the tool's schema, as far as only one repair is possible. What fits is left as the model wrote it,
/// however strange it looks: the program cannot know what was meant. What stays wrong is reported by the plan check, and the
/// model is asked again.
fn repair_arguments(step: &mut Step, schema: &RawJson, known_steps: &HashSet<&str>, places: &ToolPlaces) {
    let params = ToolParams::from_schema(schema);
    correct_names(step, &params);
    if let Some(prepared) = prepare_tool_input(step, schema) {
        step.arguments = prepared;
    }
    add_settled_arguments(&mut step.arguments, &params.params, places);
    for (name, value) in &mut step.arguments {
        if let Some(param) = params.param(name).filter(|param| is_misfit(&params, param, value, known_steps))
        {
            *value = coerce_value(std::mem::take(value), param);
        }
    }
    // Models fill in every parameter; a blank one that the tool does not take means that there is no value.
    step.arguments.retain(|name, value| {
        let is_blank = value.is_null() || *value == "";
        let optional = params.param(name).filter(|param| is_blank && !param.required);
        !optional.is_some_and(|param| is_misfit(&params, param, value, known_steps))
    });
}

/// Restores the `=` of the formulas of a small model, and notes it.
pub(super) fn restore_formulas(mut plan: Plan, question: &str, notes: &mut RepairNotes) -> Plan {
    for step in &mut plan.steps {
        let written = step.arguments.clone();
        restore_equals_signs(step, question);
        for change in argument_changes(&written, &step.arguments) {
            add_note(notes, &step.id, change);
        }
    }
    plan
}

/// Renames arguments whose name differs from that of exactly one parameter, and only in case and separators.
fn correct_names(step: &mut Step, params: &ToolParams) {
    if params.accepts_undeclared {
        return;
    }
    let written: Vec<String> = step.arguments.keys().cloned().collect();
    let is_same = |name: &str, other: &str| fold_name(name) == fold_name(other);
    let correct_name = |name: String| {
        let is_unique = written.iter().filter(|other| is_same(other, &name)).count() == 1;
        let mut similar = params.params.iter().filter(|param| is_same(&param.name, &name));
        match (similar.next(), similar.next()) {
            (Some(only), None) if is_unique => only.name.clone(),
            _ => name,
        }
    };
    let arguments = std::mem::take(&mut step.arguments);
    step.arguments = arguments.into_iter().map(|(name, value)| (correct_name(name), value)).collect();
}

/// A name reduced to its letters and digits in lower case, for comparing spellings.
fn fold_name(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A calculation without anything to calculate is left to the model, as the specification says. A tool that requires no
/// argument is called, whatever its name suggests.
fn leave_empty_calculation_to_model(step: &mut Step, schema: &RawJson, notes: &mut RepairNotes) {
    let is_calculation = ToolKind::of(&extract_capabilities(&step.tool_type, "")) == ToolKind::Calculate;
    let is_empty = step.arguments.values().all(|value| value.is_null() || *value == "");
    if is_calculation && is_empty && ToolParams::from_schema(schema).required().next().is_some() {
        add_note(
            notes,
            &step.id,
            format!("`{}` has nothing to calculate: left to the model", step.tool_type),
        );
        step.tool_type = NO_TOOL.to_owned();
        step.arguments.clear();
    }
}

/// A description of a step from its tool and arguments.
fn describe_call(step: &Step) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let arguments: Vec<String> = step.arguments.values().map(text).collect();
    let arguments: String = arguments.join(", ").chars().take(MAX_DESCRIPTION_CHARS).collect();
    if arguments.is_empty() { step.tool_type.clone() } else { format!("{}: {arguments}", step.tool_type) }
}

/// The tool that a name means: the tool itself, one whose name differs only in case and separators, or none.
fn resolve_tool_name(name: &str, tools: &dyn ToolCatalog) -> String {
    let is_known = |name: &str| tools.input_schema(name).is_some();
    if is_known(name) {
        return name.to_owned();
    }
    if NO_TOOL_NAMES.contains(&name.to_lowercase().as_str()) {
        return NO_TOOL.to_owned();
    }
    let bare = TOOL_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let bare = bare.trim_end_matches("()").trim();
    if is_known(bare) {
        return bare.to_owned();
    }
    match tools.nearest(bare) {
        Some(near) if fold_name(&near) == fold_name(bare) => near,
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
