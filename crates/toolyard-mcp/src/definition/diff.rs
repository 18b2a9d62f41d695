//! How two definitions of a tool differ, as lines that are safe on a terminal.

use std::collections::{HashMap, HashSet};

use toolyard_core::RawJson;

use super::{
    canonical::{SchemaRole, canonical_value},
    json_tree::{JsonTree, JsonTreeError, MAX_DEPTH},
    preview::preview,
};

/// Further changes are only counted.
const MAX_CHANGES: usize = 40;
/// Items of a set that are listed as added or removed.
const MAX_SET_ITEMS: usize = 8;
/// Characters of a value; enough that a new parameter shows its description.
const MAX_VALUE_CHARS: usize = 240;
/// Old and new texts with no more bytes together are shown whole, on one line.
const MAX_ONE_LINE_BYTES: usize = 80;
/// Characters of a changed passage of a longer text.
const MAX_PASSAGE_CHARS: usize = 400;
/// Characters of context on each side of a passage.
const CONTEXT_CHARS: usize = 24;
/// Words at the edge of a passage are completed up to this length.
const MAX_WORD_CHARS: usize = 24;

/// The lines that describe how `new` differs from `old`; empty when the canonical forms are equal.
pub fn diff_definitions(old: &RawJson, new: &RawJson) -> Result<Vec<String>, JsonTreeError> {
    let old = &JsonTree::parse(old.get(), MAX_DEPTH)?;
    let new = &JsonTree::parse(new.get(), MAX_DEPTH)?;
    let mut changes = Changes { path: Vec::new(), lines: Vec::new(), count: 0 };
    changes.diff_object(old, new, |key| match key {
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
    fn diff_object(&mut self, old: &JsonTree, new: &JsonTree, role: impl Fn(&str) -> SchemaRole) {
        let after: HashMap<&str, &JsonTree> =
            new.fields().iter().map(|(key, value)| (key.as_str(), value)).collect();
        for (key, before) in old.fields() {
            self.path.push(key.clone());
            match after.get(key.as_str()) {
                Some(after) => self.diff_value(before, after, role(key)),
                None => {
                    self.add_change(&format!(
                        "{} -> removed{}",
                        preview_value(before),
                        self.describe_risk_change(Some(before), None)
                    ));
                }
            }
            self.path.pop();
        }
        let before: HashSet<&str> = old.fields().iter().map(|(key, _)| key.as_str()).collect();
        for (key, after) in new.fields().iter().filter(|(key, _)| !before.contains(key.as_str())) {
            self.path.push(key.clone());
            self.add_change(&format!(
                "added: {}{}",
                preview_value(after),
                self.describe_risk_change(None, Some(after))
            ));
            self.path.pop();
        }
    }

    fn diff_value(&mut self, old: &JsonTree, new: &JsonTree, role: SchemaRole) {
        match (old, new) {
            (JsonTree::Object(_), JsonTree::Object(_)) => {
                self.diff_object(old, new, |key| role.of_field(key));
            }
            (JsonTree::List(before), JsonTree::List(after)) if role == SchemaRole::Set => {
                self.diff_set(before, after);
            }
            (JsonTree::List(before), JsonTree::List(after)) if before.len() == after.len() => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    self.path.push(index.to_string());
                    self.diff_value(old, new, role.of_items());
                    self.path.pop();
                }
            }
            (JsonTree::Text(before), JsonTree::Text(after)) if before != after => {
                self.diff_text(before, after);
            }
            _ if canonical_value(old, role) == canonical_value(new, role) => {}
            _ => {
                let risk = self.describe_risk_change(Some(old), Some(new));
                self.add_change(&format!("{} -> {}{risk}", preview_value(old), preview_value(new)));
            }
        }
    }

    fn diff_set(&mut self, old: &[JsonTree], new: &[JsonTree]) {
        let canonical_forms = |items: &[JsonTree]| -> Vec<String> {
            items.iter().map(|item| canonical_value(item, SchemaRole::Data)).collect()
        };
        let (before, after) = (canonical_forms(old), canonical_forms(new));
        let difference = |these: &[String], those: &[String]| -> Vec<String> {
            let those: HashSet<&String> = those.iter().collect();
            these
                .iter()
                .filter(|item| !those.contains(item))
                .map(|item| preview(item, MAX_VALUE_CHARS))
                .collect()
        };
        let (removed, added) = (difference(&before, &after), difference(&after, &before));
        match (removed.is_empty(), added.is_empty(), before.len() == after.len()) {
            (true, true, true) => {}
            (true, true, false) => self.add_change("number of equal items changed"),
            (true, false, _) => self.add_change(&format!("added {}", join_preview(&added))),
            (false, true, _) => self.add_change(&format!("removed {}", join_preview(&removed))),
            (false, false, _) => {
                self.add_change(&format!(
                    "removed {}, added {}",
                    join_preview(&removed),
                    join_preview(&added)
                ));
            }
        }
    }

    fn diff_text(&mut self, old: &str, new: &str) {
        if old.len() + new.len() <= MAX_ONE_LINE_BYTES {
            self.add_change(&format!(
                "\"{}\" -> \"{}\"",
                preview(old, MAX_ONE_LINE_BYTES),
                preview(new, MAX_ONE_LINE_BYTES)
            ));
        } else {
            let [before, after] = changed_passages(old, new);
            self.add_change_with_lines("changed", [format!("  - {before}"), format!("  + {after}")]);
        }
    }

    fn add_change(&mut self, change: &str) {
        self.add_change_with_lines(change, []);
    }

    /// Counts a change and adds its lines, up to the limit.
    fn add_change_with_lines<const COUNT: usize>(&mut self, change: &str, lines: [String; COUNT]) {
        self.count += 1;
        if self.count <= MAX_CHANGES {
            self.lines.push(format!("{}: {change}", describe_path(&self.path)));
            self.lines.extend(lines);
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
    let join = |parts: &[String]| -> String {
        parts.iter().map(|part| preview(part, MAX_VALUE_CHARS)).collect::<Vec<_>>().join(".")
    };
    let (subject, mut rest) = match path.split_first() {
        Some((first, rest)) if first == "inputSchema" => ("parameter", rest),
        Some((first, rest)) if first == "outputSchema" => ("result", rest),
        _ => return join(path),
    };
    let mut names = Vec::new();
    while let Some((name, after)) =
        rest.split_first().filter(|(word, _)| *word == "properties").and_then(|(_, rest)| rest.split_first())
    {
        names.push(name.clone());
        rest = after;
    }
    match (names.is_empty(), rest.is_empty()) {
        (true, _) => join(path),
        (false, true) => format!("{subject} {}", join(&names)),
        (false, false) => format!("{subject} {}, {}", join(&names), join(rest)),
    }
}

fn preview_value(value: &JsonTree) -> String {
    preview(&value.to_text(), MAX_VALUE_CHARS)
}

fn join_preview(items: &[String]) -> String {
    let more = items.len().saturating_sub(MAX_SET_ITEMS);
    let shown = items.iter().take(MAX_SET_ITEMS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The passages in which two texts differ, in whole words and with some context.
fn changed_passages(old: &str, new: &str) -> [String; 2] {
    let texts = [old, new].map(|text| text.chars().collect::<Vec<char>>());
    let [before, after] = &texts;
    let same_start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let shorter = before.len().min(after.len());
    let same_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let same_end = same_end.min(shorter - same_start);
    let is_in_word = |character: &&char| !character.is_whitespace();
    let word_start = before.iter().take(same_start).rev().take(MAX_WORD_CHARS).take_while(is_in_word).count();
    let word_end =
        before.iter().skip(before.len() - same_end).take(MAX_WORD_CHARS).take_while(is_in_word).count();
    texts.each_ref().map(|text| passage(text, same_start - word_start, text.len() - same_end + word_end))
}

fn passage(text: &[char], start: usize, end: usize) -> String {
    let from = start.saturating_sub(CONTEXT_CHARS);
    let shown_to = end.min(start + MAX_PASSAGE_CHARS);
    let to = if shown_to < end { shown_to } else { (end + CONTEXT_CHARS).min(text.len()) };
    let part: String = text.iter().skip(from).take(to - from).collect();
    let omitted_chars = end - shown_to;
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    let shown = preview(&part, MAX_PASSAGE_CHARS + 2 * CONTEXT_CHARS);
    if omitted_chars > 0 {
        format!("{left}{shown}… ({omitted_chars} more characters changed)")
    } else {
        format!("{left}{shown}{right}")
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
