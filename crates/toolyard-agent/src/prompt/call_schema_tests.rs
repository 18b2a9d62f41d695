//! Calls that fit the schema of "one call out of these", and calls that do not.

use proptest::prelude::*;
use serde_json::json;
use toolyard_core::ToolSpec;

use super::*;
use crate::prompt::{Form, PromptTool, generate};

fn shown(name: &str, schema: Value) -> Shown {
    let tool = PromptTool::new(&ToolSpec::new(name, "x").with_input_schema(schema));
    Shown { tool, form: Form::Full, core: true }
}

fn fits(schema: &Value, tool: &str, arguments: &Value) -> bool {
    let call = json!({"id": "1", "tool_name": tool, "arguments": arguments});
    jsonschema::validator_for(schema).unwrap().is_valid(&call)
}

#[test]
fn exactly_the_calls_of_these_tools_fit() {
    let tree = json!({"type": "object", "required": ["tree"], "additionalProperties": false,
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}, "again": {"$ref": "#"}}}}});
    let text = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    let schema = call_schema(&[shown("plant", tree), shown("say", text)]);
    assert!(fits(&schema, "say", &json!({"text": "hello"})));
    assert!(fits(
        &schema,
        "plant",
        &json!({"tree": {"value": 1, "next": {"value": 2, "again": {"tree": {}}}}})
    ));
    assert!(!fits(&schema, "plant", &json!({"tree": {"next": {"value": "two"}}})));
    assert!(!fits(&schema, "plant", &json!({"tree": {"again": {}}})));
    assert!(!fits(&schema, "plant", &json!({"text": "hello"})));
    assert!(!fits(&schema, "shout", &json!({"text": "hello"})));
    let named = json!({"id": "1", "tool_name": "say", "arguments": {"text": "a"}, "source": "native"});
    assert!(!jsonschema::validator_for(&schema).unwrap().is_valid(&named));
}

#[test]
fn references_that_lead_elsewhere_or_nowhere_restrict_nothing() {
    let schema = json!({"$id": "https://example.com/s", "properties": {
        "a": {"$ref": "https://example.com/other"}, "b": {"$ref": "#/$defs/none"}, "c": {"$ref": "#name"}, "id": {"type": "string"}}});
    let schema = call_schema(&[shown("t", schema)]);
    assert!(fits(&schema, "t", &json!({"a": 1, "b": 2, "c": 3, "id": "x"})));
    assert!(!fits(&schema, "t", &json!({"id": 5})));
}

proptest! {
    #[test]
    fn every_reference_leads_somewhere(schema in prop_oneof![generate::schema(), generate::json_of_any_kind()]) {
        let schema = call_schema(&[shown("t", schema)]);
        let mut dangling = Vec::new();
        let mut walked = schema.clone();
        visit(&mut walked, &mut |words| {
            if let Some(reference) = words.get("$ref") {
                let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
                if schema.pointer(pointer).is_none() {
                    dangling.push(reference.clone());
                }
            }
        });
        prop_assert!(dangling.is_empty(), "{:?}", dangling);
    }
}
