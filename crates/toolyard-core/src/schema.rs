//! A JSON Schema read as parameters that can be shown: types, required, defaults, choices, nesting.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

/// Deeper nesting than this is shown as a bare object: nobody reads further, and hostile schemas end here.
const MAX_DEPTH: usize = 8;
/// More parameters than this in one schema are left out.
const MAX_PARAMS: usize = 2_000;
/// A chain of references longer than this is taken for a cycle.
const MAX_REFERENCES: usize = 32;
/// More looking than this (one step per property, a few per schema) is a bomb; what is left of it is shown as `any`.
const MAX_STEPS: usize = 100_000;
/// What it takes to look at one schema besides its properties.
const SCHEMA_STEPS: usize = 4;
/// JSON Schema has seven types; a longer list of them is not read to its end.
const MAX_TYPES: usize = 16;
/// The words that say something about a parameter.
const WORDS: [&str; 8] = ["type", "description", "default", "enum", "const", "items", "anyOf", "oneOf"];
/// Names, descriptions, defaults and choices are copied up to this many bytes in all; what does not fit is left out.
const MAX_COPIED: usize = 1 << 20;

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

/// The parameters of a tool whose arguments have this schema. Never fails, never loops and never grows beyond
/// bounds: what cannot be understood is shown as `any`, and what is too large is left out.
pub fn params(schema: &Value) -> Vec<Param> {
    let mut reader = Reader::new(schema);
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
    words: HashMap<&'static str, &'a Value>,
    properties: Vec<(&'a str, &'a Value)>,
    names: HashSet<&'a str>,
    required: HashSet<&'a str>,
    /// What was merged already, by address: merging it again would add nothing.
    parts: HashSet<*const Value>,
}

impl<'a> Merged<'a> {
    /// Merges as much as there are steps left for.
    fn add(&mut self, object: &'a Map<String, Value>, steps_left: &mut usize) {
        for word in WORDS {
            if let Some(value) = object.get(word) {
                self.words.entry(word).or_insert(value);
            }
        }
        if let Some(Value::Object(more)) = object.get("properties") {
            self.add_properties(more, steps_left);
        }
        if let Some(Value::Array(more)) = object.get("required") {
            for name in more.iter().filter_map(Value::as_str) {
                if self.required.len() >= MAX_PARAMS || !take_steps(1, steps_left) {
                    return;
                }
                self.required.insert(name);
            }
        }
    }

    fn add_properties(&mut self, more: &'a Map<String, Value>, steps_left: &mut usize) {
        for (name, property) in more {
            if self.properties.len() >= MAX_PARAMS || !take_steps(1, steps_left) {
                return;
            }
            if self.names.insert(name) {
                self.properties.push((name, property));
            }
        }
    }

    /// The only values it may have, where they are named.
    fn choices(&self) -> Option<&'a Value> {
        let listed = self.words.get("enum").filter(|choices| choices.is_array());
        listed.or_else(|| self.words.get("const")).copied()
    }
}

fn take_steps(count: usize, steps_left: &mut usize) -> bool {
    let left = *steps_left >= count;
    *steps_left = steps_left.saturating_sub(count);
    left
}

/// Reads one schema. Whatever many places refer to is looked at once and remembered by its address.
struct Reader<'a> {
    root: &'a Value,
    params_left: usize,
    steps_left: usize,
    bytes_left: usize,
    /// Where references lead.
    targets: HashMap<*const Value, Option<&'a Value>>,
    /// The types of choices.
    choice_types: HashMap<*const Value, ParamType>,
    /// What did not fit into the bytes left, which never become more.
    too_large: HashSet<*const Value>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            params_left: MAX_PARAMS,
            steps_left: MAX_STEPS,
            bytes_left: MAX_COPIED,
            targets: HashMap::new(),
            choice_types: HashMap::new(),
            too_large: HashSet::new(),
        }
    }

    fn merged(&mut self, schema: &'a Value) -> Merged<'a> {
        let mut merged = Merged::default();
        self.merge_into(&mut merged, schema, 0);
        merged
    }

    fn merge_into(&mut self, merged: &mut Merged<'a>, schema: &'a Value, depth: usize) {
        let Value::Object(object) = schema else { return };
        if depth > MAX_REFERENCES || !take_steps(1, &mut self.steps_left) {
            return;
        }
        if !merged.parts.insert(std::ptr::from_ref(schema)) || !take_steps(SCHEMA_STEPS, &mut self.steps_left)
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

    /// A place in the same document. References elsewhere are never followed.
    fn target(&mut self, reference: &'a Value) -> Option<&'a Value> {
        let root = self.root;
        *self.targets.entry(std::ptr::from_ref(reference)).or_insert_with(|| {
            let pointer = reference.as_str()?.strip_prefix('#')?;
            let pointer = pointer.replace("%25", "%").replace("%7E", "~").replace("%2F", "/");
            root.pointer(&pointer)
        })
    }

    fn fields(&mut self, schema: &Merged<'a>, depth: usize) -> Vec<Param> {
        let mut fields = Vec::new();
        for (name, property) in &schema.properties {
            if self.params_left == 0 || depth >= MAX_DEPTH {
                break;
            }
            // Half a name is another name, and none at all would be nobody's parameter.
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
        let (kind, only_alternative) = self.kind_of(&merged);
        if let Some(alternative) = only_alternative {
            self.merge_into(&mut merged, alternative, 0);
        }
        let description = merged.words.get("description").filter(|text| text.is_string());
        let description = description.and_then(|text| self.copied(text)?.as_str().map(str::to_owned));
        let default = merged.words.get("default").and_then(|default| self.copied(default).cloned());
        let choices = merged.choices().and_then(|choices| self.copied(choices).cloned());
        let choices = match (choices, merged.words.get("enum")) {
            (Some(Value::Array(choices)), Some(Value::Array(_))) => choices,
            (only, _) => only.into_iter().collect(),
        };
        let items = match merged.words.get("items") {
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

    /// The same value, if a copy of it still fits; the copy is then paid for.
    fn copied(&mut self, value: &'a Value) -> Option<&'a Value> {
        let address = std::ptr::from_ref(value);
        if self.too_large.contains(&address) {
            return None;
        }
        let mut left = self.bytes_left;
        if !pay_for(value, &mut left) {
            self.too_large.insert(address);
            return None;
        }
        self.bytes_left = left;
        Some(value)
    }

    /// The type, and the one alternative left when `null` is taken out of `anyOf` or `oneOf`.
    fn kind_of(&mut self, schema: &Merged<'a>) -> (ParamType, Option<&'a Value>) {
        if let Some(kind) = schema.words.get("type") {
            return (named_type(kind), None);
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.words.get(key)?.as_array());
        let Some(alternatives) = alternatives else {
            return (self.implied_type(schema), None);
        };
        let mut typed = Vec::new();
        for alternative in alternatives.iter().take(MAX_REFERENCES) {
            let merged = self.merged(alternative);
            let kind = match merged.words.get("type") {
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

    /// The type of a schema that does not say it.
    fn implied_type(&mut self, schema: &Merged<'a>) -> ParamType {
        if !schema.properties.is_empty() {
            return ParamType::Object;
        }
        if schema.words.contains_key("items") {
            return ParamType::Array;
        }
        let Some(choices) = schema.choices() else { return ParamType::Any };
        let listed = schema.words.get("enum").and_then(|choices| choices.as_array());
        let read = || match listed {
            Some(choices) => union(choices.iter().map(type_of_value)),
            None => type_of_value(choices),
        };
        self.choice_types.entry(std::ptr::from_ref(choices)).or_insert_with(read).clone()
    }
}

/// Takes the bytes of a value from those left; whether there were enough. Stops looking when there are not.
fn pay_for(value: &Value, left: &mut usize) -> bool {
    let mut pay = |bytes: usize| {
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or(0);
        rest.is_some()
    };
    if !pay(size_of::<Value>()) {
        return false;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => pay(text.len()),
        Value::Array(values) => values.iter().all(|value| pay_for(value, left)),
        Value::Object(object) => object.iter().all(|(key, value)| pay_for_entry(key, value, left)),
    }
}

fn pay_for_entry(key: &str, value: &Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(size_of::<String>() + key.len());
    pay_for(value, left)
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
