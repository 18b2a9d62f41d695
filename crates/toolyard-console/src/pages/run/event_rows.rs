//! The events of a run as rows of a table.

use serde_json::Value;

use crate::format::{duration, shorten};

/// Events on one page.
pub(crate) const EVENTS_PER_PAGE: usize = 150;
/// Characters of the text of a row.
const MAX_TEXT_CHARS: usize = 200;

/// One row of the table of events.
#[derive(Debug)]
pub(crate) struct EventRow {
    pub(crate) number: Option<i64>,
    pub(crate) kind: String,
    pub(crate) step: Option<String>,
    pub(crate) duration: Option<String>,
    pub(crate) text: String,
}

/// Fields that tell most about an event, the most important first.
const SUMMARY_FIELDS: [&str; 15] = [
    "state",
    "outcome",
    "allow",
    "scope",
    "by",
    "task",
    "question",
    "message",
    "output",
    "text",
    "arguments",
    "arguments_text",
    "answer",
    "words",
    "problems",
];

impl EventRow {
    pub(crate) fn of_event(event: &Value) -> Self {
        let text_of = |name: &str| event.get(name).and_then(Value::as_str);
        let mut parts: Vec<String> = Vec::new();
        for value in SUMMARY_FIELDS.iter().filter_map(|name| event.get(name)) {
            parts.extend(match value {
                Value::String(text) => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
                Value::Null => None,
                value => Some(value.to_string()),
            });
        }
        if let Some(steps) = event.get("steps").and_then(Value::as_array) {
            let ids = steps.iter().filter_map(|step| step.get("id").and_then(Value::as_str)).take(20);
            parts.push(ids.collect::<Vec<_>>().join(", "));
        }
        parts.retain(|part| !part.is_empty());
        Self {
            number: event.get("number").and_then(Value::as_i64),
            kind: shorten(text_of("type").unwrap_or_default(), 40).into_owned(),
            step: text_of("step").map(|step| shorten(step, 80).into_owned()),
            duration: event.get("duration_ms").and_then(Value::as_u64).map(duration),
            text: shorten(&parts.join(" · "), MAX_TEXT_CHARS).into_owned(),
        }
    }
}
