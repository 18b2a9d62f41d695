//! Arguments of successful calls, which planning shows as examples to the one on whose behalf they were made.

use serde_json::Value;

use crate::{BoxFuture, ContentHash, RawJson, SourceId, redact_json};

/// Bytes of the arguments of an example.
const MAX_EXAMPLE_BYTES: usize = 300;
/// Bytes of one text in an example; a longer one is content rather than a hint at how to call the tool.
const MAX_EXAMPLE_TEXT_BYTES: usize = 100;

/// The arguments of the last successful call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentExample {
    /// On whose behalf the call was made; nobody else is shown the example.
    pub owner: String,
    /// The tool's name.
    pub tool: String,
    /// Its source.
    pub source: SourceId,
    /// Hash of the definition that the arguments were written for.
    pub definition: ContentHash,
    /// The arguments, an object with at least one of them.
    pub arguments: RawJson,
}

impl ArgumentExample {
    /// An example; none if the arguments contain a secret, are large, or are empty.
    pub fn new(
        owner: impl Into<String>,
        tool: impl Into<String>,
        source: SourceId,
        definition: ContentHash,
        arguments: &RawJson,
    ) -> Option<Self> {
        if arguments.get().len() > MAX_EXAMPLE_BYTES || redact_json(arguments).1 {
            return None;
        }
        let value = arguments.to_value();
        let is_usable = value.as_object().is_some_and(|object| !object.is_empty()) && has_short_texts(&value);
        is_usable.then(|| Self {
            owner: owner.into(),
            tool: tool.into(),
            source,
            definition,
            arguments: RawJson::from_value(&value),
        })
    }

    /// An example from the store, unchanged.
    pub fn from_stored(
        owner: impl Into<String>,
        tool: impl Into<String>,
        source: SourceId,
        definition: ContentHash,
        arguments: RawJson,
    ) -> Self {
        Self { owner: owner.into(), tool: tool.into(), source, definition, arguments }
    }
}

fn has_short_texts(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= MAX_EXAMPLE_TEXT_BYTES && !text.contains(char::is_control),
        Value::Array(items) => items.iter().all(has_short_texts),
        Value::Object(fields) => fields.values().all(has_short_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Stores the arguments of successful calls.
pub trait ArgumentExamples: Send + Sync {
    /// The latest examples of one owner, at most `limit`; empty if the store fails.
    fn of_owner<'a>(&'a self, owner: &'a str, limit: usize) -> BoxFuture<'a, Vec<ArgumentExample>>;

    /// Stores an example, replacing the earlier one of its owner and tool.
    fn record_example<'a>(&'a self, example: &'a ArgumentExample) -> BoxFuture<'a, ()>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example(arguments: &Value) -> Option<String> {
        let arguments = RawJson::from_value(arguments);
        let example = ArgumentExample::new("ann", "t", "s".into(), ContentHash::of("t"), &arguments);
        example.map(|example| example.arguments.get().to_owned())
    }

    #[test]
    fn short_arguments_are_an_example() {
        assert_eq!(
            example(&json!({"path": "a.xlsx", "rows": [[1, "x"]]})).as_deref(),
            Some(r#"{"path":"a.xlsx","rows":[[1,"x"]]}"#)
        );
    }

    #[test]
    fn secrets_large_and_empty_arguments_are_no_example() {
        for arguments in [
            json!({}),
            json!({"password": "hunter2"}),
            json!({"text": "token ghp_0123456789abcdefghijklmnopqrstuvwxyz"}),
            json!({"text": "x".repeat(MAX_EXAMPLE_TEXT_BYTES + 1)}),
            json!({"rows": vec![1_000_000; 60]}),
            json!({"text": "two\nlines"}),
        ] {
            assert_eq!(example(&arguments), None, "{arguments}");
        }
    }
}
