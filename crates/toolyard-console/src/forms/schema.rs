//! [`SchemaForm`]: the inputs for a JSON Schema, which may be anything, because a server wrote it.

use serde_json::{Map, Value};

use super::field::{FieldKind, FormField};
use crate::format::shorten;

/// With more properties than this, all arguments are entered as one JSON object.
const MAX_FIELDS: usize = 60;
const MAX_CHOICES: usize = 100;
const MAX_DESCRIPTION_CHARS: usize = 400;
/// Strings that may be longer than this get several lines.
const MAX_SINGLE_LINE_CHARS: u64 = 200;
/// References and alternatives are followed this far.
const MAX_REFERENCE_DEPTH: usize = 8;
/// Names of properties whose values usually have several lines.
const LONG_TEXT_NAMES: [&str; 9] =
    ["body", "code", "content", "html", "markdown", "message", "prompt", "text", "thought"];
/// The property of the input for all arguments.
pub(super) const ALL_ARGUMENTS: &str = "";

/// A form for the arguments of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SchemaForm {
    pub(crate) fields: Vec<FormField>,
    /// Whether the only field takes all arguments as one JSON object.
    pub(crate) is_raw: bool,
}

impl SchemaForm {
    /// The form for a schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let root = resolve(schema, schema, 0);
        let properties = match root.get("properties") {
            Some(Value::Object(properties)) if properties.len() <= MAX_FIELDS => Some(properties),
            None if is_closed_object(root) => None,
            _ => return Self::raw(),
        };
        let required: Vec<&str> = match root.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let empty = Map::new();
        let properties = properties.unwrap_or(&empty).iter().enumerate();
        let mut fields: Vec<FormField> = properties
            .map(|(index, (name, property))| {
                let is_required = required.contains(&name.as_str());
                field(index, name, resolve(schema, property, 0), property, is_required)
            })
            .collect();
        // The required ones first; otherwise in the order of the schema.
        fields.sort_by_key(|field| !field.is_required);
        Self { fields, is_raw: false }
    }

    fn raw() -> Self {
        let field = FormField {
            property: ALL_ARGUMENTS.to_owned(),
            id: "arg-all".to_owned(),
            description: String::new(),
            is_required: false,
            kind: FieldKind::Json,
            value: "{}".to_owned(),
            error: None,
        };
        Self { fields: vec![field], is_raw: true }
    }
}

fn field(index: usize, name: &str, schema: &Value, property: &Value, is_required: bool) -> FormField {
    // The description may be beside the reference.
    let description = property.get("description").or_else(|| schema.get("description"));
    let description = description.and_then(Value::as_str).unwrap_or_default();
    let mut field = FormField {
        property: name.to_owned(),
        id: format!("arg-{index}"),
        description: shorten(description, MAX_DESCRIPTION_CHARS).into_owned(),
        is_required,
        kind: kind(name, schema),
        value: String::new(),
        error: None,
    };
    let default = property.get("default").or_else(|| schema.get("default"));
    let default = default.filter(|default| !default.is_null());
    let is_only_choice = matches!(&field.kind, FieldKind::Choice(values) if values.len() == 1) && is_required;
    let only_choice = schema.get("const").filter(|_| is_only_choice);
    if let Some(value) = default.or(only_choice) {
        field.set_argument(value);
    }
    field
}

fn kind(name: &str, schema: &Value) -> FieldKind {
    if let Some(Value::Array(choices)) = schema.get("enum") {
        let are_scalars = choices.iter().all(|choice| !choice.is_array() && !choice.is_object());
        let is_usable = are_scalars && !choices.is_empty() && choices.len() <= MAX_CHOICES;
        return if is_usable { FieldKind::Choice(choices.clone()) } else { FieldKind::Json };
    }
    if let Some(value) = schema.get("const") {
        let is_scalar = !value.is_array() && !value.is_object();
        return if is_scalar { FieldKind::Choice(vec![value.clone()]) } else { FieldKind::Json };
    }
    match type_name(schema) {
        Some("string") => {
            let max_length = schema.get("maxLength").and_then(Value::as_u64);
            let has_long_name = LONG_TEXT_NAMES.contains(&name.to_ascii_lowercase().as_str());
            let is_long =
                max_length.map_or(has_long_name, |length| length > MAX_SINGLE_LINE_CHARS && has_long_name);
            if is_long { FieldKind::LongText } else { FieldKind::Text }
        }
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        _ => FieldKind::Json,
    }
}

/// The type of a schema, if there is one besides `null`.
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

/// Whether a schema without properties is one of an object that has none.
fn is_closed_object(schema: &Value) -> bool {
    let is_empty = schema.as_object().is_some_and(Map::is_empty);
    let has_other_fields = ["additionalProperties", "patternProperties", "anyOf", "oneOf", "allOf", "$ref"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some_and(|value| value != &Value::Bool(false)));
    (is_empty || type_name(schema) == Some("object")) && !has_other_fields
}

/// Follows references within the document, and alternatives of which only one is not `null`.
fn resolve<'a>(document: &'a Value, schema: &'a Value, depth: usize) -> &'a Value {
    if depth >= MAX_REFERENCE_DEPTH {
        return schema;
    }
    if let Some(pointer) =
        schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'))
    {
        return match document.pointer(pointer) {
            Some(target) => resolve(document, target, depth + 1),
            None => schema,
        };
    }
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    if let Some(alternatives) = alternatives
        && schema.get("type").is_none()
    {
        let is_null = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let mut others = alternatives.iter().filter(|schema| !is_null(schema));
        if let (Some(only), None) = (others.next(), others.next()) {
            return resolve(document, only, depth + 1);
        }
    }
    schema
}
