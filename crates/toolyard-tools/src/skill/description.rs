//! What a program says about its tools when it is asked with `--describe`.

use toolyard_core::{RawJson, ToolSpec};

use crate::text::{one_line, shortened};

const MAX_TOOLS: usize = 64;
const MAX_TOOL_NAME: usize = 128;

/// The tools a program offers, and what is wrong with those it does not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Description {
    pub(super) tools: Vec<ToolSpec>,
    pub(super) problems: Vec<String>,
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
    let spec: ToolSpec =
        entry.read().map_err(|error| format!("a tool is not described in MCP's form: {error}"))?;
    if !is_tool_name(&spec.name) {
        return Err(format!("`{}` is not a tool name", shortened(&one_line(&spec.name), 64)));
    }
    if !spec.input_schema.to_value().is_object() {
        return Err(format!("the inputSchema of `{}` is not an object", spec.name));
    }
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
}
