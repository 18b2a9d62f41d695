//! Detects errors that a tool returned as a regular result. Ambiguous ones are reported as possible errors.

use serde_json::{Map, Value};
use toolyard_core::RawJson;

use super::VerificationInput;
use crate::{
    NO_TOOL,
    planning::tool_name::{is_read_only_name, name_words},
};

/// A longer text is not an error, unless it is a traceback.
const MAX_ERROR_CHARS: usize = 600;
/// A longer sentence with an ambiguous prefix is not certainly an error.
const MAX_SENTENCE_CHARS: usize = 200;
/// Characters of a text that are compared with the prefixes of errors.
const MAX_PREFIX_CHARS: usize = 40;
/// Characters of an error that an issue quotes.
const MAX_QUOTED_CHARS: usize = 160;
/// An object that reports a failure and has no other fields is certainly an error.
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
/// Prefixes of texts that are certainly errors.
const ERROR_PREFIXES: [&str; 12] = [
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
/// Prefixes of errors and of ordinary sentences.
const AMBIGUOUS_PREFIXES: [&str; 5] = ["error ", "error-", "failed to ", "unable to ", "could not "];
const TRACEBACK: &str = "traceback (most recent call last)";
/// Words in names of tools that report the state of something else, or relay what others wrote.
const RELAY_WORDS: [&str; 44] = [
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

#[derive(Debug, PartialEq, Eq)]
pub(super) enum DetectedError {
    Certain(String),
    Possible(String),
}

/// The error that a result reports, if any.
pub(super) fn detect_error(input: &VerificationInput<'_>) -> Option<DetectedError> {
    let tool = input.step.tool_type.as_str();
    let (is_certain, text) = match input.value {
        Value::Object(entries) if input.changes && denies_change(entries) => {
            return Some(DetectedError::Certain(format!(
                "the result is an error: {}",
                first_line(input.text)
            )));
        }
        Value::Object(entries) => (is_object_error(entries, input.output_schema)?, input.text),
        Value::String(text) => (is_text_error(text)?, text.as_str()),
        _ => return None,
    };
    let line = first_line(text);
    Some(if is_certain && !is_relay(tool) {
        DetectedError::Certain(format!("the result is an error: {line}"))
    } else {
        DetectedError::Possible(format!("the result reads like an error: {line}"))
    })
}

/// Whether a result says, in a way that needs no language, that a call which may change something failed. Later steps rely on the
/// change, so no more is asked for.
fn denies_change(entries: &Map<String, Value>) -> bool {
    let is = |key: &str, flag: bool| entries.get(key) == Some(&Value::Bool(flag));
    let is_failure = |key: &str| entries.get(key).and_then(Value::as_i64).is_some_and(|code| code != 0);
    has_error(entries)
        || is("success", false)
        || is("ok", false)
        || is("isError", true)
        || is("is_error", true)
        || ["exit_code", "exitCode", "exit_status", "returncode", "return_code"].into_iter().any(is_failure)
}

fn has_error(entries: &Map<String, Value>) -> bool {
    entries.get("error").is_some_and(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(inner) => !inner.is_empty(),
        Value::Bool(failed) => *failed,
        _ => false,
    })
}

/// Whether an object that mentions a failure is certainly an error; `None` if it mentions no failure.
fn is_object_error(entries: &Map<String, Value>, output_schema: Option<&RawJson>) -> Option<bool> {
    let is_false = |key: &str| entries.get(key) == Some(&Value::Bool(false));
    let status = entries.get("status").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let status_failed = ["error", "failed", "failure"].contains(&status.as_str());
    let reports_failure = has_error(entries) || is_false("success") || is_false("ok");
    if !reports_failure && !status_failed {
        return None;
    }
    let only_error = entries.keys().all(|key| ERROR_FIELDS.contains(&key.as_str()));
    // `{"status": "failed"}` may be the requested information. `error`, or a status together with other error fields, is the
    // status of the call itself.
    let is_call_status = status == "error" || entries.len() > 1;
    let by_status = status_failed && is_call_status && !declares(output_schema, "status");
    Some(only_error && (reports_failure || by_status))
}

fn declares(schema: Option<&RawJson>, field: &str) -> bool {
    schema.is_some_and(|schema| schema.to_value().pointer(&format!("/properties/{field}")).is_some())
}

/// Whether a text that starts like an error is certainly one; `None` if it does not start like one.
fn is_text_error(text: &str) -> Option<bool> {
    let text = text.trim();
    let start: String = text.chars().take(MAX_PREFIX_CHARS).flat_map(char::to_lowercase).collect();
    let is_longer = |than: usize| text.chars().nth(than).is_some();
    if start.starts_with(TRACEBACK) {
        return Some(true);
    }
    if is_longer(MAX_ERROR_CHARS) {
        return None;
    }
    if ERROR_PREFIXES.iter().any(|known| start.starts_with(known)) {
        return Some(true);
    }
    if !AMBIGUOUS_PREFIXES.iter().any(|known| start.starts_with(known)) {
        return None;
    }
    // `Error reading x: …` is an error, `Error 404 means …` is information.
    let is_report = !start.starts_with("error") || text.contains(": ");
    let is_sentence =
        !is_longer(MAX_SENTENCE_CHARS) && text.lines().count() == 1 && sentence_count(text) == 1;
    Some(is_report && is_sentence)
}

fn sentence_count(text: &str) -> usize {
    let ends = [". ", "! ", "? ", "。", "！", "？"];
    let text = text.trim_end_matches(['.', '!', '?', '。', '！', '？']);
    ends.iter().map(|end| text.matches(end).count()).sum::<usize>() + 1
}

/// Whether a tool only reports or relays something. So does a reasoning step, which has no tool: it may write about errors.
fn is_relay(tool: &str) -> bool {
    let is_known = |word: &String| RELAY_WORDS.contains(&word.as_str());
    tool == NO_TOOL || (is_read_only_name(tool) && name_words(tool).iter().any(is_known))
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(MAX_QUOTED_CHARS).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}
