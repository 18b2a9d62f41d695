//! Schemas as real servers and hostile ones write them.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn one(schema: &Value) -> Param {
    let mut found = params(&json!({"properties": {"p": schema}}));
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn types_required_defaults_and_choices() {
    let found = params(&json!({
        "type": "object",
        "properties": {
            "filepath": {"type": "string", "description": "Path to Excel file"},
            "limit": {"type": "integer", "default": 10},
            "unit": {"enum": ["c", "f"]}
        },
        "required": ["filepath"]
    }));
    assert_eq!(found.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["filepath", "limit", "unit"]);
    assert!(found[0].required && !found[1].required);
    assert_eq!(found[0].description.as_deref(), Some("Path to Excel file"));
    assert_eq!(found[1].default, Some(json!(10)));
    assert_eq!((found[2].kind.clone(), found[2].choices.len()), (ParamType::String, 2));
}

#[test]
fn nested_objects_and_arrays() {
    let param = one(&json!({"type": "array", "items": {"type": "array", "items":
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}));
    let inner = param.items.unwrap().items.unwrap();
    assert_eq!(inner.fields[0].name, "x");
    assert!(inner.fields[0].required);
}

#[test]
fn an_optional_of_pydantic_is_its_inner_type() {
    let param = one(
        &json!({"anyOf": [{"type": "string", "description": "inner"}, {"type": "null"}], "default": null}),
    );
    assert_eq!(param.kind, ParamType::String);
    assert_eq!(param.default, Some(Value::Null));
    assert_eq!(one(&json!({"type": ["integer", "null"]})).kind, ParamType::Integer);
    assert_eq!(
        one(&json!({"anyOf": [{"type": "string"}, {"type": "number"}]})).kind.to_string(),
        "string|number"
    );
}

#[test]
fn references_are_followed_within_the_document_only() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/A~1b", "description": "outer wins"}, "e": {"$ref": "https://x.example/s"}},
        "$defs": {"A/b": {"type": "object", "description": "inner", "properties": {"n": {"type": "integer"}}}}
    });
    let found = params(&schema);
    assert_eq!(found[0].description.as_deref(), Some("outer wins"));
    assert_eq!(found[0].fields[0].kind, ParamType::Integer);
    assert_eq!(found[1].kind, ParamType::Any);
}

#[test]
fn all_of_is_merged() {
    let param = one(
        &json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}),
    );
    assert_eq!(param.fields.iter().filter(|field| field.required).count(), 2);
}

#[test]
fn a_reference_cycle_ends() {
    let schema = json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}},
            "loop": {"$ref": "#/$defs/loop"}
        }
    });
    assert_eq!(params(&schema).len(), 1);
    assert_eq!(params(&json!({"properties": {"p": {"$ref": "#/properties/p"}}})).len(), 1);
    assert_eq!(params(&json!({"$ref": "#"})), []);
}

#[test]
fn a_bomb_of_all_of_ends() {
    let part = json!({"$ref": "#/$defs/bomb"});
    let schema = json!({"$ref": "#/$defs/bomb", "$defs": {"bomb": {"allOf": [part, part, part, part]}}});
    assert_eq!(params(&schema), []);
}

#[test]
fn compatible_tools_take_each_others_calls() {
    let search = params(
        &json!({"properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}),
    );
    let other = params(
        &json!({"properties": {"query": {"type": "string"}, "lang": {"type": "string"}}, "required": ["query"]}),
    );
    let stricter = params(
        &json!({"properties": {"query": {"type": "string"}, "key": {"type": "string"}}, "required": ["query", "key"]}),
    );
    let different = params(&json!({"properties": {"query": {"type": "array"}}, "required": ["query"]}));
    assert!(compatible(&search, &other));
    assert!(!compatible(&search, &stricter));
    assert!(!compatible(&search, &different));
}

/// Any JSON at all, with the words of JSON Schema in it.
fn any_schema() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("$ref"),
        Just("allOf"),
        Just("anyOf"),
        Just("items"),
        Just("properties"),
        Just("required"),
        Just("type"),
        Just("enum"),
        Just("default"),
        Just("$defs")
    ];
    let leaf = prop_oneof![
        Just(json!("#")),
        Just(json!("#/properties")),
        Just(json!("#/$defs/items")),
        Just(json!("object")),
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(3))
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_json_at_all_is_read_without_looping(schema in any_schema()) {
        let found = params(&schema);
        prop_assert!(compatible(&found, &found));
    }
}
