//! How two definitions of a tool differ, in lines that a person reads. Nothing in them can steer a terminal.

use std::collections::{HashMap, HashSet};

use toolyard_core::RawJson;

use super::{
    canonical::{Reading, canonical_value},
    text::brief,
    tree::{Tree, TreeError},
};

/// Levels that are read of a definition; more never gets a pin.
const DEPTH: usize = 64;
/// Changes that are listed; nobody reads more.
const MAX_CHANGES: usize = 40;
/// Characters shown of a value; a new parameter must not hide its description behind an ellipsis.
const VALUE: usize = 240;
/// Texts that have no more bytes together are shown whole, on one line.
const SHORT: usize = 80;
/// Characters shown of changed words, and of the words around them.
const WORDS: usize = 400;
const AROUND: usize = 24;
/// A word is shown whole up to this length.
const WORD: usize = 24;

/// The lines that say how `new` differs from `old`; none when only spelling and order do.
pub fn difference(old: &RawJson, new: &RawJson) -> Result<Vec<String>, TreeError> {
    Ok(between(&Tree::read(old.get(), DEPTH)?, &Tree::read(new.get(), DEPTH)?))
}

/// As [`difference`], for definitions that were read already.
pub(crate) fn between(old: &Tree, new: &Tree) -> Vec<String> {
    let mut changes = Changes { path: Vec::new(), lines: Vec::new(), count: 0 };
    changes.object(old, new, |key| match key {
        "inputSchema" | "outputSchema" => Reading::Schema,
        _ => Reading::Data,
    });
    if changes.count > MAX_CHANGES {
        changes.lines.push(format!("and {} more changes", changes.count - MAX_CHANGES));
    }
    changes.lines
}

struct Changes {
    path: Vec<String>,
    lines: Vec<String>,
    count: usize,
}

impl Changes {
    fn object(&mut self, old: &Tree, new: &Tree, reading: impl Fn(&str) -> Reading) {
        let after: HashMap<&str, &Tree> =
            new.fields().iter().map(|(key, value)| (key.as_str(), value)).collect();
        for (key, before) in old.fields() {
            self.path.push(key.clone());
            match after.get(key.as_str()) {
                Some(after) => self.value(before, after, reading(key)),
                None => {
                    self.changed(&format!("{} -> removed{}", value(before), self.risk(Some(before), None)));
                }
            }
            self.path.pop();
        }
        let before: HashSet<&str> = old.fields().iter().map(|(key, _)| key.as_str()).collect();
        for (key, after) in new.fields().iter().filter(|(key, _)| !before.contains(key.as_str())) {
            self.path.push(key.clone());
            self.changed(&format!("added: {}{}", value(after), self.risk(None, Some(after))));
            self.path.pop();
        }
    }

    fn value(&mut self, old: &Tree, new: &Tree, reading: Reading) {
        match (old, new) {
            (Tree::Object(_), Tree::Object(_)) => self.object(old, new, |key| reading.of_field(key)),
            (Tree::List(before), Tree::List(after)) if reading == Reading::Set => self.set(before, after),
            (Tree::List(before), Tree::List(after)) if before.len() == after.len() => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    self.path.push(index.to_string());
                    self.value(old, new, reading.of_items());
                    self.path.pop();
                }
            }
            (Tree::Text(before), Tree::Text(after)) if before != after => self.words(before, after),
            _ if canonical_value(old, reading) == canonical_value(new, reading) => {}
            _ => {
                let risk = self.risk(Some(old), Some(new));
                self.changed(&format!("{} -> {}{risk}", value(old), value(new)));
            }
        }
    }

    fn set(&mut self, old: &[Tree], new: &[Tree]) {
        let forms = |items: &[Tree]| -> Vec<String> {
            items.iter().map(|item| canonical_value(item, Reading::Data)).collect()
        };
        let (before, after) = (forms(old), forms(new));
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            let those: HashSet<&String> = those.iter().collect();
            these.iter().filter(|item| !those.contains(item)).map(|item| brief(item, VALUE)).collect()
        };
        let (removed, added) = (only(&before, &after), only(&after, &before));
        match (removed.is_empty(), added.is_empty(), before.len() == after.len()) {
            (true, true, true) => {}
            (true, true, false) => self.changed("the same item comes another number of times"),
            (true, false, _) => self.changed(&format!("added {}", few(&added))),
            (false, true, _) => self.changed(&format!("removed {}", few(&removed))),
            (false, false, _) => self.changed(&format!("removed {}, added {}", few(&removed), few(&added))),
        }
    }

    fn words(&mut self, old: &str, new: &str) {
        if old.len() + new.len() <= SHORT {
            self.changed(&format!("\"{}\" -> \"{}\"", brief(old, SHORT), brief(new, SHORT)));
        } else {
            let [before, after] = changed_words(old, new);
            self.changed_with("changed", [format!("  - {before}"), format!("  + {after}")]);
        }
    }

    fn changed(&mut self, what: &str) {
        self.changed_with(what, []);
    }

    /// Adds a line and those that belong to it, unless there are too many already.
    fn changed_with<const COUNT: usize>(&mut self, what: &str, more: [String; COUNT]) {
        self.count += 1;
        if self.count <= MAX_CHANGES {
            self.lines.push(format!("{}: {what}", place(&self.path)));
            self.lines.extend(more);
        }
    }

    /// What a change of a hint means.
    fn risk(&self, old: Option<&Tree>, new: Option<&Tree>) -> &'static str {
        let [annotations, hint] = self.path.as_slice() else { return "" };
        // What the protocol says of a hint that is missing, and whether the tool is riskier when it is true.
        let (missing, riskier) = match (annotations.as_str(), hint.as_str()) {
            ("annotations", "readOnlyHint" | "idempotentHint") => (false, false),
            ("annotations", "destructiveHint" | "openWorldHint") => (true, true),
            _ => return "",
        };
        let said = |tree: Option<&Tree>| match tree {
            Some(Tree::Bool(said)) => *said,
            _ => missing,
        };
        match (said(old) == riskier, said(new) == riskier) {
            (false, true) => " (the tool now says it is riskier)",
            (true, false) => " (the tool now says it is safer)",
            _ => "",
        }
    }
}

/// `parameter path.encoding, description` for a place in the schema of arguments.
fn place(path: &[String]) -> String {
    let shown = |parts: &[String]| -> String {
        parts.iter().map(|part| brief(part, VALUE)).collect::<Vec<_>>().join(".")
    };
    let (whose, mut rest) = match path.split_first() {
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
        (false, true) => format!("{whose} {}", shown(&names)),
        (false, false) => format!("{whose} {}, {}", shown(&names), shown(rest)),
    }
}

fn value(value: &Tree) -> String {
    brief(&value.to_text(), VALUE)
}

fn few(items: &[String]) -> String {
    let more = items.len().saturating_sub(8);
    let shown = items.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The part of two texts that differs, in whole words and with a little of what stands around it.
fn changed_words(old: &str, new: &str) -> [String; 2] {
    let texts = [old, new].map(|text| text.chars().collect::<Vec<char>>());
    let [before, after] = &texts;
    let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let shorter = before.len().min(after.len());
    let same_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let same_end = same_end.min(shorter - same);
    let inside = |letter: &&char| !letter.is_whitespace();
    let word_start = before.iter().take(same).rev().take(WORD).take_while(inside).count();
    let word_end = before.iter().skip(before.len() - same_end).take(WORD).take_while(inside).count();
    texts.each_ref().map(|text| window(text, same - word_start, text.len() - same_end + word_end))
}

fn window(text: &[char], start: usize, end: usize) -> String {
    let from = start.saturating_sub(AROUND);
    let shown_to = end.min(start + WORDS);
    let to = if shown_to < end { shown_to } else { (end + AROUND).min(text.len()) };
    let part: String = text.iter().skip(from).take(to - from).collect();
    let left_out = end - shown_to;
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    let shown = brief(&part, WORDS + 2 * AROUND);
    if left_out > 0 {
        format!("{left}{shown}… ({left_out} more characters changed)")
    } else {
        format!("{left}{shown}{right}")
    }
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
