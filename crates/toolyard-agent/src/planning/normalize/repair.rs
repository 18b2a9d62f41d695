//! Repairs that change what a plan executes: repeated calls, invented cell addresses, formulas without `=`. Each repair adds
//! a note for the approver.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use toolyard_core::Param;

use super::super::{
    paths::{without_description, without_invented_folder},
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
/// Words in the names of optional parameters that narrow down what is read.
const FILTER_WORDS: [&str; 11] = [
    "timestamp",
    "since",
    "until",
    "before",
    "after",
    "cursor",
    "offset",
    "contains",
    "exclude",
    "head",
    "tail",
];

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

/// Removes the paths of references to steps without a tool, whose results are texts or lists: `$german.result` is `$german`.
pub(in crate::planning) fn remove_paths_into_reasoning(mut plan: Plan) -> Plan {
    let is_reasoning = |step: &&Step| step.tool_type == NO_TOOL;
    let reasoning: HashSet<String> =
        plan.steps.iter().filter(is_reasoning).map(|step| step.id.clone()).collect();
    for step in &mut plan.steps {
        let found = references(&step.arguments);
        for reference in found.iter().filter(|found| reasoning.contains(&found.step)) {
            let whole = format!("${}", reference.step);
            step.arguments.values_mut().for_each(|value| replace_text(value, &reference.written, &whole));
        }
    }
    plan
}

fn replace_text(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text.contains(old) => *text = text.replace(old, new),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_text(item, old, new)),
        Value::Object(entries) => entries.values_mut().for_each(|value| replace_text(value, old, new)),
        _ => {}
    }
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

/// Removes cell addresses and times that do not occur in `context_text` from optional arguments of read-only tools: an
/// invented address reads the wrong column, an invented time the wrong commits. A parameter with a default keeps its value.
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
    let is_filter_param =
        |name: &str| name_words(name).iter().any(|word| FILTER_WORDS.contains(&word.as_str()));
    let is_optional = |param: &Param| {
        !param.required && param.choices.is_empty() && param.default.as_ref().is_none_or(Value::is_null)
    };
    for step in plan.steps.iter_mut().filter(|step| is_read_only_name(&step.tool_type)) {
        let Some(schema) = tools.input_schema(&step.tool_type) else { continue };
        let params = ToolParams::from_schema(&schema);
        step.arguments.retain(|name, value| {
            let is_invented = |text: &String| {
                (is_cell_param(name) && is_cell(text) && !is_known(text))
                    || (is_filter_param(name) && !context_text.contains(&text.to_uppercase()))
            };
            let is_removable = params.param(name).is_some_and(is_optional);
            // A reference is checked like any other; its value is not known yet.
            let is_reference = !references_in(value).is_empty();
            let invented = scalar_text(value).filter(|_| is_removable && !is_reference).filter(is_invented);
            if let Some(text) = &invented {
                let name = display_name(name);
                let text = escape::markup(text);
                add_note(
                    notes,
                    &step.id,
                    format!("`{name}`: dropped `{text}`, which is not in your request"),
                );
            }
            invented.is_none()
        });
    }
    plan
}

/// A text or a number as text.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Splits ranges in parameters that take one cell: `start_cell: "A1:D1"` is `A1`, with `end_cell: "D1"` if there is such a
/// parameter.
pub(in crate::planning) fn split_ranges(mut plan: Plan, tools: &dyn ToolCatalog) -> Plan {
    for step in &mut plan.steps {
        let ranges = step
            .arguments
            .iter()
            .filter(|(name, _)| name_words(name).last().is_some_and(|last| last == "cell"));
        let split = |(name, value): (&String, &Value)| {
            let (start, end) = value.as_str()?.split_once(':')?;
            (is_cell(start) && is_cell(end)).then(|| (name.clone(), start.to_owned(), end.to_owned()))
        };
        let found: Vec<(String, String, String)> = ranges.filter_map(split).collect();
        for (name, start, end) in found {
            let end_name = name.replace("start", "end");
            let params = tools.input_schema(&step.tool_type).map(|schema| ToolParams::from_schema(&schema));
            let has_end = end_name != name && params.is_some_and(|params| params.param(&end_name).is_some());
            if has_end && !step.arguments.contains_key(&end_name) {
                step.arguments.insert(end_name, Value::String(end));
            }
            step.arguments.insert(name, Value::String(start));
        }
    }
    plan
}

/// Removes folders that the model invented from paths whose file the user named alone, and descriptions before a file.
pub(in crate::planning) fn remove_invented_folders(
    mut plan: Plan,
    context_text: &str,
    notes: &mut RepairNotes,
) -> Plan {
    for step in &mut plan.steps {
        for (name, value) in &mut step.arguments {
            let Some(path) = value.as_str() else { continue };
            let file =
                without_invented_folder(name, path, context_text).or_else(|| without_description(name, path));
            let Some(file) = file else { continue };
            let note = format!("`{}`: dropped what stands before the file", display_name(name));
            let file = file.to_owned();
            add_note(notes, &step.id, note);
            *value = Value::String(file);
        }
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
