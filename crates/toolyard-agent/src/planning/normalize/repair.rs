//! Repairs that change what a plan executes: repeated calls, invented cell addresses, formulas without `=`. Each repair adds
//! a note for the approver.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use toolyard_core::Param;

use super::super::{
    plan::{NO_TOOL, Plan, Step},
    plan_check::ToolCatalog,
    tool_name::{is_read_only_name, name_words},
    tool_params::ToolParams,
};
use crate::{
    escape,
    reference::{display_name, references, references_in},
};

/// Notes per step, and restored formulas that are noted per argument.
const MAX_NOTES: usize = 5;
const MAX_FORMULA_CHARS: usize = 40;

/// Notes about the repairs of a plan, by step id.
pub type RepairNotes = BTreeMap<String, Vec<String>>;

fn add_note(notes: &mut RepairNotes, step: &str, note: String) {
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

/// Removes cell addresses that do not occur in `context_text` from optional arguments of read-only tools: an invented address
/// reads the wrong column, or half of one. A parameter with a default keeps its value.
pub(in crate::planning) fn remove_invented_cells(
    mut plan: Plan,
    tools: &dyn ToolCatalog,
    context_text: &str,
    notes: &mut RepairNotes,
) -> Plan {
    let context_text = context_text.to_uppercase();
    let is_known = |cell: &str| {
        context_text.match_indices(cell).any(|(at, _)| {
            let (before, behind) = (context_text.get(..at), context_text.get(at + cell.len()..));
            let is_word_char = |letter: char| letter.is_ascii_alphanumeric();
            !before.is_some_and(|text| text.ends_with(is_word_char))
                && !behind.is_some_and(|text| text.starts_with(is_word_char))
        })
    };
    let is_cell_param = |name: &str| {
        name_words(name)
            .iter()
            .any(|word| ["cell", "cells", "range", "start", "end"].contains(&word.as_str()))
    };
    let is_optional = |param: &Param| {
        !param.required && param.choices.is_empty() && param.default.as_ref().is_none_or(Value::is_null)
    };
    for step in plan.steps.iter_mut().filter(|step| is_read_only_name(&step.tool_type)) {
        let Some(schema) = tools.input_schema(&step.tool_type) else { continue };
        let params = ToolParams::from_schema(&schema);
        let is_invented = |text: &&str| is_cell(text) && !is_known(text);
        step.arguments.retain(|name, value| {
            let is_removable = is_cell_param(name) && params.param(name).is_some_and(is_optional);
            let invented = value.as_str().filter(|_| is_removable).filter(is_invented);
            if let Some(cell) = invented {
                let name = display_name(name);
                add_note(
                    notes,
                    &step.id,
                    format!("`{name}`: dropped `{cell}`, which is not in your request"),
                );
            }
            invented.is_none()
        });
    }
    plan
}

/// Whether a text is a cell address such as `B12`.
fn is_cell(text: &str) -> bool {
    let row = text.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    (1..=3).contains(&(text.len() - row.len()))
        && (1..=7).contains(&row.len())
        && row.bytes().all(|digit| digit.is_ascii_digit())
}

/// Restores the `=` of formulas that the model dropped.
pub(super) fn restore_equals_signs(step: &mut Step, question: &str, notes: &mut RepairNotes) {
    for (name, value) in &mut step.arguments {
        let mut formulas = Vec::new();
        restore_equals_sign(value, question, &mut formulas);
        for formula in formulas.into_iter().take(MAX_NOTES) {
            let formula: String =
                escape::markup(&escape::sanitized_line(&formula)).chars().take(MAX_FORMULA_CHARS).collect();
            add_note(notes, &step.id, format!("`{}`: added `=` to `{formula}`", display_name(name)));
        }
    }
}

/// Restores the `=` of `SUM(B1:B10)` if the request contains it only as `=SUM(B1:B10)`.
fn restore_equals_sign(value: &mut Value, question: &str, restored: &mut Vec<String>) {
    match value {
        Value::String(text) if is_formula(text) => {
            let formula = format!("={text}");
            let is_word_char = |letter: char| letter.is_ascii_alphanumeric();
            let stands_alone = |(at, _): (usize, &str)| {
                let before = question.get(..at).unwrap_or_default();
                let behind = question.get(at + formula.len()..).unwrap_or_default();
                !before.ends_with(|letter: char| is_word_char(letter) || "=<>!:".contains(letter))
                    && !behind.starts_with(is_word_char)
            };
            let found: Vec<_> = question.match_indices(formula.as_str()).collect();
            let only_with_equals_sign = found.len() == question.matches(text.as_str()).count();
            if !found.is_empty() && only_with_equals_sign && found.into_iter().all(stands_alone) {
                restored.push(std::mem::take(text));
                *value = Value::String(formula);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| restore_equals_sign(item, question, restored));
        }
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| restore_equals_sign(value, question, restored));
        }
        _ => {}
    }
}

/// Whether a text is a formula: a function call, or cells and numbers with operators between them.
fn is_formula(text: &str) -> bool {
    let is_operand = |part: &str| {
        let plain = part.trim().replace('$', "");
        is_cell(&plain) || plain.parse::<f64>().is_ok()
    };
    let name = text.split('(').next().unwrap_or_default();
    let is_call = text.ends_with(')')
        && !name.is_empty()
        && name.len() < text.len()
        && name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '.');
    let operands: Vec<&str> = text.split(['+', '-', '*', '/', '^', '(', ')', ':']).collect();
    let has_cell = operands.iter().any(|part| is_cell(&part.trim().replace('$', "")));
    is_call
        || (operands.len() > 1
            && has_cell
            && operands.iter().all(|part| part.trim().is_empty() || is_operand(part)))
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
