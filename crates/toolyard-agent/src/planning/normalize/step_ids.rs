//! Gives steps unique, valid ids and rewrites dependencies and references to them. Ids of native calls come from the provider, and
//! a plan for the rest of a task begins with `s1` again, so that the model cannot be asked for others.

use std::collections::HashSet;

use serde_json::Value;

use super::super::{plan::Plan, plan_check::is_valid_id};

/// Gives every step a valid id that no other step has. Of two steps with the same id, the later one is renamed; references
/// by that id mean the first.
pub(super) fn assign_ids(plan: &mut Plan, finished: &[&str]) {
    let mut taken: HashSet<String> = finished.iter().map(|id| (*id).to_owned()).collect();
    let mut written: HashSet<String> = HashSet::new();
    let mut renamed: Vec<(String, String)> = Vec::new();
    for (at, step) in plan.steps.iter_mut().enumerate() {
        let base = if is_valid_id(&step.id) { step.id.clone() } else { format!("s{}", at + 1) };
        let mut id = base.clone();
        let mut suffix = 1;
        while taken.contains(&id) {
            suffix += 1;
            id = format!("{base}_{suffix}");
        }
        taken.insert(id.clone());
        let is_first = written.insert(step.id.clone());
        let old = std::mem::replace(&mut step.id, id.clone());
        if old != id && is_first && !old.is_empty() {
            renamed.push((old, id));
        }
    }
    // Of two ids of which one begins with the other, the longer one is meant.
    renamed.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
    for step in &mut plan.steps {
        for dependency in &mut step.dependencies {
            if let Some((_, id)) = renamed.iter().find(|(old, _)| old == dependency) {
                dependency.clone_from(id);
            }
        }
        step.arguments.values_mut().for_each(|value| rewrite_references(value, &renamed));
    }
}

fn rewrite_references(value: &mut Value, renamed: &[(String, String)]) {
    match value {
        Value::String(text) if text.contains('$') => *text = replace_ids(text, renamed),
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_references(item, renamed)),
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| rewrite_references(value, renamed));
        }
        _ => {}
    }
}

/// Replaces `$old` and `${old` by the new ids.
fn replace_ids(text: &str, renamed: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        out.push('$');
        let brace = if after.starts_with('{') { "{" } else { "" };
        let inner = after.get(brace.len()..).unwrap_or_default();
        let is_word_end =
            |end: &&str| !end.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        let known = renamed
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
