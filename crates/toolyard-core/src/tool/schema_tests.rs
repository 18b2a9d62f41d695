//! Parameters read from the schemas of real servers and of malicious ones.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn single_param(schema: &Value) -> Param {
    let mut found = params(&json!({"properties": {"p": schema}}));
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn types_required_defaults_and_choices_are_read() {
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
fn nested_objects_and_arrays_are_read() {
    let param = single_param(&json!({"type": "array", "items": {"type": "array", "items":
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}));
    let inner = param.items.unwrap().items.unwrap();
    assert_eq!(inner.fields[0].name, "x");
    assert!(inner.fields[0].required);
}

#[test]
fn a_pydantic_optional_has_its_inner_type() {
    let param = single_param(
        &json!({"anyOf": [{"type": "string", "description": "inner"}, {"type": "null"}], "default": null}),
    );
    assert_eq!(param.kind, ParamType::String);
    assert_eq!(param.default, Some(Value::Null));
    assert_eq!(single_param(&json!({"type": ["integer", "null"]})).kind, ParamType::Integer);
    assert_eq!(
        single_param(&json!({"anyOf": [{"type": "string"}, {"type": "number"}]})).kind.to_string(),
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
    let param = single_param(
        &json!({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}),
    );
    assert_eq!(param.fields.iter().filter(|field| field.required).count(), 2);
}

#[test]
fn a_reference_cycle_terminates() {
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
fn an_exponential_all_of_terminates() {
    let part = json!({"$ref": "#/$defs/bomb"});
    let schema = json!({"$ref": "#/$defs/bomb", "$defs": {"bomb": {"allOf": [part, part, part, part]}}});
    assert_eq!(params(&schema), []);
}

/// Reads a malicious schema within a time limit that suits a debug build on a busy machine.
fn params_in_time(schema: &Value) -> Vec<Param> {
    let started = std::time::Instant::now();
    let found = params(schema);
    assert!(started.elapsed().as_millis() < 1_000, "took {:?}", started.elapsed());
    found
}

/// Many properties with the same schema.
fn many_properties(count: usize, schema: &Value) -> Map<String, Value> {
    (0..count).map(|index| (format!("p{index}"), schema.clone())).collect()
}

#[test]
fn thousands_of_references_to_one_large_object_are_read_once() {
    let names: Vec<String> = (0..1_999).map(|index| format!("p{index}")).collect();
    let object = json!({"properties": many_properties(1_999, &json!({"type": "string"})), "required": names});
    let parts = vec![json!({"$ref": "#/$defs/object"}); 9_900];
    let found = params_in_time(&json!({"allOf": parts, "$defs": {"object": object}}));
    assert_eq!(found.len(), 1_999);
    assert!(found.iter().all(|param| param.required && param.kind == ParamType::String));
}

#[test]
fn merging_large_objects_for_every_parameter_terminates() {
    let object = json!({"properties": many_properties(1_999, &json!({}))});
    let reference = json!({"$ref": "#/$defs/object"});
    let alternatives = json!({"anyOf": vec![reference; 32]});
    let schema = json!({"properties": many_properties(1_999, &alternatives), "$defs": {"object": object}});
    assert_eq!(params_in_time(&schema).len(), 1_999);
    let large_definition = json!({"$ref": "#/$defs/words"});
    let schema = json!({"properties": many_properties(1_999, &large_definition), "$defs": {"words": many_properties(50_000, &json!(1))}});
    assert_eq!(params_in_time(&schema).len(), 1_999);
    let types = json!({"type": vec!["string"; 100_000]});
    let schema = json!({"properties": many_properties(1_999, &json!({"$ref": "#/$defs/types"})), "$defs": {"types": types}});
    assert_eq!(params_in_time(&schema).len(), 1_999);
    let far = json!({"$ref": format!("#/{}", "a/".repeat(500_000))});
    let near = json!({"$ref": "#/$defs/far"});
    assert_eq!(
        params_in_time(&json!({"properties": many_properties(1_999, &near), "$defs": {"far": far}})).len(),
        1_999
    );
}

#[test]
fn an_enormous_enum_is_not_copied_for_every_parameter() {
    let choices: Vec<String> = (0..60_000).map(|index| format!("value-{index:06}")).collect();
    let reference = json!({"$ref": "#/$defs/choices", "description": "one of many"});
    let schema =
        json!({"properties": many_properties(100, &reference), "$defs": {"choices": {"enum": choices}}});
    let found = params_in_time(&schema);
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|param| param.kind == ParamType::String && param.choices.is_empty()));
    assert!(found.iter().all(|param| param.description.as_deref() == Some("one of many")));
}

#[test]
fn copies_stay_within_one_budget() {
    let long = "x".repeat(100_000);
    for part in [
        json!({"description": long}),
        json!({"default": [long]}),
        json!({"default": {"key": long}}),
        json!({"enum": [long]}),
        json!({"const": long}),
        json!({"properties": {long.clone(): {}}}),
    ] {
        let schema = json!({"properties": many_properties(500, &json!({"$ref": "#/$defs/part"})), "$defs": {"part": part}});
        let found = params_in_time(&schema);
        let size = serde_json::to_string(&found).unwrap().len();
        assert_eq!(found.len(), 500, "only values that are too large are omitted");
        assert!((900_000..=MAX_COPIED_BYTES + 100_000).contains(&size), "{size}");
    }
}

#[test]
fn choices_are_complete_or_absent() {
    let choices: Vec<String> = (0..600).map(|index| format!("zone-{index}")).collect();
    let schema = json!({"properties": many_properties(100, &json!({"$ref": "#/$defs/zone"})), "$defs": {"zone": {"enum": choices}}});
    let counts: Vec<usize> = params(&schema).iter().map(|param| param.choices.len()).collect();
    assert_eq!((counts[0], counts[99]), (600, 0));
    assert!(counts.iter().all(|count| [0, 600].contains(count)));
    assert_eq!(single_param(&json!({"const": 7})).choices, [json!(7)]);
    assert_eq!(single_param(&json!({"const": [7]})).choices, [json!([7])]);
}

#[test]
fn compatible_tools_accept_each_others_calls() {
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
    assert!(are_compatible(&search, &other));
    assert!(!are_compatible(&search, &stricter));
    assert!(!are_compatible(&search, &different));
}

/// Any JSON with keywords of JSON Schema in it.
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
    fn any_json_is_read_in_finite_time(schema in any_schema()) {
        let found = params(&schema);
        prop_assert!(are_compatible(&found, &found));
    }
}
