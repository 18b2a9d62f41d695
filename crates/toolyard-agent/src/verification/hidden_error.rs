//! Errors that came as if they were results. What may as well be a good result is only doubted.

use serde_json::{Map, Value};
use toolyard_core::RawJson;

use crate::{
    NO_TOOL,
    tool_name::{only_reads, words},
};

/// A longer text that begins like an error is something else.
const LONGEST_ERROR: usize = 600;
/// A longer sentence that begins like one is prose.
const LONGEST_SENTENCE: usize = 200;
/// An object that has nothing else is nothing but an error.
const ERROR_FIELDS: [&str; 22] = [
    "error",
    "errors",
    "error_code",
    "error_message",
    "error_type",
    "message",
    "msg",
    "code",
    "detail",
    "details",
    "reason",
    "hint",
    "type",
    "status",
    "status_code",
    "success",
    "ok",
    "traceback",
    "stack",
    "path",
    "request_id",
    "timestamp",
];
/// With what nothing but errors begins.
const ERROR_STARTS: [&str; 12] = [
    "error:",
    "[error]",
    "errors:",
    "exception:",
    "failed:",
    "failure:",
    "fatal:",
    "错误：",
    "错误:",
    "失败：",
    "失败:",
    "出错",
];
/// With what errors begin, and much else.
const SENTENCE_STARTS: [&str; 5] = ["error ", "error-", "failed to ", "unable to ", "could not "];
const TRACEBACK: &str = "traceback (most recent call last)";
/// Words in names of tools that say how something else is doing, or pass on what others wrote.
const PASSED_ON: [&str; 44] = [
    "status",
    "state",
    "health",
    "log",
    "logs",
    "error",
    "errors",
    "issue",
    "issues",
    "build",
    "builds",
    "job",
    "jobs",
    "task",
    "tasks",
    "test",
    "tests",
    "check",
    "checks",
    "validate",
    "lint",
    "monitor",
    "event",
    "events",
    "audit",
    "history",
    "mail",
    "mails",
    "email",
    "message",
    "messages",
    "chat",
    "page",
    "web",
    "url",
    "fetch",
    "file",
    "text",
    "document",
    "note",
    "notes",
    "comment",
    "comments",
    "transcript",
];

/// How much a result looks like an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// It is nothing else.
    Error(String),
    /// It may be one.
    Doubt(String),
}

/// An error that came as if it were a result of this tool.
pub(super) fn hidden_error(
    tool: &str,
    value: &Value,
    text: &str,
    output_schema: Option<&RawJson>,
) -> Option<Hidden> {
    let (is_error, said) = match value {
        Value::Object(entries) => (in_object(tool, entries, output_schema)?, text),
        Value::String(said) => (in_text(said)?, said.as_str()),
        _ => return None,
    };
    let line = first_line(said);
    Some(if is_error && !passes_on(tool) {
        Hidden::Error(format!("the result is an error: {line}"))
    } else {
        Hidden::Doubt(format!("the result reads like an error: {line}"))
    })
}

/// Whether an object that speaks of a failure is nothing but an error; none where it does not speak of one. Of a tool that
/// may have been asked to change something, a failure is one whatever else it says: nothing may follow from it.
fn in_object(tool: &str, entries: &Map<String, Value>, output_schema: Option<&RawJson>) -> Option<bool> {
    let says_no = |key: &str| entries.get(key) == Some(&Value::Bool(false));
    let has_error = entries.get("error").is_some_and(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(inner) => !inner.is_empty(),
        Value::Bool(failed) => *failed,
        _ => false,
    });
    let status = entries.get("status").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let has_failed = ["error", "failed", "failure"].contains(&status.as_str());
    let refuses = has_error || says_no("success") || says_no("ok");
    if !refuses && !has_failed {
        return None;
    }
    let only_error = entries.keys().all(|key| ERROR_FIELDS.contains(&key.as_str()));
    // A status alone may be what was asked for, unless it can only be that of the call itself.
    let of_the_call = status == "error" || entries.len() > 1;
    let by_status = has_failed && of_the_call && !promises(output_schema, "status");
    let is_failure = refuses && !only_reads(tool) && tool != NO_TOOL;
    Some(is_failure || (only_error && (refuses || by_status)))
}

/// Whether a tool promises a field of this name.
fn promises(schema: Option<&RawJson>, field: &str) -> bool {
    schema.is_some_and(|schema| schema.to_value().pointer(&format!("/properties/{field}")).is_some())
}

/// Whether a text that begins like an error is nothing but one; none where it does not begin so.
fn in_text(said: &str) -> Option<bool> {
    let said = said.trim();
    let start: String = said.chars().take(40).flat_map(char::to_lowercase).collect();
    let is_longer = |than: usize| said.chars().nth(than).is_some();
    if start.starts_with(TRACEBACK) {
        return Some(true);
    }
    if is_longer(LONGEST_ERROR) {
        return None;
    }
    if ERROR_STARTS.iter().any(|known| start.starts_with(known)) {
        return Some(true);
    }
    if !SENTENCE_STARTS.iter().any(|known| start.starts_with(known)) {
        return None;
    }
    // `Error reading x: …` is an error, `Error 404 means …` is knowledge.
    let is_plain = !start.starts_with("error") || said.contains(": ");
    let is_sentence = !is_longer(LONGEST_SENTENCE) && said.lines().count() == 1 && sentences(said) == 1;
    Some(is_plain && is_sentence)
}

fn sentences(text: &str) -> usize {
    let ends = [". ", "! ", "? ", "。", "！", "？"];
    let text = text.trim_end_matches(['.', '!', '?', '。', '！', '？']);
    ends.iter().map(|end| text.matches(end).count()).sum::<usize>() + 1
}

/// Whether a tool only says how something else is doing, or what somebody else wrote.
fn passes_on(tool: &str) -> bool {
    let is_known = |word: &String| PASSED_ON.contains(&word.as_str());
    tool == NO_TOOL || (only_reads(tool) && words(tool).iter().any(is_known))
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(160).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}
