//! Steps that failed, and whose work another step did.

use serde_json::Value;

use super::{
    UnfinishedStep,
    fact::{FactOutcome, StepFact, leaves},
    text::{contains_word, name_words, words},
};

/// The steps that were planned and not done, unless another step did their work.
pub(super) fn unfinished_steps(steps: &[StepFact]) -> Vec<UnfinishedStep> {
    let unfinished = steps.iter().enumerate().filter_map(|(at, step)| {
        let reason = match &step.outcome {
            FactOutcome::Unfinished { reason } => reason.clone(),
            FactOutcome::Done => step.denial()?.to_owned(),
        };
        let is_replaced = steps
            .iter()
            .enumerate()
            // A change is made good by a later one; one before it is another change.
            .filter(|(other_at, _)| if step.changes { *other_at > at } else { *other_at != at })
            .any(|(_, other)| replaces(step, &reason, other, steps));
        // Of a call that failed several times, the last attempt is named.
        let is_repeated = steps
            .iter()
            .skip(at + 1)
            .any(|other| other.tool == step.tool && other.arguments == step.arguments);
        (!is_replaced && !is_repeated).then(|| UnfinishedStep {
            step: step.id.clone(),
            tool: step.tool.clone(),
            reason,
        })
    });
    unfinished.collect()
}

/// Whether `other` did the work of a step that failed with `reason`. It must have been about the same things; an argument that
/// the reason names may have been corrected. Something may be read in another way.
fn replaces(step: &StepFact, reason: &str, other: &StepFact, steps: &[StepFact]) -> bool {
    // First, because a plan may have hundreds of failed steps.
    if !other.is_done() || (step.changes && !other.changes) {
        return false;
    }
    let (missing, given) = (texts(step), texts(other));
    // A command names files within it; a record that was read gives the id of a name.
    let is_in_command = |text: &String| {
        text.len() > 3 && !is_plain(text) && given.iter().any(|other| contains_word(other, text))
    };
    let is_given = |text: &String| {
        given.iter().any(|other| is_same(text, other)) || is_in_command(text) || is_id_of(text, &given, steps)
    };
    let is_same_tool = is_same_name(&step.tool, &other.tool);
    let reason = reason.to_lowercase();
    // An argument may have been corrected if the reason names its value or its key.
    let reason_words = words(&reason);
    let is_named_key = |text: &String| {
        step.arguments.iter().any(|(key, value)| {
            let is_value = value.as_str().is_some_and(|value| value.trim().to_lowercase() == *text);
            is_value && name_words(key).iter().any(|word| word.len() > 2 && reason_words.contains(word))
        })
    };
    // Another file than the one that could not be changed is another change.
    let is_other_file = |text: &String| step.changes && text.contains('/');
    let is_corrected = |text: &String| {
        is_same_tool
            && text.len() > 1
            && !is_other_file(text)
            && (reason.contains(text.as_str()) || is_named_key(text))
    };
    // Of a statement, only the words that the reason names may differ.
    let is_rewritten =
        |text: &String| is_same_tool && given.iter().any(|other| is_rewritten(text, other, &reason));
    let is_repeated = missing.iter().all(|text| is_given(text) || is_rewritten(text) || is_corrected(text))
        && (missing.is_empty() && is_same_tool
            || missing.iter().any(|text| is_given(text) || is_rewritten(text)));
    if step.changes {
        return other.is_effective() && !missing.is_empty() && is_repeated;
    }
    // A later plan finds another way to read something, and so does another tool with one of the arguments.
    let is_replanned = other.round > step.round && !other.changes;
    let is_other_way = !is_same_tool && missing.iter().filter(|text| !is_plain(text)).any(is_given);
    other.is_done() && (is_replanned || is_repeated || is_other_way)
}

/// Whether a record that was read has both the text and one of the values: the id of the card that a call named.
fn is_id_of(text: &str, values: &[String], steps: &[StepFact]) -> bool {
    fn has_record(value: &Value, text: &str, values: &[String]) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| has_record(item, text, values)),
            Value::Object(entries) => {
                let scalars: Vec<String> = entries
                    .values()
                    .filter(|entry| !entry.is_array() && !entry.is_object())
                    .flat_map(leaves)
                    .map(|leaf| leaf.trim().to_lowercase())
                    .collect();
                (scalars.iter().any(|leaf| leaf == text)
                    && scalars.iter().any(|leaf| leaf != text && values.contains(leaf)))
                    || entries.values().any(|entry| has_record(entry, text, values))
            }
            _ => false,
        }
    }
    let mut read = steps.iter().filter(|step| step.is_done() && !step.changes);
    !is_plain(text) && read.any(|step| has_record(&step.result, text, values))
}

/// Whether two tools have the same name, but for its ending: `exec` and `execute`.
fn is_same_name(one: &str, other: &str) -> bool {
    one == other || (one.len().min(other.len()) >= 4 && (one.starts_with(other) || other.starts_with(one)))
}

/// Whether two texts of several words differ in words only that the reason of a failure names.
fn is_rewritten(text: &str, other: &str, reason: &str) -> bool {
    let (old, new) = (words(text), words(other));
    let lost: Vec<&String> = old.iter().filter(|word| !new.contains(word)).collect();
    old.len() >= 4 && lost.len() * 2 < old.len() && lost.iter().all(|word| reason.contains(word.as_str()))
}

/// Whether an argument names nothing: a number or a flag.
fn is_plain(text: &str) -> bool {
    matches!(text, "true" | "false") || text.parse::<f64>().is_ok()
}

fn texts(step: &StepFact) -> Vec<String> {
    let texts = leaves(&Value::Object(step.arguments.clone()));
    texts.iter().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty()).collect()
}

/// Whether two arguments mean the same: one may be the full path of the other.
fn is_same(one: &str, other: &str) -> bool {
    let contains = |one: &str, other: &str| other.chars().count() >= 4 && one.ends_with(other);
    one == other || contains(one, other) || contains(other, one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(arguments: &Value, failure: Option<&str>) -> StepFact {
        StepFact {
            tool: "write_file".to_owned(),
            changes: true,
            arguments: arguments.as_object().unwrap().clone(),
            result: json!("ok"),
            outcome: failure
                .map_or(FactOutcome::Done, |reason| FactOutcome::Unfinished { reason: reason.to_owned() }),
            ..StepFact::default()
        }
    }

    #[test]
    fn a_retry_replaces_a_failed_change_and_another_change_does_not() {
        let failed = write(&json!({"path": "a.txt", "content": "x"}), Some("busy"));
        let same = write(&json!({"path": "/data/a.txt", "content": "x"}), None);
        let other = write(&json!({"path": "b.txt", "content": "x"}), None);
        assert!(unfinished_steps(&[failed.clone(), same]).is_empty());
        assert_eq!(unfinished_steps(&[failed, other]).len(), 1);
        let moved =
            |source: &str, failure| write(&json!({"source": source, "destination": "/invoices"}), failure);
        let failed = moved("/in/b.pdf", Some("/in/b.pdf is locked"));
        assert_eq!(unfinished_steps(&[moved("/in/a.pdf", None), failed]).len(), 1, "another file");
        let wrong = write(&json!({"path": "a.txt", "sheet": "Tabelle"}), Some("sheet 'Tabelle' not found"));
        let corrected = write(&json!({"path": "a.txt", "sheet": "Sheet1"}), None);
        assert!(unfinished_steps(&[wrong, corrected]).is_empty());
        let read = |path: &str, failure| StepFact {
            changes: false,
            ..write(&json!({"path": path, "head": 9}), failure)
        };
        assert_eq!(unfinished_steps(&[read("a.txt", Some("gone")), read("b.txt", None)]).len(), 1);
        assert!(unfinished_steps(&[read("a.txt", Some("gone")), read("/x/a.txt", None)]).is_empty());
    }
}
