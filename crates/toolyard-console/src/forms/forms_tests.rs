//! Any schema gives a form, and what is entered into a form of a flat schema arrives as it was meant.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{FieldError, FieldKind, SchemaForm};
use crate::form_fields::FormFields;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["string", "integer", "object", "null", "#/properties/a", "#"])
            .prop_map(Value::from),
    ];
    let keyword = prop_oneof![
        prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "default",
            "items",
            "description",
            "additionalProperties",
            "maxLength",
            "$defs",
            "a",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keyword.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A property of a flat schema, and a value of it.
fn flat_property() -> impl Strategy<Value = (Value, Value)> {
    let nullable = |name: &'static str| {
        prop::sample::select(vec![
            json!({"type": name}),
            json!({"type": [name, "null"]}),
            json!({"anyOf": [{"type": name}, {"type": "null"}]}),
        ])
    };
    let choices = prop::collection::vec("\\PC{0,8}", 1..5).prop_flat_map(|choices| {
        let schema = json!({"type": "string", "enum": choices});
        (Just(schema), prop::sample::select(choices).prop_map(Value::from))
    });
    prop_oneof![
        (nullable("string"), "\\PC{1,30}".prop_map(Value::from)),
        (nullable("integer"), any::<i64>().prop_map(Value::from)),
        (nullable("number"), (-1e9..1e9_f64).prop_map(Value::from)),
        (nullable("boolean"), any::<bool>().prop_map(Value::from)),
        (Just(json!({"type": "object"})), any_json()),
        (
            Just(json!({"type": "array", "items": {"type": "string"}})),
            prop::collection::vec("\\PC{0,9}", 0..4).prop_map(Value::from)
        ),
        choices,
    ]
}

/// The fields that a browser submits for a form.
fn submit(form: &SchemaForm) -> FormFields {
    let fields = form.fields.iter().map(|field| {
        let text = if field.is_multiline() { field.value.replace('\n', "\r\n") } else { field.value.clone() };
        (field.name(), text)
    });
    let pairs: Vec<(String, String)> = fields.collect();
    let mut encoder = form_urlencoded::Serializer::new(String::new());
    encoder.extend_pairs(&pairs);
    FormFields::parse(encoder.finish().as_bytes())
}

proptest! {
    #[test]
    fn every_schema_has_a_form(schema in any_json(), submitted in prop::collection::vec(("\\PC{0,8}", "\\PC{0,8}"), 0..4)) {
        let mut form = SchemaForm::of(&schema);
        let _ = form.read(&submit(&form.clone()));
        let _ = form.read(&FormFields::of(submitted));
    }

    #[test]
    fn arguments_of_flat_schemas_survive_the_form(
        properties in prop::collection::btree_map("[a-z<\"&=% ]{1,8}", (flat_property(), any::<bool>()), 0..8),
    ) {
        let schemas: Map<String, Value> = properties.iter().map(|(name, ((schema, _), _))| (name.clone(), schema.clone())).collect();
        let required: Vec<&String> = properties.iter().filter(|(_, (_, is_required))| *is_required).map(|(name, _)| name).collect();
        let schema = json!({"type": "object", "properties": schemas, "required": required});
        let mut form = SchemaForm::of(&schema);
        prop_assert!(!form.is_raw);
        for field in &mut form.fields {
            let ((_, value), _) = &properties[&field.property];
            field.set_argument(value);
        }
        let expected: Map<String, Value> = properties.iter().map(|(name, ((_, value), _))| (name.clone(), value.clone())).collect();
        let submitted = submit(&form);
        let read = form.read(&submitted);
        prop_assert_eq!(read.map(|read| Value::Object(read).to_string().len()), Some(Value::Object(expected.clone()).to_string().len()));
        let submitted = submit(&form);
        prop_assert_eq!(form.read(&submitted), Some(expected));
    }
}

fn kinds(schema: &Value) -> Vec<(String, FieldKind, bool)> {
    let fields = SchemaForm::of(schema).fields;
    fields.into_iter().map(|field| (field.property, field.kind, field.is_required)).collect()
}

#[test]
fn inputs_fit_the_types_and_required_ones_come_first() {
    let schema = json!({
        "type": "object",
        "$defs": {"Unit": {"enum": ["c", "f"]}},
        "properties": {
            "note": {"type": "string"},
            "content": {"type": "string"},
            "unit": {"$ref": "#/$defs/Unit"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
            "nested": {"type": "object", "properties": {"a": {"type": "string"}}},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "anything": true
        },
        "required": ["unit"]
    });
    let text = |name: &str, kind, is_required| (name.to_owned(), kind, is_required);
    assert_eq!(
        kinds(&schema),
        [
            text("unit", FieldKind::Choice(vec![json!("c"), json!("f")]), true),
            text("note", FieldKind::Text, false),
            text("content", FieldKind::LongText, false),
            text("limit", FieldKind::Integer, false),
            text("nested", FieldKind::Json, false),
            text("either", FieldKind::Json, false),
            text("anything", FieldKind::Json, false),
        ]
    );
    assert_eq!(SchemaForm::of(&schema).fields[3].value, "5");
}

#[test]
fn schemas_without_properties_need_nothing_or_json() {
    for none in [
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
    ] {
        assert_eq!(SchemaForm::of(&none), SchemaForm { fields: Vec::new(), is_raw: false }, "{none}");
    }
    let many: Map<String, Value> = (0..61).map(|number| (number.to_string(), json!({}))).collect();
    for raw in [
        json!(true),
        json!([]),
        json!({"type": "object", "additionalProperties": true}),
        json!({"properties": many}),
        json!({"$ref": "#"}),
    ] {
        assert!(SchemaForm::of(&raw).is_raw, "{raw}");
    }
}

#[test]
fn wrong_values_are_reported_at_their_field() {
    let schema = json!({"properties": {
        "a": {"type": "integer"}, "b": {"type": "number"}, "c": {"enum": ["x"]}, "d": {"type": "array"}, "e": {"type": "boolean"}
    }, "required": ["e"]});
    let mut form = SchemaForm::of(&schema);
    let submitted = b"arg:a=1.5&arg:b=ten&arg:c=%22y%22&arg:d=[1&arg:e=";
    assert_eq!(form.read(&FormFields::parse(submitted)), None);
    let errors: Vec<_> = form.fields.iter().map(|field| field.error.unwrap()).collect();
    use FieldError as E;
    assert_eq!(errors, [E::Missing, E::NotAnInteger, E::NotANumber, E::NotAChoice, E::InvalidJson]);
    let mut raw = SchemaForm::of(&json!(true));
    assert_eq!(raw.read(&FormFields::parse(b"arg:=[1]")), None, "arguments are an object");
    assert_eq!(raw.read(&FormFields::parse(b"arg:={\"a\":1}")).map(Value::Object), Some(json!({"a": 1})));
}
