//! A JSON Schema read as parameters that can be shown: types, required, defaults, choices, nesting.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// Deeper nesting than this is shown as a bare object: nobody reads further, and hostile schemas end here.
const MAX_DEPTH: usize = 8;
/// More parameters than this in one schema are left out.
const MAX_PARAMS: usize = 2_000;
/// A chain of references longer than this is taken for a cycle.
const MAX_REFERENCES: usize = 32;
/// More merging than this in one schema is a bomb; what is left of it is shown as `any`.
const MAX_MERGES: usize = 20_000;

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Param {
    /// Its name; empty for the items of an array.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a call without it is invalid.
    pub required: bool,
    /// What it is when absent.
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

/// The type of a parameter. `null` beside another type is dropped: it only says that the value may be absent.
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
    /// Nothing is said.
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

/// The parameters of a tool whose arguments have this schema. Never fails and never loops: what cannot be
/// understood is shown as `any`.
pub fn params(schema: &Value) -> Vec<Param> {
    let mut reader = Reader { root: schema, params_left: MAX_PARAMS, merges_left: MAX_MERGES };
    let arguments = reader.merged(schema);
    reader.fields(&arguments, 0)
}

/// Whether two tools take each other's calls: each knows what the other requires, and shared names have one type.
pub fn compatible(one: &[Param], other: &[Param]) -> bool {
    let knows_required = |these: &[Param], those: &[Param]| {
        these
            .iter()
            .filter(|param| param.required)
            .all(|param| those.iter().any(|known| known.name == param.name))
    };
    let types_agree = one.iter().all(|param| {
        other.iter().filter(|same| same.name == param.name).all(|same| types_fit(&param.kind, &same.kind))
    });
    knows_required(one, other) && knows_required(other, one) && types_agree
}

fn types_fit(one: &ParamType, other: &ParamType) -> bool {
    one == other || *one == ParamType::Any || *other == ParamType::Any
}

/// One schema after following references and merging `allOf`; the outermost word for anything wins.
#[derive(Default)]
struct Merged<'a> {
    words: HashMap<&'a str, &'a Value>,
    properties: Vec<(&'a str, &'a Value)>,
    required: Vec<&'a str>,
}

impl<'a> Merged<'a> {
    fn add(&mut self, object: &'a Map<String, Value>) {
        for (key, value) in object {
            match (key.as_str(), value) {
                ("$ref" | "allOf", _) => {}
                ("properties", Value::Object(more)) => {
                    for (name, property) in more {
                        if self.properties.len() < MAX_PARAMS
                            && !self.properties.iter().any(|(known, _)| known == name)
                        {
                            self.properties.push((name, property));
                        }
                    }
                }
                ("required", Value::Array(more)) => {
                    self.required.extend(more.iter().take(MAX_PARAMS).filter_map(Value::as_str));
                }
                (key, value) => {
                    self.words.entry(key).or_insert(value);
                }
            }
        }
    }

    fn choices(&self) -> Vec<Value> {
        match (self.words.get("enum"), self.words.get("const")) {
            (Some(Value::Array(choices)), _) => choices.clone(),
            (_, Some(only)) => vec![(*only).clone()],
            _ => Vec::new(),
        }
    }
}

struct Reader<'a> {
    root: &'a Value,
    params_left: usize,
    merges_left: usize,
}

impl<'a> Reader<'a> {
    fn merged(&mut self, schema: &'a Value) -> Merged<'a> {
        let mut merged = Merged::default();
        self.merge_into(&mut merged, schema, 0);
        merged
    }

    fn merge_into(&mut self, merged: &mut Merged<'a>, schema: &'a Value, steps: usize) {
        let Value::Object(object) = schema else { return };
        if steps > MAX_REFERENCES || self.merges_left == 0 {
            return;
        }
        self.merges_left -= 1;
        merged.add(object);
        if let Some(target) = object.get("$ref").and_then(Value::as_str).and_then(|at| self.lookup(at)) {
            self.merge_into(merged, target, steps + 1);
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.merge_into(merged, part, steps + 1);
        }
    }

    /// A place in the same document. References elsewhere are never followed.
    fn lookup(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = pointer.replace("%25", "%").replace("%7E", "~").replace("%2F", "/");
        self.root.pointer(&pointer)
    }

    fn fields(&mut self, schema: &Merged<'a>, depth: usize) -> Vec<Param> {
        let mut fields = Vec::new();
        for (name, property) in &schema.properties {
            if self.params_left == 0 || depth >= MAX_DEPTH {
                break;
            }
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
        let (kind, only_alternative) = self.kind_of(&merged);
        if let Some(alternative) = only_alternative {
            self.merge_into(&mut merged, alternative, 0);
        }
        let items = match merged.words.get("items") {
            Some(items) if depth + 1 < MAX_DEPTH && self.params_left > 0 => {
                Some(Box::new(self.param(items, depth + 1)))
            }
            _ => None,
        };
        Param {
            name: String::new(),
            kind,
            description: merged.words.get("description").and_then(|text| text.as_str()).map(str::to_owned),
            required: false,
            default: merged.words.get("default").map(|value| (*value).clone()),
            choices: merged.choices(),
            fields: self.fields(&merged, depth + 1),
            items,
        }
    }

    /// The type, and the one alternative left when `null` is taken out of `anyOf` or `oneOf`.
    fn kind_of(&mut self, schema: &Merged<'a>) -> (ParamType, Option<&'a Value>) {
        if let Some(kind) = schema.words.get("type") {
            return (named_type(kind), None);
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.words.get(key)?.as_array());
        let Some(alternatives) = alternatives else {
            return (implied_type(schema), None);
        };
        let mut typed = Vec::new();
        for alternative in alternatives.iter().take(MAX_REFERENCES) {
            let merged = self.merged(alternative);
            let kind =
                merged.words.get("type").map_or_else(|| implied_type(&merged), |kind| named_type(kind));
            if kind != ParamType::Null {
                typed.push((kind, alternative));
            }
        }
        match typed.as_slice() {
            [(kind, alternative)] => (kind.clone(), Some(*alternative)),
            _ => (union(typed.into_iter().map(|(kind, _)| kind)), None),
        }
    }
}

/// The type of a schema that does not say it.
fn implied_type(schema: &Merged<'_>) -> ParamType {
    if !schema.properties.is_empty() {
        ParamType::Object
    } else if schema.words.contains_key("items") {
        ParamType::Array
    } else {
        union(schema.choices().iter().map(type_of_value))
    }
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
