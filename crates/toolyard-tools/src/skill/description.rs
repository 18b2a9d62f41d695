//! What a program says about its tools when it is asked with `--describe`.

use serde_json::{Value, json};
use toolyard_core::{RawJson, ToolSpec};

use crate::text::{one_line, shortened, without_controls};

const MAX_TOOLS: usize = 64;
const MAX_TOOL_NAME: usize = 128;
/// More of a failure is not kept.
const MAX_FAILURE: usize = 2_000;

/// The tools a program offers, and what is wrong with those it does not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Description {
    pub(super) tools: Vec<ToolSpec>,
    pub(super) problems: Vec<String>,
}

impl Description {
    /// What is worth keeping of it: the sound tools as a list, if there are any.
    pub(super) fn to_kept(&self) -> Option<RawJson> {
        if self.tools.is_empty() { None } else { RawJson::from_serialize(&self.tools).ok() }
    }
}

/// What is remembered of a program: its sound tools as a list, or `{"failed": "why"}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kept {
    Tools(Description),
    Failed(String),
}

impl Kept {
    /// The form in which a failure is kept.
    pub(super) fn failed(message: &str) -> RawJson {
        RawJson::from_value(&json!({"failed": shortened(message, MAX_FAILURE)}))
    }

    /// What was kept. Only sound tools ever are, so a list with any problem is no entry.
    pub(super) fn read(kept: &RawJson) -> Option<Self> {
        if kept.get().starts_with('[') {
            let description = understand(kept.get()).ok()?;
            return description.problems.is_empty().then_some(Self::Tools(description));
        }
        let Value::Object(entry) = kept.to_value() else { return None };
        match entry.get("failed") {
            Some(Value::String(message)) if entry.len() == 1 => {
                Some(Self::Failed(shortened(&without_controls(message), MAX_FAILURE)))
            }
            _ => None,
        }
    }
}

/// Understands one tool or a list of tools in MCP's form. A wrong tool costs only itself.
pub(super) fn understand(text: &str) -> Result<Description, String> {
    let not_json = |error: serde_json::Error| {
        let seen = shortened(&one_line(text), 200);
        format!("its description is not a JSON object or list of objects ({error}): {seen}")
    };
    let entries: Vec<RawJson> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(not_json)?
    } else {
        vec![serde_json::from_str(text).map_err(not_json)?]
    };
    let mut description = Description::default();
    if entries.is_empty() {
        return Err("it describes no tool".to_owned());
    }
    if entries.len() > MAX_TOOLS {
        description.problems.push(format!("only the first {MAX_TOOLS} tools are used"));
    }
    for entry in entries.iter().take(MAX_TOOLS) {
        match tool(entry) {
            Ok(spec) if description.tools.iter().any(|known| known.name == spec.name) => {
                description.problems.push(format!("the tool `{}` is described twice", spec.name));
            }
            Ok(spec) => description.tools.push(spec),
            Err(problem) => description.problems.push(problem),
        }
    }
    Ok(description)
}

fn tool(entry: &RawJson) -> Result<ToolSpec, String> {
    let mut spec: ToolSpec =
        entry.read().map_err(|error| format!("a tool is not described in MCP's form: {error}"))?;
    if !is_tool_name(&spec.name) {
        return Err(format!("`{}` is not a tool name", shortened(&one_line(&spec.name), 64)));
    }
    if !spec.input_schema.to_value().is_object() {
        return Err(format!("the inputSchema of `{}` is not an object", spec.name));
    }
    // Names are plain ASCII already.
    spec.title = spec.title.map(|title| one_line(&title)).filter(|title| !title.is_empty());
    spec.description = without_controls(&spec.description).trim().to_owned();
    Ok(spec)
}

fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        understand(text).unwrap().tools.iter().map(|spec| spec.name.to_string()).collect()
    }

    #[test]
    fn one_tool_or_several_are_understood() {
        assert_eq!(names(r#"{"name":"a","description":"d","inputSchema":{"type":"object"}}"#), ["a"]);
        assert_eq!(names(r#" [{"name":"a"},{"name":"b"}] "#), ["a", "b"]);
    }

    #[test]
    fn a_wrong_tool_costs_only_itself() {
        let text = r#"[{"name":"a"},{"name":"a"},{"name":"b c"},{"name":""},7,{"inputSchema":{}},{"name":"c","inputSchema":true},{"name":"d"}]"#;
        let description = understand(text).unwrap();
        assert_eq!(names(text), ["a", "d"]);
        assert_eq!(description.problems.len(), 6, "{:?}", description.problems);
    }

    #[test]
    fn what_is_no_description_says_why() {
        for text in ["", "usage: program", "[]", "[{]", "{\"name\": \"a\""] {
            assert!(understand(text).is_err(), "{text}");
        }
        assert!(understand("7").unwrap().tools.is_empty());
    }

    #[test]
    fn sound_tools_are_kept_and_understood_again() {
        let text = r#"[{"name":"a","title":"A","inputSchema":{"type":"object","x":1.50},"outputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"b c"}]"#;
        let description = understand(text).unwrap();
        let again = Kept::read(&description.to_kept().unwrap()).unwrap();
        assert_eq!(again, Kept::Tools(Description { problems: vec![], ..description }));
        assert_eq!(understand("[7]").unwrap().to_kept(), None, "there is nothing to keep");
    }

    #[test]
    fn a_failure_is_kept_within_bounds() {
        let kept = Kept::failed("no such option");
        assert_eq!(kept.get(), r#"{"failed":"no such option"}"#);
        assert_eq!(Kept::read(&kept), Some(Kept::Failed("no such option".to_owned())));
        assert!(Kept::failed(&"x".repeat(100_000)).get().len() < 3_000);
    }

    #[test]
    fn an_entry_that_could_not_have_been_kept_is_no_entry() {
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
            assert_eq!(Kept::read(&RawJson::parse(text.to_owned()).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn invisible_characters_of_a_description_are_left_out() {
        let text = r#"{"name":"a","title":"Re\u202ead\u200b it\u001b[31m\n","description":"One\u2066 \udb40\udc41line\nand\ufeff another\u200f"}"#;
        let tool = understand(text).unwrap().tools.remove(0);
        assert_eq!(tool.title.as_deref(), Some("Read it"));
        assert_eq!(tool.description, "One line\nand another");
        assert!(understand("{\"name\":\"a\u{200b}b\"}").unwrap().tools.is_empty());
    }
}
