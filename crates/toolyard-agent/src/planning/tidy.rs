//! A plan put in order without asking anyone, where only one thing can be meant: names, references, forms of arguments.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value};

use toolyard_core::{RawJson, ToolKind, extract_capabilities};

use super::{
    mend::{PlanNotes, with_equals_signs},
    read::BARE,
};
use crate::{
    Complexity, KnownTools, NO_TOOL, Plan, Reference, Step,
    execution::prepare_tool_input,
    fit::fit,
    plan_check::{Takes, is_id, uses_a_step},
    references,
};

/// Names by which models say that no tool is needed.
const NO_TOOLS: [&str; 14] = [
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
/// A description that is made of arguments is cut here.
const LONGEST_DESCRIPTION: usize = 80;
/// Words before a tool's name that are not part of it.
const PREFIXES: [&str; 4] = ["functions.", "function.", "tools.", "tool:"];

/// The plan with plain names that nobody else has, tools by their names, and arguments in the form the tools take.
pub(super) fn tidied(
    mut plan: Plan,
    tools: &dyn KnownTools,
    done: &[&str],
    question: &str,
    notes: &mut PlanNotes,
) -> Plan {
    rename(&mut plan, done);
    let ids: Vec<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let known: HashSet<&str> = ids.iter().map(String::as_str).chain(done.iter().copied()).collect();
    let alone = plan.steps.len() == 1;
    for step in &mut plan.steps {
        step.tool_type = tool_name(&step.tool_type, tools);
        // Whatever does not exist need not be waited for; values of it are another matter.
        step.dependencies.retain(|need| known.contains(need.as_str()) && *need != step.id);
        step.arguments.values_mut().for_each(|value| without_dollars(value, &known, question));
        with_equals_signs(step, question, notes);
        if let Some(schema) = tools.input_schema(&step.tool_type).filter(|_| step.tool_type != NO_TOOL) {
            arrange(step, &schema, &known);
        }
        if alone && step.complexity == Complexity::Medium {
            step.complexity = Complexity::Low;
        }
        if step.description.is_empty() && step.tool_type != NO_TOOL {
            step.description = described(step);
        }
    }
    plan
}

/// Brings the arguments into the form that the tool takes.
fn arrange(step: &mut Step, schema: &RawJson, known: &HashSet<&str>) {
    let takes = Takes::of(schema);
    name_bare(step, &takes);
    calculation(step, known);
    if step.arguments.is_empty()
        && let Some(prepared) = prepare_tool_input(step, schema)
    {
        step.arguments = prepared;
    }
    fit(&mut step.arguments, &takes.params, |value| uses_a_step(value, known));
}

/// What a step does, in the words of its call.
fn described(step: &Step) -> String {
    let short = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let said: Vec<String> = step.arguments.values().map(short).collect();
    let said: String = said.join(", ").chars().take(LONGEST_DESCRIPTION).collect();
    if said.is_empty() { step.tool_type.clone() } else { format!("{}: {said}", step.tool_type) }
}

/// `$42` where the request says 42: a number that was written like a reference.
fn without_dollars(value: &mut Value, known: &HashSet<&str>, question: &str) {
    match value {
        Value::String(text) => {
            let number = text.trim().strip_prefix('$').filter(|rest| !known.contains(rest));
            let number = number.and_then(|rest| serde_json::from_str::<Number>(rest).ok());
            if let Some(number) = number.filter(|_| !question.contains(text.trim())) {
                *value = Value::Number(number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_dollars(item, known, question)),
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| without_dollars(value, known, question));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The tool that a name stands for: itself, or one that only differs in case and separators, or none.
fn tool_name(name: &str, tools: &dyn KnownTools) -> String {
    let is_known = |name: &str| tools.input_schema(name).is_some();
    if is_known(name) {
        return name.to_owned();
    }
    if NO_TOOLS.contains(&name.to_lowercase().as_str()) {
        return NO_TOOL.to_owned();
    }
    let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let bare = bare.trim_end_matches("()").trim();
    if is_known(bare) {
        return bare.to_owned();
    }
    match tools.nearest(bare) {
        Some(near) if folded(&near) == folded(bare) => near,
        _ => name.to_owned(),
    }
}

fn folded(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A value without a name is the only parameter that is needed.
fn name_bare(step: &mut Step, takes: &Takes) {
    if takes.param(BARE).is_some() || step.arguments.len() != 1 {
        return;
    }
    let required: Vec<&str> =
        takes.params.iter().filter(|param| param.required).map(|param| param.name.as_str()).collect();
    let only = match (required.as_slice(), takes.params.as_slice()) {
        ([only], _) => *only,
        ([], [only]) => only.name.as_str(),
        _ => return,
    };
    if let Some(value) = step.arguments.remove(BARE) {
        step.arguments.insert(only.to_owned(), value);
    }
}

/// `$1234 * $5678` in a calculation is not about money: small models write every number like a reference. Values that an
/// expression does not speak of are none of it.
fn calculation(step: &mut Step, known: &HashSet<&str>) {
    if ToolKind::of(&extract_capabilities(&step.tool_type, "")) != ToolKind::Calculate {
        return;
    }
    // A small model fills in everything that can be.
    let speaks_of_values = |expression: &str| expression.contains("values");
    if step.arguments.get("expression").and_then(Value::as_str).is_some_and(|text| !speaks_of_values(text))
        && step.arguments.get("values").is_some_and(|values| !uses_a_step(values, known))
    {
        step.arguments.remove("values");
    }
    let is_number = |found: &Reference| found.step.bytes().all(|digit| digit.is_ascii_digit());
    let found = references(&step.arguments);
    for number in found.iter().filter(|found| is_number(found) && !known.contains(found.step.as_str())) {
        for value in step.arguments.values_mut() {
            if let Value::String(text) = value {
                *text = text.replace(&number.written, number.written.trim_start_matches('$'));
            }
        }
    }
}

/// Gives every step a plain name that no earlier step has, and calls it by that everywhere. Of two with one name, the
/// later one gets another; the name alone means the first.
fn rename(plan: &mut Plan, done: &[&str]) {
    let mut taken: HashSet<String> = done.iter().map(|id| (*id).to_owned()).collect();
    let mut names: HashMap<String, String> = HashMap::new();
    let mut seen: HashSet<String> = HashSet::new();
    for (at, step) in plan.steps.iter_mut().enumerate() {
        let plain = plain_id(&step.id, at + 1);
        let mut id = plain.clone();
        let mut number = 1;
        while taken.contains(&id) {
            number += 1;
            id = format!("{plain}_{number}");
        }
        taken.insert(id.clone());
        let is_second = !seen.insert(step.id.clone());
        if id != step.id {
            let old = std::mem::replace(&mut step.id, id.clone());
            names.insert(if is_second { format!("{old}{number}") } else { old }, id);
        }
    }
    let ids: Vec<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let aliases = aliases(&ids, &names);
    for (at, step) in plan.steps.iter_mut().enumerate() {
        for need in &mut step.dependencies {
            *need = meant_step(need, &ids, &names, at);
        }
        for value in step.arguments.values_mut() {
            rewrite(value, &aliases, &ids);
        }
    }
}

fn plain_id(id: &str, number: usize) -> String {
    let plain: String = id
        .trim_start_matches('$')
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .take(48)
        .collect();
    let plain = plain.trim_matches('_');
    if is_id(id) {
        id.to_owned()
    } else if plain.is_empty() || !id.is_ascii() {
        format!("s{number}")
    } else {
        plain.to_owned()
    }
}

/// The step a dependency means: its name, its former name, or its place in the plan.
fn meant_step(need: &str, ids: &[String], names: &HashMap<String, String>, at: usize) -> String {
    if let Some(renamed) = names.get(need) {
        return renamed.clone();
    }
    if ids.iter().any(|id| id == need) {
        return need.to_owned();
    }
    let digits = need.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let place =
        digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|place| *place < at);
    place.and_then(|place| ids.get(place)).cloned().unwrap_or_else(|| need.to_owned())
}

/// What else a step may have been called in a reference, the longest first.
fn aliases(ids: &[String], names: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        names.iter().map(|(old, new)| (old.trim_start_matches('$').to_owned(), new.clone())).collect();
    let is_taken = |name: &str| ids.iter().any(|id| id == name);
    let called: Vec<(String, String)> =
        all.iter().cloned().chain(ids.iter().map(|id| (id.clone(), id.clone()))).collect();
    for (name, id) in called {
        for word in ["steps", "step"].into_iter().filter(|word| !is_taken(word)) {
            all.push((format!("{word}.{name}"), id.clone()));
            all.push((format!("{word}[\"{name}\"]"), id.clone()));
            all.push((format!("{word}['{name}']"), id.clone()));
        }
    }
    for id in ids {
        if id.bytes().all(|digit| digit.is_ascii_digit()) {
            for name in [format!("step_{id}"), format!("step{id}"), format!("s{id}")] {
                if !is_taken(&name) {
                    all.push((name, id.clone()));
                }
            }
        }
    }
    all.retain(|(old, _)| !old.is_empty());
    all.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
    all
}

fn rewrite(value: &mut Value, aliases: &[(String, String)], ids: &[String]) {
    match value {
        Value::String(text) if text.contains(['$', '{']) => {
            let braced = from_braces(text, ids, aliases);
            *text = renamed(&braced, aliases);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, aliases, ids)),
        Value::Object(entries) => entries.values_mut().for_each(|value| rewrite(value, aliases, ids)),
        _ => {}
    }
}

/// `{{read.cells}}` as `${read.cells}`, where a step has that name.
fn from_braces(text: &str, ids: &[String], aliases: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        let inner = inside.trim().trim_start_matches('$');
        let begins = |name: &str| {
            inner
                .strip_prefix(name)
                .is_some_and(|end| !end.starts_with(|l: char| l.is_ascii_alphanumeric() || l == '_'))
        };
        if ids.iter().any(|id| begins(id)) || aliases.iter().any(|(old, _)| begins(old)) {
            out.push_str("${");
            out.push_str(inner);
            out.push('}');
        } else {
            out.push_str("{{");
            out.push_str(inside);
            out.push_str("}}");
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The text with steps by their present names.
fn renamed(text: &str, aliases: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        out.push('$');
        let brace = if after.starts_with('{') { "{" } else { "" };
        let inner = after.get(brace.len()..).unwrap_or_default();
        let ends =
            |end: &&str| !end.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        let known =
            aliases.iter().find_map(|(old, new)| Some((new, inner.strip_prefix(old.as_str()).filter(ends)?)));
        rest = match known {
            // Two dollars are no reference.
            Some((new, end)) if !before.ends_with('$') && !out.ends_with("$$") => {
                out.push_str(brace);
                out.push_str(new);
                end
            }
            _ => after,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
