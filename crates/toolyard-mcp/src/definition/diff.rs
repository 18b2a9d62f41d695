//! How two definitions of a tool differ, as lines that are safe on a terminal.

use std::collections::{HashMap, HashSet};

use toolyard_core::RawJson;

use super::{
    canonical::{SchemaRole, canonical_value},
    json_tree::{JsonTree, JsonTreeError},
    preview::preview,
};

/// Nesting levels; a deeper definition is never pinned.
const MAX_DEPTH: usize = 64;
/// Changes that are listed.
const MAX_CHANGES: usize = 40;
/// Characters of a value; enough that a new parameter shows its description.
const MAX_VALUE_CHARS: usize = 240;
/// Old and new texts with no more bytes together are shown whole, on one line.
const MAX_ONE_LINE_BYTES: usize = 80;
/// Characters of a changed passage.
const MAX_PASSAGE_CHARS: usize = 400;
/// Characters of context on each side of it.
const CONTEXT_CHARS: usize = 24;
/// Words at the edge of a passage are completed up to this length.
const MAX_WORD_CHARS: usize = 24;

/// The lines that describe how `new` differs from `old`; empty when the canonical forms are equal.
pub fn diff_definitions(old: &RawJson, new: &RawJson) -> Result<Vec<String>, JsonTreeError> {
    let old = &JsonTree::parse(old.get(), MAX_DEPTH)?;
    let new = &JsonTree::parse(new.get(), MAX_DEPTH)?;
    let mut changes = Changes { path: Vec::new(), lines: Vec::new(), count: 0 };
    changes.object(old, new, |key| match key {
        "inputSchema" | "outputSchema" => SchemaRole::Schema,
        _ => SchemaRole::Data,
    });
    if changes.count > MAX_CHANGES {
        changes.lines.push(format!("and {} more changes", changes.count - MAX_CHANGES));
    }
    Ok(changes.lines)
}

struct Changes {
    path: Vec<String>,
    lines: Vec<String>,
    count: usize,
}

impl Changes {
    fn object(&mut self, old: &JsonTree, new: &JsonTree, role: impl Fn(&str) -> SchemaRole) {
        let after: HashMap<&str, &JsonTree> =
            new.fields().iter().map(|(key, value)| (key.as_str(), value)).collect();
        for (key, before) in old.fields() {
            self.path.push(key.clone());
            match after.get(key.as_str()) {
                Some(after) => self.value(before, after, role(key)),
                None => {
                    self.changed(&format!(
                        "{} -> removed{}",
                        value(before),
                        self.describe_risk_change(Some(before), None)
                    ));
                }
            }
            self.path.pop();
        }
        let before: HashSet<&str> = old.fields().iter().map(|(key, _)| key.as_str()).collect();
        for (key, after) in new.fields().iter().filter(|(key, _)| !before.contains(key.as_str())) {
            self.path.push(key.clone());
            self.changed(&format!("added: {}{}", value(after), self.describe_risk_change(None, Some(after))));
            self.path.pop();
        }
    }

    fn value(&mut self, old: &JsonTree, new: &JsonTree, role: SchemaRole) {
        match (old, new) {
            (JsonTree::Object(_), JsonTree::Object(_)) => self.object(old, new, |key| role.of_field(key)),
            (JsonTree::List(before), JsonTree::List(after)) if role == SchemaRole::Set => {
                self.set(before, after);
            }
            (JsonTree::List(before), JsonTree::List(after)) if before.len() == after.len() => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    self.path.push(index.to_string());
                    self.value(old, new, role.of_items());
                    self.path.pop();
                }
            }
            (JsonTree::Text(before), JsonTree::Text(after)) if before != after => self.words(before, after),
            _ if canonical_value(old, role) == canonical_value(new, role) => {}
            _ => {
                let risk = self.describe_risk_change(Some(old), Some(new));
                self.changed(&format!("{} -> {}{risk}", value(old), value(new)));
            }
        }
    }

    fn set(&mut self, old: &[JsonTree], new: &[JsonTree]) {
        let forms = |items: &[JsonTree]| -> Vec<String> {
            items.iter().map(|item| canonical_value(item, SchemaRole::Data)).collect()
        };
        let (before, after) = (forms(old), forms(new));
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            let those: HashSet<&String> = those.iter().collect();
            these
                .iter()
                .filter(|item| !those.contains(item))
                .map(|item| preview(item, MAX_VALUE_CHARS))
                .collect()
        };
        let (removed, added) = (only(&before, &after), only(&after, &before));
        match (removed.is_empty(), added.is_empty(), before.len() == after.len()) {
            (true, true, true) => {}
            (true, true, false) => self.changed("number of equal items changed"),
            (true, false, _) => self.changed(&format!("added {}", join_preview(&added))),
            (false, true, _) => self.changed(&format!("removed {}", join_preview(&removed))),
            (false, false, _) => {
                self.changed(&format!("removed {}, added {}", join_preview(&removed), join_preview(&added)));
            }
        }
    }

    fn words(&mut self, old: &str, new: &str) {
        if old.len() + new.len() <= MAX_ONE_LINE_BYTES {
            self.changed(&format!(
                "\"{}\" -> \"{}\"",
                preview(old, MAX_ONE_LINE_BYTES),
                preview(new, MAX_ONE_LINE_BYTES)
            ));
        } else {
            let [before, after] = changed_passages(old, new);
            self.changed_with("changed", [format!("  - {before}"), format!("  + {after}")]);
        }
    }

    fn changed(&mut self, what: &str) {
        self.changed_with(what, []);
    }

    /// Counts a change and adds its lines, up to the limit.
    fn changed_with<const COUNT: usize>(&mut self, what: &str, more: [String; COUNT]) {
        self.count += 1;
        if self.count <= MAX_CHANGES {
            self.lines.push(format!("{}: {what}", describe_path(&self.path)));
            self.lines.extend(more);
        }
    }

    /// Whether a changed annotation makes the tool riskier or safer.
    fn describe_risk_change(&self, old: Option<&JsonTree>, new: Option<&JsonTree>) -> &'static str {
        let [annotations, hint] = self.path.as_slice() else { return "" };
        // The default of the protocol, and the value that means more risk.
        let (default, risky) = match (annotations.as_str(), hint.as_str()) {
            ("annotations", "readOnlyHint" | "idempotentHint") => (false, false),
            ("annotations", "destructiveHint" | "openWorldHint") => (true, true),
            _ => return "",
        };
        let hint_value = |tree: Option<&JsonTree>| match tree {
            Some(JsonTree::Bool(hint_value)) => *hint_value,
            _ => default,
        };
        match (hint_value(old) == risky, hint_value(new) == risky) {
            (false, true) => " (declared riskier)",
            (true, false) => " (declared safer)",
            _ => "",
        }
    }
}

/// `parameter path.encoding, description` for a path in the input schema.
fn describe_path(path: &[String]) -> String {
    let shown = |parts: &[String]| -> String {
        parts.iter().map(|part| preview(part, MAX_VALUE_CHARS)).collect::<Vec<_>>().join(".")
    };
    let (subject, mut rest) = match path.split_first() {
        Some((first, rest)) if first == "inputSchema" => ("parameter", rest),
        Some((first, rest)) if first == "outputSchema" => ("result", rest),
        _ => return shown(path),
    };
    let mut names = Vec::new();
    while let Some((name, after)) =
        rest.split_first().filter(|(word, _)| *word == "properties").and_then(|(_, rest)| rest.split_first())
    {
        names.push(name.clone());
        rest = after;
    }
    match (names.is_empty(), rest.is_empty()) {
        (true, _) => shown(path),
        (false, true) => format!("{subject} {}", shown(&names)),
        (false, false) => format!("{subject} {}, {}", shown(&names), shown(rest)),
    }
}

fn value(value: &JsonTree) -> String {
    preview(&value.to_text(), MAX_VALUE_CHARS)
}

fn join_preview(items: &[String]) -> String {
    let more = items.len().saturating_sub(8);
    let shown = items.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The passages in which two texts differ, in whole words and with some context.
fn changed_passages(old: &str, new: &str) -> [String; 2] {
    let texts = [old, new].map(|text| text.chars().collect::<Vec<char>>());
    let [before, after] = &texts;
    let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let shorter = before.len().min(after.len());
    let same_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let same_end = same_end.min(shorter - same);
    let inside = |letter: &&char| !letter.is_whitespace();
    let word_start = before.iter().take(same).rev().take(MAX_WORD_CHARS).take_while(inside).count();
    let word_end =
        before.iter().skip(before.len() - same_end).take(MAX_WORD_CHARS).take_while(inside).count();
    texts.each_ref().map(|text| window(text, same - word_start, text.len() - same_end + word_end))
}

fn window(text: &[char], start: usize, end: usize) -> String {
    let from = start.saturating_sub(CONTEXT_CHARS);
    let shown_to = end.min(start + MAX_PASSAGE_CHARS);
    let to = if shown_to < end { shown_to } else { (end + CONTEXT_CHARS).min(text.len()) };
    let part: String = text.iter().skip(from).take(to - from).collect();
    let left_out = end - shown_to;
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    let shown = preview(&part, MAX_PASSAGE_CHARS + 2 * CONTEXT_CHARS);
    if left_out > 0 {
        format!("{left}{shown}… ({left_out} more characters changed)")
    } else {
        format!("{left}{shown}{right}")
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
