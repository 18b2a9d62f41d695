//! What is mended in a plan: a call that is only repeated, a cell that was made up, a formula that lost its sign. Unlike
//! forms and names these change what is done, so that whoever decides about a call is told.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};
use toolyard_core::Param;

use crate::{
    KnownTools, NO_TOOL, Plan, Step,
    plan_check::Takes,
    prompt::fence,
    reference::short,
    references,
    tool_name::{only_reads, words},
};

/// So many notes of one kind are made of one argument or step.
const MOST_NOTES: usize = 5;
/// Longer formulas are cut where they are told.
const LONGEST: usize = 40;

/// What was mended in the steps of a plan, in words, by step.
pub type PlanNotes = BTreeMap<String, Vec<String>>;

fn note(notes: &mut PlanNotes, step: &str, what: String) {
    let of_step = notes.entry(step.to_owned()).or_default();
    if of_step.len() < MOST_NOTES {
        of_step.push(what);
    }
}

/// The plan without steps that repeat an earlier call, argument for argument or with what that call said in place of some,
/// and that nobody refers to: a small model that has nothing more to say begins again.
pub(super) fn without_repeats(plan: Plan, done: &[&str], notes: &mut PlanNotes) -> Plan {
    let needed: HashSet<String> =
        plan.steps.iter().flat_map(|step| references(&step.arguments)).map(|found| found.step).collect();
    let mut kept: Vec<Step> = Vec::with_capacity(plan.steps.len());
    let mut left_out: HashSet<String> = HashSet::new();
    for step in plan.steps {
        let has_tool = step.tool_type != NO_TOOL && !needed.contains(&step.id);
        match kept.iter().find(|earlier| has_tool && repeats(&step, earlier)) {
            None => kept.push(step),
            Some(earlier) => {
                note(notes, &earlier.id, format!("`{}`, which repeats this call, was left out", step.id));
                left_out.insert(step.id);
            }
        }
    }
    for step in &mut kept {
        step.dependencies.retain(|need| !left_out.contains(need) || done.contains(&need.as_str()));
    }
    Plan { steps: kept }
}

fn repeats(step: &Step, earlier: &Step) -> bool {
    let same = |(name, value): (&String, &Value)| {
        earlier.arguments.get(name) == Some(value)
            || (earlier.arguments.contains_key(name) && is_only(value, &earlier.id))
    };
    let has_own = || step.arguments.values().any(|value| !is_only(value, &earlier.id));
    step.tool_type == earlier.tool_type
        && step.arguments.len() == earlier.arguments.len()
        && step.arguments.iter().all(same)
        && (step.arguments.is_empty() || has_own())
}

/// Whether a value is nothing but what a step gives.
fn is_only(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => {
            let found = references(&Map::from_iter([(String::new(), Value::String(text.clone()))]));
            matches!(found.as_slice(), [only] if only.whole && only.step == id)
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| is_only(item, id)),
        _ => false,
    }
}

/// The plan without cells that nobody spoke of, where a tool that only reads does without: what is called `A100` is looked
/// up and never thought up, and whoever makes it up reads another column, or half of one. Where a tool would take another
/// cell instead, the one that was made up stays.
pub(super) fn without_made_up_cells(
    mut plan: Plan,
    tools: &dyn KnownTools,
    said: &str,
    notes: &mut PlanNotes,
) -> Plan {
    let said = said.to_uppercase();
    let is_said = |cell: &str| {
        said.match_indices(cell).any(|(at, _)| {
            let (before, behind) = (said.get(..at), said.get(at + cell.len()..));
            let is_part = |letter: char| letter.is_ascii_alphanumeric();
            !before.is_some_and(|text| text.ends_with(is_part))
                && !behind.is_some_and(|text| text.starts_with(is_part))
        })
    };
    let is_place = |name: &str| {
        words(name).iter().any(|word| ["cell", "cells", "range", "start", "end"].contains(&word.as_str()))
    };
    let is_free = |param: &Param| {
        !param.required && param.choices.is_empty() && param.default.as_ref().is_none_or(Value::is_null)
    };
    for step in plan.steps.iter_mut().filter(|step| only_reads(&step.tool_type)) {
        let Some(schema) = tools.input_schema(&step.tool_type) else { continue };
        let takes = Takes::of(&schema);
        let is_made_up = |text: &&str| is_cell(text) && !is_said(text);
        step.arguments.retain(|name, value| {
            let can_go = is_place(name) && takes.param(name).is_some_and(is_free);
            let made_up = value.as_str().filter(|_| can_go).filter(is_made_up);
            if let Some(cell) = made_up {
                let name = short(name);
                note(notes, &step.id, format!("`{name}`: `{cell}` was left out, nobody spoke of it"));
            }
            made_up.is_none()
        });
    }
    plan
}

/// Whether a text is the address of a cell, such as `B12`.
fn is_cell(text: &str) -> bool {
    let row = text.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    (1..=3).contains(&(text.len() - row.len()))
        && (1..=7).contains(&row.len())
        && row.bytes().all(|digit| digit.is_ascii_digit())
}

/// Gives the formulas of a step back the signs that were lost.
pub(super) fn with_equals_signs(step: &mut Step, question: &str, notes: &mut PlanNotes) {
    for (name, value) in &mut step.arguments {
        let mut formulas = Vec::new();
        with_equals_sign(value, question, &mut formulas);
        for formula in formulas.into_iter().take(MOST_NOTES) {
            let formula: String = fence::escaped(&fence::one_line(&formula)).chars().take(LONGEST).collect();
            note(notes, &step.id, format!("`{}`: `{formula}` got its `=` back", short(name)));
        }
    }
}

/// `SUM(B1:B10)` where the request only says `=SUM(B1:B10)`: a formula whose sign was lost, and which is one only with it.
fn with_equals_sign(value: &mut Value, question: &str, mended: &mut Vec<String>) {
    match value {
        Value::String(text) if is_formula(text) => {
            let formula = format!("={text}");
            let is_part = |letter: char| letter.is_ascii_alphanumeric();
            let stands_alone = |(at, _): (usize, &str)| {
                let before = question.get(..at).unwrap_or_default();
                let behind = question.get(at + formula.len()..).unwrap_or_default();
                !before.ends_with(|letter: char| is_part(letter) || "=<>!:".contains(letter))
                    && !behind.starts_with(is_part)
            };
            let found: Vec<_> = question.match_indices(formula.as_str()).collect();
            let only_there = found.len() == question.matches(text.as_str()).count();
            if !found.is_empty() && only_there && found.into_iter().all(stands_alone) {
                mended.push(std::mem::take(text));
                *value = Value::String(formula);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| with_equals_sign(item, question, mended)),
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| with_equals_sign(value, question, mended));
        }
        _ => {}
    }
}

/// Whether a text is a calculation of cells: a function, or cells and numbers with signs between them.
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
#[path = "mend_tests.rs"]
mod tests;
