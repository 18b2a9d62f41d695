//! Parses the output of `PROGRAM --describe`.

use serde_json::{Value, json};
use toolyard_core::{RawJson, ToolSpec, sanitize};

use crate::text::{MAX_ECHOED_NAME_CHARS, MAX_EXCERPT_CHARS, one_line, truncate};

const MAX_TOOLS: usize = 64;
const MAX_TOOL_NAME_BYTES: usize = 128;
const MAX_CACHED_ERROR_CHARS: usize = 2_000;

/// The valid tools of a program, and problems with the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::skill) struct Description {
    pub(in crate::skill) tools: Vec<ToolSpec>,
    pub(in crate::skill) problems: Vec<String>,
}

impl Description {
    /// The cache entry: the valid tools as a list, if there are any.
    pub(super) fn to_cache_entry(&self) -> Option<RawJson> {
        if self.tools.is_empty() { None } else { RawJson::from_serialize(&self.tools).ok() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum DescriptionError {
    /// A program of a skill printed something else than its description when it was started with `--describe`.
    ///
    /// Remedy: run `PROGRAM --describe` by hand; it must print JSON only.
    #[error("the description is not a JSON object or list of objects ({error}): {output}")]
    NotJson { error: serde_json::Error, output: String },
    /// A program of a skill described no tool.
    ///
    /// Remedy: print a tool definition (`name`, `description`, `inputSchema`) for `--describe`; a file that is no tool
    /// should not be executable.
    #[error("the description contains no tool")]
    NoTools,
}

#[derive(Debug, thiserror::Error)]
enum ToolDefinitionError {
    /// A program of a skill described a tool in another form than MCP.
    ///
    /// Remedy: print `name`, `description` and `inputSchema` as JSON for `--describe`.
    #[error("a tool is not a valid MCP tool definition: {0}")]
    NotMcp(String),
    /// A program of a skill described a tool with a name that MCP does not permit.
    ///
    /// Remedy: use letters, digits, `_`, `-` and `.`.
    #[error("`{0}` is not a valid tool name")]
    InvalidName(String),
    /// A program of a skill described a tool whose `inputSchema` is not an object.
    ///
    /// Remedy: print a JSON Schema with `"type": "object"`.
    #[error("the inputSchema of `{0}` is not an object")]
    InvalidSchema(String),
}

/// A cache entry: the valid tools as a list, or `{"failed": "reason"}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CachedDescription {
    Tools(Description),
    Failed(String),
}

impl CachedDescription {
    pub(super) fn failure_entry(message: &str) -> RawJson {
        RawJson::from_value(&json!({"failed": truncate(message, MAX_CACHED_ERROR_CHARS)}))
    }

    /// Parses a cache entry. Only valid tools are cached, so a list with a problem is not a valid entry.
    pub(super) fn parse(entry: &RawJson) -> Option<Self> {
        if entry.get().starts_with('[') {
            let description = parse_description(entry.get()).ok()?;
            return description.problems.is_empty().then_some(Self::Tools(description));
        }
        let Value::Object(fields) = entry.to_value() else { return None };
        match fields.get("failed") {
            Some(Value::String(message)) if fields.len() == 1 => {
                Some(Self::Failed(truncate(&sanitize(message).0, MAX_CACHED_ERROR_CHARS)))
            }
            _ => None,
        }
    }
}

/// Parses one MCP tool definition or a list of them. An invalid tool does not affect the others.
pub(super) fn parse_description(text: &str) -> Result<Description, DescriptionError> {
    let not_json =
        |error| DescriptionError::NotJson { error, output: truncate(&one_line(text), MAX_EXCERPT_CHARS) };
    let entries: Vec<RawJson> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(not_json)?
    } else {
        vec![serde_json::from_str(text).map_err(not_json)?]
    };
    let mut description = Description::default();
    if entries.is_empty() {
        return Err(DescriptionError::NoTools);
    }
    if entries.len() > MAX_TOOLS {
        description.problems.push(format!("only the first {MAX_TOOLS} tools are used"));
    }
    for entry in entries.iter().take(MAX_TOOLS) {
        match parse_tool(entry) {
            Ok(spec) if description.tools.iter().any(|known| known.name == spec.name) => {
                description.problems.push(format!("the tool `{}` is described twice", spec.name));
            }
            Ok(spec) => description.tools.push(spec),
            Err(error) => description.problems.push(error.to_string()),
        }
    }
    Ok(description)
}

fn parse_tool(entry: &RawJson) -> Result<ToolSpec, ToolDefinitionError> {
    let mut spec: ToolSpec = entry.read().map_err(|error| ToolDefinitionError::NotMcp(error.to_string()))?;
    if !is_tool_name(&spec.name) {
        return Err(ToolDefinitionError::InvalidName(truncate(&one_line(&spec.name), MAX_ECHOED_NAME_CHARS)));
    }
    if !spec.input_schema.to_value().is_object() {
        return Err(ToolDefinitionError::InvalidSchema(spec.name.to_string()));
    }
    spec.title = spec.title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
    spec.description = sanitize(&spec.description).0.trim().to_owned();
    Ok(spec)
}

fn is_tool_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_TOOL_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse_description(text).unwrap().tools.iter().map(|spec| spec.name.to_string()).collect()
    }

    #[test]
    fn one_tool_or_several_are_parsed() {
        assert_eq!(names(r#"{"name":"a","description":"d","inputSchema":{"type":"object"}}"#), ["a"]);
        assert_eq!(names(r#" [{"name":"a"},{"name":"b"}] "#), ["a", "b"]);
    }

    #[test]
    fn an_invalid_tool_does_not_affect_the_others() {
        let text = r#"[{"name":"a"},{"name":"a"},{"name":"b c"},{"name":""},7,{"inputSchema":{}},{"name":"c","inputSchema":true},{"name":"d"}]"#;
        let description = parse_description(text).unwrap();
        assert_eq!(names(text), ["a", "d"]);
        assert_eq!(description.problems.len(), 6, "{:?}", description.problems);
    }

    #[test]
    fn invalid_output_is_an_error() {
        for text in ["", "usage: program", "[]", "[{]", "{\"name\": \"a\""] {
            assert!(parse_description(text).is_err(), "{text}");
        }
        assert!(parse_description("7").unwrap().tools.is_empty());
    }

    #[test]
    fn valid_tools_are_cached_and_parsed_again() {
        let text = r#"[{"name":"a","title":"A","inputSchema":{"type":"object","x":1.50},"outputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"b c"}]"#;
        let description = parse_description(text).unwrap();
        let again = CachedDescription::parse(&description.to_cache_entry().unwrap()).unwrap();
        assert_eq!(again, CachedDescription::Tools(Description { problems: vec![], ..description }));
        assert_eq!(parse_description("[7]").unwrap().to_cache_entry(), None, "there is nothing to cache");
    }

    #[test]
    fn a_cached_failure_is_bounded() {
        let entry = CachedDescription::failure_entry("no such option");
        assert_eq!(entry.get(), r#"{"failed":"no such option"}"#);
        assert_eq!(
            CachedDescription::parse(&entry),
            Some(CachedDescription::Failed("no such option".to_owned()))
        );
        assert!(CachedDescription::failure_entry(&"x".repeat(100_000)).get().len() < 3_000);
    }

    #[test]
    fn an_invalid_cache_entry_is_ignored() {
        for text in [
            "null",
            "7",
            "\"a\"",
            "{}",
            "[]",
            "[7]",
            r#"[{"name":"a"},{"name":"b c"}]"#,
            r#"{"failed":7}"#,
            r#"{"failed":"x","name":"a"}"#,
        ] {
            assert_eq!(CachedDescription::parse(&RawJson::parse(text.to_owned()).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn invisible_characters_are_removed() {
        let text = r#"{"name":"a","title":"Re\u202ead\u200b it\u001b[31m\n","description":"One\u2066 \udb40\udc41line\nand\ufeff another\u200f"}"#;
        let tool = parse_description(text).unwrap().tools.remove(0);
        assert_eq!(tool.title.as_deref(), Some("Read it"));
        assert_eq!(tool.description, "One line\nand another");
        assert!(parse_description("{\"name\":\"a\u{200b}b\"}").unwrap().tools.is_empty());
    }
}
