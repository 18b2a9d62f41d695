//! One line of the log, as text or as JSON. Secrets are redacted, and no text from outside can begin a line of its own.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use serde_json::{Map, Number, Value};
use toolyard_core::{escape_unsafe, redact};
use tracing::{
    Event, Level,
    field::{Field, Visit},
};

/// Longer values are cut, so that no upstream can fill the log with one message.
const MAX_VALUE_CHARS: usize = 2_000;

/// How log lines and messages on stderr are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line: time, level, target, message, fields.
    Json,
}

/// Fields with another value for each request. Lines that differ only in these are repetitions of each other.
const REQUEST_FIELDS: [&str; 7] =
    ["trace_id", "span_id", "request_id", "call", "caller", "client", "duration_ms"];

/// A logged event without its time. Lines are equal if they say the same, whatever request they are about.
#[derive(Debug, Clone)]
pub(super) struct LogLine {
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, FieldValue)>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FieldValue {
    Text(String),
    Number(Number),
}

/// How often a line was repeated without being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// This very line.
    Identical { count: u64, seconds: u64 },
    /// Lines like this one, with other values.
    Similar { count: u64, seconds: u64 },
}

impl LogLine {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut line = Self {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut line);
        line
    }

    pub(super) fn render(
        &self,
        format: LogFormat,
        time: jiff::Timestamp,
        repetition: Option<Repetition>,
    ) -> String {
        let time = format_time(time);
        match format {
            LogFormat::Text => self.to_text(&time, repetition),
            LogFormat::Json => self.to_json(time, repetition),
        }
    }

    fn to_text(&self, time: &str, repetition: Option<Repetition>) -> String {
        let mut text = format!("{time} {:>5} {}: {}", self.level, self.target, self.message);
        for (name, value) in &self.fields {
            let value = value.to_string();
            let is_plain = !value.is_empty() && !value.contains([' ', '"', '=', '\n', '\r']);
            let value = if is_plain { value } else { format!("{value:?}") };
            text = format!("{text} {name}={value}");
        }
        match repetition {
            None => {}
            Some(Repetition::Identical { count, seconds }) => {
                text = format!("{text} (repeated {count} times in the last {seconds} s)");
            }
            Some(Repetition::Similar { count, seconds }) => {
                text = format!("{text} (and {count} similar messages in the last {seconds} s)");
            }
        }
        single_line(&redact(&text))
    }

    fn to_json(&self, time: String, repetition: Option<Repetition>) -> String {
        let mut object = Map::new();
        object.insert("time".to_owned(), time.into());
        object.insert("level".to_owned(), self.level.as_str().to_ascii_lowercase().into());
        object.insert("target".to_owned(), self.target.clone().into());
        object.insert("message".to_owned(), single_line(&redact(&self.message)).into());
        let fields: Map<String, Value> =
            self.fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_json(name))).collect();
        if !fields.is_empty() {
            object.insert("fields".to_owned(), fields.into());
        }
        let (key, repeated) = match repetition {
            None => ("", None),
            Some(Repetition::Identical { count, seconds }) => ("repeated", Some((count, seconds))),
            Some(Repetition::Similar { count, seconds }) => ("similar", Some((count, seconds))),
        };
        if let Some((count, seconds)) = repeated {
            object.insert(key.to_owned(), count.into());
            object.insert("seconds".to_owned(), seconds.into());
        }
        Value::Object(object).to_string()
    }

    fn push(&mut self, field: &Field, value: &str) {
        // Before the value is cut: a part of a secret would not be recognized.
        let value = redact(value).into_owned();
        let value = match value.char_indices().nth(MAX_VALUE_CHARS) {
            Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
            None => value,
        };
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name, FieldValue::Text(value))),
        }
    }

    /// A number, if JSON can express it.
    fn push_number(&mut self, field: &Field, number: Option<Number>, text: &dyn fmt::Display) {
        match number {
            Some(number) => self.fields.push((field.name(), FieldValue::Number(number))),
            None => self.push(field, &text.to_string()),
        }
    }
}

impl FieldValue {
    /// Numbers stay numbers, so that programs can compare and add them.
    fn to_json(&self, name: &str) -> Value {
        let text = self.to_string();
        let shown = redact_field(name, &text);
        match self {
            Self::Number(number) if shown == text => number.clone().into(),
            _ => shown.into(),
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl LogLine {
    /// What makes a line the repetition of another.
    fn key(&self) -> (Level, &str, &str, impl Iterator<Item = &(&'static str, FieldValue)>) {
        let fields = self.fields.iter().filter(|(name, _)| !REQUEST_FIELDS.contains(name));
        (self.level, &self.target, &self.message, fields)
    }
}

impl PartialEq for LogLine {
    fn eq(&self, other: &Self) -> bool {
        let (level, target, message, fields) = self.key();
        let (other_level, other_target, other_message, other_fields) = other.key();
        (level, target, message) == (other_level, other_target, other_message) && fields.eq(other_fields)
    }
}

impl Eq for LogLine {}

impl Hash for LogLine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (level, target, message, fields) = self.key();
        (level, target, message).hash(state);
        fields.for_each(|field| field.hash(state));
    }
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push_number(field, Some(value.into()), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push_number(field, Some(value.into()), &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push_number(field, Number::from_f64(value), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, &format!("{value:?}"));
    }
}

/// The time format of all logs: RFC 3339 in UTC, with milliseconds.
pub(crate) fn format_time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The text on one line, with unsafe characters escaped.
fn single_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in escape_unsafe(text).chars() {
        match letter {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => line.extend(letter.escape_default()),
            other => line.push(other),
        }
    }
    line
}

/// A value whose secrets are redacted; the name of the field may tell that it is one.
fn redact_field(name: &str, value: &str) -> String {
    let named = format!("{name}={value}");
    let redacted = redact(&named);
    let value = redacted.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    single_line(value.unwrap_or(&redacted))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(message: &str, field: &str) -> LogLine {
        LogLine {
            level: Level::WARN,
            target: "toolyard".to_owned(),
            message: message.to_owned(),
            fields: vec![("error", FieldValue::Text(field.to_owned()))],
        }
    }

    #[test]
    fn both_formats_have_one_time_format() {
        let time: jiff::Timestamp = "2026-11-16T09:08:07.0123Z".parse().unwrap();
        let failed = line("call failed", "no route to host");
        assert_eq!(
            failed.render(LogFormat::Text, time, None),
            r#"2026-11-16T09:08:07.012Z  WARN toolyard: call failed error="no route to host""#
        );
        let repeated = Some(Repetition::Identical { count: 134, seconds: 10 });
        assert!(
            failed
                .render(LogFormat::Text, time, repeated)
                .ends_with(" (repeated 134 times in the last 10 s)")
        );
        assert_eq!(
            failed.render(LogFormat::Json, time, repeated),
            r#"{"time":"2026-11-16T09:08:07.012Z","level":"warn","target":"toolyard","message":"call failed","fields":{"error":"no route to host"},"repeated":134,"seconds":10}"#
        );
    }

    #[test]
    fn numbers_are_numbers_in_json() {
        let mut line = line("request", "none");
        line.fields.push(("duration_ms", FieldValue::Number(Number::from_f64(1.25).unwrap())));
        line.fields.push(("records", FieldValue::Number(7.into())));
        let time = jiff::Timestamp::UNIX_EPOCH;
        let json = line.render(LogFormat::Json, time, None);
        assert!(json.contains(r#""fields":{"error":"none","duration_ms":1.25,"records":7}"#), "{json}");
        let text = line.render(LogFormat::Text, time, None);
        assert!(text.ends_with(" error=none duration_ms=1.25 records=7"), "{text}");
    }

    #[test]
    fn secrets_are_not_logged_in_any_format() {
        let time = jiff::Timestamp::UNIX_EPOCH;
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let mut by_name = line("x", "y");
        by_name.fields.push(("api_key", FieldValue::Text("Zx81-very-secret-value-0042".to_owned())));
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = line(&format!("upstream said {token}"), &format!("Bearer {token}"));
            let text = text.render(format, time, None);
            assert!(!text.contains("ghp_0123"), "{text}");
            let text = by_name.render(format, time, None);
            assert!(!text.contains("very-secret-value"), "{text}");
        }
    }

    #[test]
    fn lines_of_different_requests_are_repetitions() {
        let of_request = |trace: &str, error: &str| {
            let mut line = line("call failed", error);
            line.fields.push(("trace_id", FieldValue::Text(trace.to_owned())));
            line.fields.push(("request_id", FieldValue::Text(format!("r-{trace}"))));
            line.fields.push(("call", FieldValue::Text(format!("call-{trace}"))));
            line.fields.push(("duration_ms", FieldValue::Number(trace.parse::<u64>().unwrap().into())));
            line
        };
        let mut lines = std::collections::HashSet::new();
        assert!(lines.insert(of_request("1", "no route to host")));
        assert!(!lines.insert(of_request("2", "no route to host")));
        assert!(!lines.insert(line("call failed", "no route to host")));
        assert!(lines.insert(of_request("2", "connection reset")));
        // The id of the first request is kept.
        assert!(lines.iter().all(|line| line.fields.len() == 5), "{lines:?}");
    }

    #[test]
    fn line_and_paragraph_separators_are_escaped() {
        let text = line("one\u{2028}two\u{2029}three\tfour", "");
        let text = text.render(LogFormat::Text, jiff::Timestamp::UNIX_EPOCH, None);
        assert!(text.contains(r"one\u{2028}two\u{2029}three\tfour"), "{text}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_out_of_its_line(message in "(?s).*", field in "(?s).*") {
            let line = line(&message, &field);
            for format in [LogFormat::Text, LogFormat::Json] {
                let text = line.render(format, jiff::Timestamp::UNIX_EPOCH, None);
                let is_control = |letter: char| {
                    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202e}')
                };
                prop_assert!(!text.contains(is_control), "{text:?}");
                if format == LogFormat::Json {
                    serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        }
    }
}
