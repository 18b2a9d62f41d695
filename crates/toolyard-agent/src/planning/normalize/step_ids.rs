//! Gives steps unique, valid ids and rewrites dependencies and references to them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::{plan::Plan, plan_check::is_valid_id};

/// Length of an id derived from an invalid one; leaves room for a suffix.
const MAX_DERIVED_ID_CHARS: usize = 48;

/// Gives every step a valid id that no other step has. Of two steps with the same id, the later one is renamed; references
/// by that id mean the first.
pub(super) fn assign_ids(plan: &mut Plan, finished: &[&str]) {
    let mut taken: HashSet<String> = finished.iter().map(|id| (*id).to_owned()).collect();
    let mut renamed: HashMap<String, String> = HashMap::new();
    let mut written_ids: HashSet<String> = HashSet::new();
    for (at, step) in plan.steps.iter_mut().enumerate() {
        let base = valid_id(&step.id, at + 1);
        let mut id = base.clone();
        let mut suffix = 1;
        while taken.contains(&id) {
            suffix += 1;
            id = format!("{base}_{suffix}");
        }
        taken.insert(id.clone());
        let is_duplicate = !written_ids.insert(step.id.clone());
        if id != step.id {
            let old = std::mem::replace(&mut step.id, id.clone());
            // Of two steps `read`, the second is now `read_2`; `read2` means it too.
            renamed.insert(if is_duplicate { format!("{old}{suffix}") } else { old }, id);
        }
    }
    let ids: Vec<String> = plan.steps.iter().map(|step| step.id.clone()).collect();
    let aliases = aliases(&ids, &renamed);
    for (at, step) in plan.steps.iter_mut().enumerate() {
        for dependency in &mut step.dependencies {
            *dependency = resolve_dependency(dependency, &ids, &renamed, at);
        }
        for value in step.arguments.values_mut() {
            rewrite_references(value, &aliases, &ids);
        }
    }
}

/// A valid id derived from the given one, else `s` and the step's number.
fn valid_id(id: &str, number: usize) -> String {
    let plain: String = id
        .trim_start_matches('$')
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .take(MAX_DERIVED_ID_CHARS)
        .collect();
    let plain = plain.trim_matches('_');
    if is_valid_id(id) {
        id.to_owned()
    } else if plain.is_empty() || !id.is_ascii() {
        format!("s{number}")
    } else {
        plain.to_owned()
    }
}

/// The id of the step that a dependency means: by its former id, its id, or its position before `step_position` in the plan.
fn resolve_dependency(
    dependency: &str,
    ids: &[String],
    renamed: &HashMap<String, String>,
    step_position: usize,
) -> String {
    if let Some(id) = renamed.get(dependency) {
        return id.clone();
    }
    if ids.iter().any(|id| id == dependency) {
        return dependency.to_owned();
    }
    let digits = dependency.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let position = digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1))
        .filter(|position| *position < step_position);
    position.and_then(|position| ids.get(position)).cloned().unwrap_or_else(|| dependency.to_owned())
}

/// Other spellings by which references may name a step, with its id; the longest first.
fn aliases(ids: &[String], renamed: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        renamed.iter().map(|(old, new)| (old.trim_start_matches('$').to_owned(), new.clone())).collect();
    let is_taken = |name: &str| ids.iter().any(|id| id == name);
    let named: Vec<(String, String)> =
        all.iter().cloned().chain(ids.iter().map(|id| (id.clone(), id.clone()))).collect();
    for (name, id) in named {
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

fn rewrite_references(value: &mut Value, aliases: &[(String, String)], ids: &[String]) {
    match value {
        Value::String(text) if text.contains(['$', '{']) => {
            let braced = convert_double_braces(text, ids, aliases);
            *text = replace_aliases(&braced, aliases);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_references(item, aliases, ids)),
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| rewrite_references(value, aliases, ids));
        }
        _ => {}
    }
}

/// Converts `{{read.cells}}` to `${read.cells}` if a step has that id.
fn convert_double_braces(text: &str, ids: &[String], aliases: &[(String, String)]) -> String {
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
        let starts_with = |name: &str| {
            inner
                .strip_prefix(name)
                .is_some_and(|end| !end.starts_with(|l: char| l.is_ascii_alphanumeric() || l == '_'))
        };
        if ids.iter().any(|id| starts_with(id)) || aliases.iter().any(|(old, _)| starts_with(old)) {
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

fn replace_aliases(text: &str, aliases: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        out.push('$');
        let brace = if after.starts_with('{') { "{" } else { "" };
        let inner = after.get(brace.len()..).unwrap_or_default();
        let is_word_end =
            |end: &&str| !end.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        let known = aliases
            .iter()
            .find_map(|(old, new)| Some((new, inner.strip_prefix(old.as_str()).filter(is_word_end)?)));
        rest = match known {
            // `$$` is a literal dollar sign.
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
