//! Normalizes a plan without asking the model again, where the intent is unambiguous: tool names, step ids, references, and
//! the types of arguments.
//!
//! | file | purpose |
//! |---|---|
//! | `step_ids.rs` | gives steps unique ids and rewrites references to them |
//! | `infer_arguments.rs` | arguments of a step without any, from its description |
//! | `repair.rs` | repairs that change what is executed, with notes for the approver |

mod infer_arguments;
mod repair;
mod step_ids;

use std::collections::HashSet;

use serde_json::{Number, Value};
use toolyard_core::{RawJson, ToolKind, extract_capabilities};

pub(crate) use self::infer_arguments::prepare_tool_input;
pub use self::repair::RepairNotes;
pub(super) use self::repair::{
    remove_final_reasoning, remove_invented_cells, remove_invented_folders, remove_paths_into_reasoning,
    remove_repeated_calls, split_ranges,
};
use self::{repair::restore_equals_signs, step_ids::assign_ids};
use super::{
    paths::{ToolPlaces, fill_settled_arguments},
    plan::{Complexity, NO_TOOL, Plan, Step},
    plan_check::{ToolCatalog, has_reference},
    reply::plan_json::UNNAMED_ARGUMENT,
    tool_params::ToolParams,
};
use crate::reference::{Reference, coerce::coerce_arguments, fold_name, references};

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

/// Normalizes step ids, tool names and arguments. `finished` are steps of earlier plans.
pub(super) fn normalize(
    mut plan: Plan,
    tools: &dyn ToolCatalog,
    finished: &[&str],
    question: &str,
    notes: &mut RepairNotes,
) -> Plan {
    assign_ids(&mut plan, finished);
    let ids: Vec<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let known_steps: HashSet<&str> = ids.iter().map(String::as_str).chain(finished.iter().copied()).collect();
    let is_only_step = plan.steps.len() == 1;
    for step in &mut plan.steps {
        step.tool_type = resolve_tool_name(&step.tool_type, tools);
        if let Some(selected) = tools.name_for_arguments(&step.tool_type, &step.arguments) {
            step.tool_type = selected;
        }
        // Unknown dependencies are dropped; unknown references are reported by the plan check.
        step.dependencies.retain(|id| known_steps.contains(id.as_str()) && *id != step.id);
        step.arguments.values_mut().for_each(|value| unwrap_dollar_numbers(value, &known_steps, question));
        restore_equals_signs(step, question, notes);
        if let Some(schema) = tools.input_schema(&step.tool_type).filter(|_| step.tool_type != NO_TOOL) {
            normalize_arguments(step, &schema, &known_steps, &tools.places(&step.tool_type));
        }
        if is_only_step && step.complexity == Complexity::Medium {
            step.complexity = Complexity::Low;
        }
        if step.description.is_empty() && step.tool_type != NO_TOOL {
            step.description = describe_call(step);
        }
    }
    plan
}

/// Converts the arguments to the types of the tool's parameters.
fn normalize_arguments(step: &mut Step, schema: &RawJson, known_steps: &HashSet<&str>, places: &ToolPlaces) {
    let params = ToolParams::from_schema(schema);
    name_unnamed_argument(step, &params);
    normalize_calculation(step, known_steps);
    if step.arguments.is_empty()
        && let Some(prepared) = prepare_tool_input(step, schema)
    {
        step.arguments = prepared;
    }
    fill_settled_arguments(&mut step.arguments, &params.params, places);
    coerce_arguments(&mut step.arguments, &params.params, |value| has_reference(value, known_steps));
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

/// Converts `$42` to 42 unless the request contains `$42`: small models write numbers like references.
fn unwrap_dollar_numbers(value: &mut Value, known_steps: &HashSet<&str>, question: &str) {
    match value {
        Value::String(text) => {
            let number = text.trim().strip_prefix('$').filter(|rest| !known_steps.contains(rest));
            let number = number.and_then(|rest| serde_json::from_str::<Number>(rest).ok());
            if let Some(number) = number.filter(|_| !question.contains(text.trim())) {
                *value = Value::Number(number);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| unwrap_dollar_numbers(item, known_steps, question));
        }
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| unwrap_dollar_numbers(value, known_steps, question));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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

/// Assigns an unnamed argument to the only required parameter.
fn name_unnamed_argument(step: &mut Step, params: &ToolParams) {
    if params.param(UNNAMED_ARGUMENT).is_some() || step.arguments.len() != 1 {
        return;
    }
    let required: Vec<&str> = params.required().map(|param| param.name.as_str()).collect();
    let only = match (required.as_slice(), params.params.as_slice()) {
        ([only], _) => *only,
        ([], [only]) => only.name.as_str(),
        _ => return,
    };
    if let Some(value) = step.arguments.remove(UNNAMED_ARGUMENT) {
        step.arguments.insert(only.to_owned(), value);
    }
}

/// Converts `$1234 * $5678` to `1234 * 5678` and removes `values` that the expression does not use: small models write
/// numbers like references and fill in every parameter.
fn normalize_calculation(step: &mut Step, known_steps: &HashSet<&str>) {
    if ToolKind::of(&extract_capabilities(&step.tool_type, "")) != ToolKind::Calculate {
        return;
    }
    let uses_values = |expression: &str| expression.contains("values");
    if step.arguments.get("expression").and_then(Value::as_str).is_some_and(|text| !uses_values(text))
        && step.arguments.get("values").is_some_and(|values| !has_reference(values, known_steps))
    {
        step.arguments.remove("values");
    }
    let is_number = |reference: &Reference| reference.step.bytes().all(|digit| digit.is_ascii_digit());
    let found = references(&step.arguments);
    for number in found.iter().filter(|found| is_number(found) && !known_steps.contains(found.step.as_str()))
    {
        for value in step.arguments.values_mut() {
            if let Value::String(text) = value {
                *text = text.replace(&number.written, number.written.trim_start_matches('$'));
            }
        }
    }
}

#[cfg(test)]
mod tests;
