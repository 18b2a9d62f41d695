//! The JSON Schema of one call of the selected tools, for constrained decoding.

use serde_json::{Map, Value, json};
use toolyard_core::RawJson;

use super::{
    schema::{arguments_schema, has_control_tokens, visit_schemas},
    selection::SelectedTool,
};

/// Keywords that define or use a base location and lose their meaning when the schema is embedded.
const LOCATION_KEYWORDS: [&str; 7] =
    ["$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"];

/// Annotations: they restrict nothing, and their text is untrusted.
const ANNOTATION_KEYWORDS: [&str; 5] = ["description", "title", "$comment", "examples", "default"];

/// A schema that matches exactly the calls of these tools: `{"id", "tool_name", "arguments"}`. The input schema of each
/// tool is embedded under `$defs` without annotations, with its references rewritten. A tool whose schema contains a
/// control token of a chat template is omitted.
pub fn call_schema(tools: &[SelectedTool]) -> Value {
    let mut calls = Vec::with_capacity(tools.len());
    let mut schemas = Map::new();
    for (at, SelectedTool { tool, .. }) in tools.iter().enumerate() {
        let definition = format!("tool_{}", at + 1);
        let schema = embedded_schema(&tool.schema, &definition);
        if has_control_tokens(&schema) {
            continue;
        }
        calls.push(json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "tool_name": {"const": tool.name},
                "arguments": {"$ref": format!("#/$defs/{definition}")},
            },
            "required": ["id", "tool_name", "arguments"],
            "additionalProperties": false,
        }));
        schemas.insert(definition, schema);
    }
    // An empty `anyOf` matches nothing.
    json!({"anyOf": calls, "$defs": schemas})
}

/// A tool's input schema for use under `$defs/{definition}`.
fn embedded_schema(schema: &RawJson, definition: &str) -> Value {
    let mut schema = arguments_schema(schema);
    let root = schema.clone();
    visit_schemas(&mut schema, &mut |keywords| {
        for keyword in LOCATION_KEYWORDS {
            // As a keyword the value is a string; a parameter may also be called `id`.
            if keywords.get(keyword).is_some_and(Value::is_string) {
                keywords.shift_remove(keyword);
            }
        }
        for keyword in ANNOTATION_KEYWORDS {
            keywords.shift_remove(keyword);
        }
        let Some(reference) = keywords.get("$ref") else { return };
        match reference.as_str().and_then(|reference| local_pointer(&root, reference)) {
            Some(pointer) => {
                keywords.insert("$ref".to_owned(), json!(format!("#/$defs/{definition}{pointer}")));
            }
            // An unresolvable reference restricts nothing.
            None => {
                keywords.shift_remove("$ref");
            }
        }
    });
    schema
}

/// The pointer of a local reference, if it resolves.
fn local_pointer<'a>(root: &Value, reference: &'a str) -> Option<&'a str> {
    let pointer = reference.strip_prefix('#')?;
    let decoded = pointer.replace("%25", "%").replace("%7E", "~").replace("%2F", "/").replace("%24", "$");
    root.pointer(&decoded).filter(|target| target.is_object() || target.is_boolean()).map(|_| pointer)
}

#[cfg(test)]
#[path = "call_schema_tests.rs"]
mod tests;
