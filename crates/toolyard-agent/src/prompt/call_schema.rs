//! The JSON Schema of "one call out of these", for models whose output can be held to a schema.

use serde_json::{Map, Value, json};
use toolyard_core::RawJson;

use super::{choose::Shown, native::holds_control_tokens, schema_walk::visit};

/// Words that would move the place from which references are counted, or name places that are elsewhere now.
const PLACES: [&str; 7] =
    ["$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"];

/// Words of a schema that restrict nothing: a sampler has no use for them, and they are a stranger's prose.
const PROSE: [&str; 5] = ["description", "title", "$comment", "examples", "default"];

/// A schema that exactly the calls of these tools fit: `{"id", "tool_name", "arguments"}`. Every tool's own schema
/// stands under `$defs` without its prose, so that its references still lead somewhere. A tool whose schema holds a
/// control token of chat templates is left out.
pub fn call_schema(shown: &[Shown]) -> Value {
    let mut calls = Vec::with_capacity(shown.len());
    let mut schemas = Map::new();
    for (at, Shown { tool, .. }) in shown.iter().enumerate() {
        let place = format!("tool_{}", at + 1);
        let schema = moved(&tool.schema, &place);
        if holds_control_tokens(&schema) {
            continue;
        }
        calls.push(json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "tool_name": {"const": tool.name},
                "arguments": {"$ref": format!("#/$defs/{place}")},
            },
            "required": ["id", "tool_name", "arguments"],
            "additionalProperties": false,
        }));
        schemas.insert(place, schema);
    }
    // Nothing at all fits an empty list.
    json!({"anyOf": calls, "$defs": schemas})
}

/// A tool's schema as it must read under `$defs`.
fn moved(schema: &RawJson, place: &str) -> Value {
    let mut schema = arguments_schema(schema);
    let root = schema.clone();
    visit(&mut schema, &mut |words| {
        for word in PLACES {
            // A name of a place is a text; a parameter may be called `id`.
            if words.get(word).is_some_and(Value::is_string) {
                words.shift_remove(word);
            }
        }
        for word in PROSE {
            words.shift_remove(word);
        }
        let Some(reference) = words.get("$ref") else { return };
        match reference.as_str().and_then(|reference| target(&root, reference)) {
            Some(pointer) => {
                words.insert("$ref".to_owned(), json!(format!("#/$defs/{place}{pointer}")));
            }
            // What leads nowhere restricts nothing.
            None => {
                words.shift_remove("$ref");
            }
        }
    });
    schema
}

/// The schema of arguments: an object, whatever else is said.
pub(super) fn arguments_schema(schema: &RawJson) -> Value {
    match schema.to_value() {
        Value::Object(mut words) => {
            words.insert("type".to_owned(), json!("object"));
            Value::Object(words)
        }
        _ => json!({"type": "object"}),
    }
}

/// The pointer of a reference within the same schema, if something is there.
fn target<'a>(root: &Value, reference: &'a str) -> Option<&'a str> {
    let pointer = reference.strip_prefix('#')?;
    let decoded = pointer.replace("%25", "%").replace("%7E", "~").replace("%2F", "/").replace("%24", "$");
    root.pointer(&decoded).filter(|target| target.is_object() || target.is_boolean()).map(|_| pointer)
}

#[cfg(test)]
#[path = "call_schema_tests.rs"]
mod tests;
