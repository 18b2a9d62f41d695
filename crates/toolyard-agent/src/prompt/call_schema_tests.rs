//! Calls that match the call schema, and calls that do not.

use proptest::prelude::*;
use serde_json::json;
use toolyard_core::ToolSpec;

use super::*;
use crate::prompt::{DetailLevel, PromptTool, tests::generators};

fn selected(name: &str, schema: Value) -> SelectedTool {
    let tool = PromptTool::new(&ToolSpec::new(name, "x").with_input_schema(schema));
    SelectedTool { tool, detail: DetailLevel::Full, is_core: true }
}

fn is_valid_call(schema: &Value, tool: &str, arguments: &Value) -> bool {
    let call = json!({"id": "1", "tool_name": tool, "arguments": arguments});
    jsonschema::validator_for(schema).unwrap().is_valid(&call)
}

#[test]
fn exactly_the_calls_of_the_tools_match() {
    let tree = json!({"type": "object", "required": ["tree"], "additionalProperties": false,
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}, "again": {"$ref": "#"}}}}});
    let text = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    let schema = call_schema(&[selected("plant", tree), selected("say", text)]);
    assert!(is_valid_call(&schema, "say", &json!({"text": "hello"})));
    assert!(is_valid_call(
        &schema,
        "plant",
        &json!({"tree": {"value": 1, "next": {"value": 2, "again": {"tree": {}}}}})
    ));
    assert!(!is_valid_call(&schema, "plant", &json!({"tree": {"next": {"value": "two"}}})));
    assert!(!is_valid_call(&schema, "plant", &json!({"tree": {"again": {}}})));
    assert!(!is_valid_call(&schema, "plant", &json!({"text": "hello"})));
    assert!(!is_valid_call(&schema, "shout", &json!({"text": "hello"})));
    let with_source = json!({"id": "1", "tool_name": "say", "arguments": {"text": "a"}, "source": "native"});
    assert!(!jsonschema::validator_for(&schema).unwrap().is_valid(&with_source));
}

#[test]
fn external_and_dangling_references_restrict_nothing() {
    let schema = json!({"$id": "https://example.com/s", "properties": {
        "a": {"$ref": "https://example.com/other"}, "b": {"$ref": "#/$defs/none"}, "c": {"$ref": "#name"}, "id": {"type": "string"}}});
    let schema = call_schema(&[selected("t", schema)]);
    assert!(is_valid_call(&schema, "t", &json!({"a": 1, "b": 2, "c": 3, "id": "x"})));
    assert!(!is_valid_call(&schema, "t", &json!({"id": 5})));
}

proptest! {
    #[test]
    fn every_reference_resolves(schema in prop_oneof![generators::schema(), generators::any_json()]) {
        let schema = call_schema(&[selected("t", schema)]);
        let mut dangling = Vec::new();
        let mut walked = schema.clone();
        visit_schemas(&mut walked, &mut |keywords| {
            if let Some(reference) = keywords.get("$ref") {
                let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
                if schema.pointer(pointer).is_none() {
                    dangling.push(reference.clone());
                }
            }
        });
        prop_assert!(dangling.is_empty(), "{:?}", dangling);
    }
}
