//! Reads a JSON Schema as parameters for display: types, required, defaults, choices, nesting.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

/// Deeper nesting becomes a bare object. Bounds malicious schemas.
const MAX_DEPTH: usize = 8;
/// Parameters beyond this number are omitted.
const MAX_PARAMS: usize = 2_000;
/// A longer chain of references is taken for a cycle.
const MAX_REFERENCES: usize = 32;
/// Further alternatives of `anyOf` and `oneOf` are ignored.
const MAX_ALTERNATIVES: usize = 32;
/// Steps (one per property, a few per schema) after which the rest of the schema becomes `any`. Bounds malicious schemas.
const MAX_STEPS: usize = 100_000;
/// Steps that one schema takes besides its properties.
const STEPS_PER_SCHEMA: usize = 4;
/// Types beyond this number in a list are ignored; JSON Schema has seven.
const MAX_TYPES: usize = 16;
/// The keywords that describe a parameter.
const KEYWORDS: [&str; 8] = ["type", "description", "default", "enum", "const", "items", "anyOf", "oneOf"];
/// Names, descriptions, defaults and choices are copied up to this total size; values that do not fit are omitted.
const MAX_COPIED_BYTES: usize = 1 << 20;

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Param {
    /// Its name; empty for the items of an array.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a call must provide it.
    pub required: bool,
    /// Its value if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values it may have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    /// The fields of an object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Self>,
    /// The items of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Self>>,
}

/// The type of a parameter. `null` beside another type is dropped: it only means that the value is optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of JSON Schema")]
pub enum ParamType {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Null,
    /// Not specified.
    Any,
    /// One of several.
    Union(Vec<Self>),
}

impl std::fmt::Display for ParamType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
            Self::Any => "any",
            Self::Union(types) => {
                let words: Vec<String> = types.iter().map(ToString::to_string).collect();
                return f.write_str(&words.join("|"));
            }
        };
        f.write_str(word)
    }
}

/// The parameters of a tool whose arguments have this schema. Always terminates within bounds: what it does not understand
/// becomes `any`, and what is too large is omitted.
pub fn params(schema: &Value) -> Vec<Param> {
    let mut reader = SchemaReader::new(schema);
    let arguments = reader.merged(schema);
    reader.fields(&arguments, 0)
}

/// Whether two tools accept each other's calls: each has the parameters that the other requires, and common parameters have
/// compatible types.
pub fn are_compatible(one: &[Param], other: &[Param]) -> bool {
    let has_required = |required_by: &[Param], params: &[Param]| {
        required_by
            .iter()
            .filter(|param| param.required)
            .all(|param| params.iter().any(|known| known.name == param.name))
    };
    let types_agree = one.iter().all(|param| {
        other
            .iter()
            .filter(|same| same.name == param.name)
            .all(|same| are_types_compatible(&param.kind, &same.kind))
    });
    has_required(one, other) && has_required(other, one) && types_agree
}

fn are_types_compatible(one: &ParamType, other: &ParamType) -> bool {
    one == other || *one == ParamType::Any || *other == ParamType::Any
}

/// A schema with references followed and `allOf` merged; the outermost keyword wins.
#[derive(Default)]
struct MergedSchema<'a> {
    keywords: HashMap<&'static str, &'a Value>,
    properties: Vec<(&'a str, &'a Value)>,
    names: HashSet<&'a str>,
    required: HashSet<&'a str>,
    /// Addresses of the schemas already merged.
    parts: HashSet<*const Value>,
}

impl<'a> MergedSchema<'a> {
    /// Merges as much as `steps_left` allows.
    fn add(&mut self, object: &'a Map<String, Value>, steps_left: &mut usize) {
        for keyword in KEYWORDS {
            if let Some(value) = object.get(keyword) {
                self.keywords.entry(keyword).or_insert(value);
            }
        }
        if let Some(Value::Object(more)) = object.get("properties") {
            self.add_properties(more, steps_left);
        }
        if let Some(Value::Array(more)) = object.get("required") {
            for name in more.iter().filter_map(Value::as_str) {
                if self.required.len() >= MAX_PARAMS || !spend_steps(1, steps_left) {
                    return;
                }
                self.required.insert(name);
            }
        }
    }

    fn add_properties(&mut self, more: &'a Map<String, Value>, steps_left: &mut usize) {
        for (name, property) in more {
            if self.properties.len() >= MAX_PARAMS || !spend_steps(1, steps_left) {
                return;
            }
            if self.names.insert(name) {
                self.properties.push((name, property));
            }
        }
    }

    /// The list of allowed values, if there is one.
    fn choices(&self) -> Option<&'a Value> {
        let listed = self.keywords.get("enum").filter(|choices| choices.is_array());
        listed.or_else(|| self.keywords.get("const")).copied()
    }
}

/// Subtracts from the steps left. Returns false if they do not suffice.
fn spend_steps(count: usize, steps_left: &mut usize) -> bool {
    let is_enough = *steps_left >= count;
    *steps_left = steps_left.saturating_sub(count);
    is_enough
}

/// Reads one schema. Values that are referenced often are read once and cached by address.
struct SchemaReader<'a> {
    root: &'a Value,
    params_left: usize,
    steps_left: usize,
    bytes_left: usize,
    /// Targets of references.
    targets: HashMap<*const Value, Option<&'a Value>>,
    /// The types of choices.
    choice_types: HashMap<*const Value, ParamType>,
    /// Values that did not fit into the bytes left.
    too_large: HashSet<*const Value>,
}

impl<'a> SchemaReader<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            params_left: MAX_PARAMS,
            steps_left: MAX_STEPS,
            bytes_left: MAX_COPIED_BYTES,
            targets: HashMap::new(),
            choice_types: HashMap::new(),
            too_large: HashSet::new(),
        }
    }

    fn merged(&mut self, schema: &'a Value) -> MergedSchema<'a> {
        let mut merged = MergedSchema::default();
        self.merge_into(&mut merged, schema, 0);
        merged
    }

    fn merge_into(&mut self, merged: &mut MergedSchema<'a>, schema: &'a Value, depth: usize) {
        let Value::Object(object) = schema else { return };
        if depth > MAX_REFERENCES || !spend_steps(1, &mut self.steps_left) {
            return;
        }
        if !merged.parts.insert(std::ptr::from_ref(schema))
            || !spend_steps(STEPS_PER_SCHEMA, &mut self.steps_left)
        {
            return;
        }
        merged.add(object, &mut self.steps_left);
        if let Some(target) = object.get("$ref").and_then(|reference| self.target(reference)) {
            self.merge_into(merged, target, depth + 1);
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if self.steps_left == 0 {
                return;
            }
            self.merge_into(merged, part, depth + 1);
        }
    }

    /// The target of a reference within the document. External references are never followed.
    fn target(&mut self, reference: &'a Value) -> Option<&'a Value> {
        let root = self.root;
        *self.targets.entry(std::ptr::from_ref(reference)).or_insert_with(|| {
            let pointer = reference.as_str()?.strip_prefix('#')?;
            let pointer = pointer.replace("%25", "%").replace("%7E", "~").replace("%2F", "/");
            root.pointer(&pointer)
        })
    }

    fn fields(&mut self, schema: &MergedSchema<'a>, depth: usize) -> Vec<Param> {
        let mut fields = Vec::new();
        for (name, property) in &schema.properties {
            if self.params_left == 0 || depth >= MAX_DEPTH {
                break;
            }
            // A name is never truncated: a part of it would be another name.
            let Some(left) = self.bytes_left.checked_sub(name.len()) else { continue };
            self.bytes_left = left;
            let mut param = self.param(property, depth);
            param.required = schema.required.contains(name);
            (*name).clone_into(&mut param.name);
            fields.push(param);
        }
        fields
    }

    fn param(&mut self, schema: &'a Value, depth: usize) -> Param {
        self.params_left = self.params_left.saturating_sub(1);
        let mut merged = self.merged(schema);
        let (kind, only_alternative) = self.type_of(&merged);
        if let Some(alternative) = only_alternative {
            self.merge_into(&mut merged, alternative, 0);
        }
        let description = merged.keywords.get("description").filter(|text| text.is_string());
        let description = description.and_then(|text| self.reserve(text)?.as_str().map(str::to_owned));
        let default = merged.keywords.get("default").and_then(|default| self.reserve(default).cloned());
        let choices = merged.choices().and_then(|choices| self.reserve(choices).cloned());
        let choices = match (choices, merged.keywords.get("enum")) {
            (Some(Value::Array(choices)), Some(Value::Array(_))) => choices,
            (only, _) => only.into_iter().collect(),
        };
        let items = match merged.keywords.get("items") {
            Some(items) if depth + 1 < MAX_DEPTH && self.params_left > 0 => {
                Some(Box::new(self.param(items, depth + 1)))
            }
            _ => None,
        };
        Param {
            name: String::new(),
            kind,
            description,
            required: false,
            default,
            choices,
            fields: self.fields(&merged, depth + 1),
            items,
        }
    }

    /// Reserves bytes for a copy of the value; none if they do not suffice.
    fn reserve(&mut self, value: &'a Value) -> Option<&'a Value> {
        let address = std::ptr::from_ref(value);
        if self.too_large.contains(&address) {
            return None;
        }
        let mut left = self.bytes_left;
        if !spend_bytes(value, &mut left) {
            self.too_large.insert(address);
            return None;
        }
        self.bytes_left = left;
        Some(value)
    }

    /// The type, and the only alternative of `anyOf` or `oneOf` besides `null`.
    fn type_of(&mut self, schema: &MergedSchema<'a>) -> (ParamType, Option<&'a Value>) {
        if let Some(kind) = schema.keywords.get("type") {
            return (named_type(kind), None);
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.keywords.get(key)?.as_array());
        let Some(alternatives) = alternatives else {
            return (self.implied_type(schema), None);
        };
        let mut typed = Vec::new();
        for alternative in alternatives.iter().take(MAX_ALTERNATIVES) {
            let merged = self.merged(alternative);
            let kind = match merged.keywords.get("type") {
                Some(kind) => named_type(kind),
                None => self.implied_type(&merged),
            };
            if kind != ParamType::Null {
                typed.push((kind, alternative));
            }
        }
        match typed.as_slice() {
            [(kind, alternative)] => (kind.clone(), Some(*alternative)),
            _ => (union(typed.into_iter().map(|(kind, _)| kind)), None),
        }
    }

    /// The type of a schema without `type`.
    fn implied_type(&mut self, schema: &MergedSchema<'a>) -> ParamType {
        if !schema.properties.is_empty() {
            return ParamType::Object;
        }
        if schema.keywords.contains_key("items") {
            return ParamType::Array;
        }
        let Some(choices) = schema.choices() else { return ParamType::Any };
        let listed = schema.keywords.get("enum").and_then(|choices| choices.as_array());
        let read = || match listed {
            Some(choices) => union(choices.iter().map(type_of_value)),
            None => type_of_value(choices),
        };
        self.choice_types.entry(std::ptr::from_ref(choices)).or_insert_with(read).clone()
    }
}

/// Subtracts the size of a value from the bytes left. Returns false as soon as they do not suffice.
fn spend_bytes(value: &Value, left: &mut usize) -> bool {
    let mut spend = |bytes: usize| {
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or(0);
        rest.is_some()
    };
    if !spend(size_of::<Value>()) {
        return false;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => spend(text.len()),
        Value::Array(values) => values.iter().all(|value| spend_bytes(value, left)),
        Value::Object(object) => object.iter().all(|(key, value)| spend_entry_bytes(key, value, left)),
    }
}

fn spend_entry_bytes(key: &str, value: &Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(size_of::<String>() + key.len());
    spend_bytes(value, left)
}

fn named_type(kind: &Value) -> ParamType {
    match kind {
        Value::String(word) => match word.as_str() {
            "string" => ParamType::String,
            "number" => ParamType::Number,
            "integer" => ParamType::Integer,
            "boolean" => ParamType::Boolean,
            "array" => ParamType::Array,
            "object" => ParamType::Object,
            "null" => ParamType::Null,
            _ => ParamType::Any,
        },
        Value::Array(kinds) => union(
            kinds
                .iter()
                .take(MAX_TYPES)
                .filter(|kind| kind.is_string())
                .map(named_type)
                .filter(|kind| *kind != ParamType::Null),
        ),
        _ => ParamType::Any,
    }
}

fn type_of_value(value: &Value) -> ParamType {
    match value {
        Value::Null => ParamType::Null,
        Value::Bool(_) => ParamType::Boolean,
        Value::Number(number) if number.is_f64() => ParamType::Number,
        Value::Number(_) => ParamType::Integer,
        Value::String(_) => ParamType::String,
        Value::Array(_) => ParamType::Array,
        Value::Object(_) => ParamType::Object,
    }
}

fn union(kinds: impl Iterator<Item = ParamType>) -> ParamType {
    let mut distinct: Vec<ParamType> = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    match distinct.len() {
        0 => ParamType::Any,
        1 => distinct.pop().unwrap_or(ParamType::Any),
        _ => ParamType::Union(distinct),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
