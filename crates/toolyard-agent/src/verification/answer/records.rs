//! Records in results, such as the events of a calendar, and which of them a changing call refers to.

use serde_json::Value;

use super::{
    fact::{StepFact, joined_leaves, leaves},
    text::{contains_word, is_chinese},
};

/// Records of one result at most; longer lists are not compared.
const MAX_RECORDS: usize = 200;
/// Arguments that are compared with records at most.
const MAX_IDS: usize = 200;

/// One of several records of a result, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) text: String,
    /// The values of its fields that can stand for it in a sentence.
    pub(super) names: Vec<String>,
    /// What records of the same kind have in common: keys, flags and short values of an object, or how a line starts.
    kind: Vec<String>,
}

impl Record {
    /// Whether two records are of the same kind and in the same state.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The records that changing calls refer to by an id or a name, and the others of the same results.
#[derive(Debug, Default)]
pub(super) struct LinkedRecords {
    pub(super) linked: Vec<Record>,
    pub(super) others: Vec<Record>,
    /// Those of the others that a change of all records would have referred to.
    pub(super) missable: Vec<Record>,
}

impl LinkedRecords {
    /// Compares the records of each reading step with the arguments of the steps that made changes.
    pub(super) fn of(steps: &[StepFact]) -> Self {
        let ids: Vec<String> = steps
            .iter()
            .filter(|step| step.is_effective())
            .flat_map(|step| leaves(&Value::Object(step.arguments.clone())))
            .map(|leaf| leaf.to_lowercase())
            .filter(|leaf| (2..=80).contains(&leaf.chars().count()))
            .chain(steps.iter().filter(|step| step.is_effective()).flat_map(short_ids))
            .take(MAX_IDS)
            .collect();
        // A call with whole records passes on their content, and leaves out what is to be removed.
        let has_records = |value: &Value| {
            value.as_array().is_some_and(|items| items.iter().any(|item| item.is_object() || item.is_array()))
        };
        let passes_content = steps
            .iter()
            .filter(|step| step.is_effective())
            .any(|step| step.arguments.values().any(has_records));
        let mut found = Self::default();
        for step in steps.iter().filter(|step| step.is_done() && !step.changes) {
            for group in record_groups(&step.result) {
                let distinguishing: Vec<&String> = ids
                    .iter()
                    .filter(|id| !group.iter().all(|record| contains_word(&record.text, id)))
                    .collect();
                let is_linked = |record: &&Record| {
                    distinguishing.iter().any(|id| contains_word(&record.text, id))
                        || ids.iter().any(|id| {
                            record.names.iter().any(|name| id.contains('/') && contains_word(id, name))
                        })
                };
                let (linked, others): (Vec<&Record>, Vec<&Record>) = group.iter().partition(is_linked);
                if !linked.is_empty() && !passes_content {
                    found.missable.extend(others.iter().copied().cloned());
                }
                if !linked.is_empty() {
                    found.linked.extend(linked.into_iter().cloned());
                    found.others.extend(others.into_iter().cloned());
                }
            }
        }
        found
    }
}

/// Ids of one digit, as records show them: `id: 2`.
fn short_ids(step: &StepFact) -> Vec<String> {
    let ids = step.arguments.iter().filter_map(|(key, value)| {
        let value = value.as_u64().filter(|value| *value < 10)?;
        let key = key.to_lowercase();
        let name = ["id", "number"].into_iter().find(|name| key.ends_with(name))?;
        Some(format!("{name}: {value}"))
    });
    ids.collect()
}

/// Groups of at least two records.
fn record_groups(result: &Value) -> Vec<Vec<Record>> {
    let mut groups = Vec::new();
    match result {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => collect_groups(&value, &mut groups),
            _ => groups.extend(text_records(text)),
        },
        other => collect_groups(other, &mut groups),
    }
    groups
}

fn collect_groups(value: &Value, groups: &mut Vec<Vec<Record>>) {
    match value {
        Value::Array(items) => {
            if items.len() >= 2 && items.len() <= MAX_RECORDS {
                groups.push(items.iter().map(value_record).collect());
            }
            items.iter().for_each(|item| collect_groups(item, groups));
        }
        Value::Object(entries) => entries.values().for_each(|item| collect_groups(item, groups)),
        _ => {}
    }
}

fn value_record(value: &Value) -> Record {
    let names =
        leaves(value).iter().map(|leaf| leaf.trim().to_lowercase()).filter(|leaf| is_name(leaf)).collect();
    let kind = value.as_object().into_iter().flatten().map(|(key, field)| match field {
        Value::Bool(flag) => format!("{key}={flag}"),
        Value::String(text) if is_state(key) => format!("{key}={text}"),
        _ => key.clone(),
    });
    Record { text: joined_leaves(value).to_lowercase(), names, kind: kind.collect() }
}

/// Whether the values of a field say which state or kind a record has.
fn is_state(key: &str) -> bool {
    const KEYS: [&str; 9] =
        ["status", "state", "type", "kind", "category", "priority", "role", "level", "label"];
    KEYS.iter().any(|known| key.to_lowercase().contains(known))
}

/// Blocks of lines, or lines, if there are several.
fn text_records(text: &str) -> Option<Vec<Record>> {
    let text = text.to_lowercase();
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| !block.trim().is_empty()).collect();
    // Lines with fields belong to one record.
    let is_field = |line: &str| {
        let field = line.split_once(": ").map_or("", |(field, _)| field);
        !field.is_empty()
            && field.len() <= 20
            && field.chars().all(|letter| letter.is_alphabetic() || letter == ' ')
    };
    if blocks.len() < 2 && text.lines().any(is_field) {
        return None;
    }
    let parts: Vec<&str> = if blocks.len() >= 2 {
        blocks
    } else {
        text.lines().filter(|line| !line.trim().is_empty()).collect()
    };
    ((2..=MAX_RECORDS).contains(&parts.len())).then(|| parts.into_iter().map(text_record).collect())
}

fn text_record(text: &str) -> Record {
    let names = text.lines().flat_map(|line| {
        // `[file] a.txt`
        let line =
            line.split_once("] ").filter(|(tag, _)| tag.starts_with('[')).map_or(line, |(_, rest)| rest);
        let line = line.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || letter.is_whitespace() || "-*.)[]#".contains(letter)
        });
        let value = line.split_once(": ").map_or(line, |(_, value)| value);
        [value.trim().trim_matches('\'').to_owned()]
    });
    let kind = text.lines().map(|line| match line.split_once(": ") {
        Some((field, _)) if field.chars().all(char::is_alphabetic) => field.to_owned(),
        _ => line
            .split(' ')
            .next()
            .filter(|start| start.starts_with(['[', '-', '*']))
            .unwrap_or_default()
            .to_owned(),
    });
    let names: Vec<String> = names.filter(|name| is_name(name)).collect();
    let kind = kind.chain(names.iter().map(|name| extension(name).to_owned())).collect();
    Record { text: text.to_owned(), names, kind }
}

/// Files of another kind are other records.
fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether a value can stand for its record in a sentence: a few words, neither a number nor a date.
fn is_name(value: &str) -> bool {
    let length = value.chars().count();
    let letters = value.chars().filter(|letter| letter.is_alphabetic()).count();
    let is_long_enough = value.chars().any(is_chinese) && length >= 2 || length >= 4;
    is_long_enough
        && length <= 60
        && letters * 2 > length
        && !matches!(value, "true" | "false" | "null" | "none")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_record_that_a_call_refers_to_is_found() {
        let list = StepFact {
            tool: "list-events".to_owned(),
            result: json!("Found 2 event(s):\n\n1. 牙医\nEvent ID: ev81\n\n2. 团队周会\nEvent ID: ev82"),
            ..StepFact::default()
        };
        let delete = StepFact {
            tool: "delete-event".to_owned(),
            changes: true,
            arguments: json!({"calendarId": "primary", "eventId": "ev82"}).as_object().unwrap().clone(),
            result: json!("Event deleted successfully"),
            ..StepFact::default()
        };
        let records = LinkedRecords::of(&[list, delete]);
        assert_eq!(records.linked.len(), 1);
        assert!(records.linked[0].names.contains(&"团队周会".to_owned()), "{records:?}");
        assert!(records.others.iter().any(|record| record.names.contains(&"牙医".to_owned())));
    }
}
