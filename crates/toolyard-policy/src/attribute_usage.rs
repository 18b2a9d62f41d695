//! Finds out which arguments and claims a policy reads, and as which types, from the policy as JSON.
//!
//! Arguments and claims have no fixed type, and Cedar validates policies against types. The type of each attribute follows
//! from its use: `like` reads text, `<` integers, `contains` sets. A call whose argument has another type fails the
//! evaluation of the policy, which denies the call. Cedar itself fails only in operators that need a type; for the others,
//! such as `==`, `type_checks.rs` adds the check.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

/// What a policy reads of the two records without a fixed type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AttributeUsage {
    pub(crate) arguments: Fields,
    pub(crate) claims: Fields,
}

/// The attributes of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, Field>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The type that its use implies, if it is used as anything but a record.
    value: Option<ValueType>,
    /// Its attributes, if it is used as a record.
    fields: Fields,
}

/// The type of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    Scalar(Scalar),
    Set(Scalar),
}

/// A type that is not composed of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Text,
    Long,
    Bool,
}

const TEXT: ValueType = ValueType::Scalar(Scalar::Text);
const LONG: ValueType = ValueType::Scalar(Scalar::Long);
const BOOL: ValueType = ValueType::Scalar(Scalar::Bool);
/// The declared type of an attribute whose use implies none, as in the comparison of two attributes.
const UNKNOWN: ValueType = TEXT;
const TEXTS: ValueType = ValueType::Set(Scalar::Text);

/// A policy compares or passes a record as a whole.
///
/// Remedy: read one of its attributes: `principal.name`, `context.arguments.path`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be used as a whole; read its attributes, such as `{0}.name`")]
pub(crate) struct WholeRecord(&'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Arguments,
    Claims,
}

impl AttributeUsage {
    /// Adds what a condition reads.
    pub(crate) fn extend(&mut self, expression: &Value) -> Result<(), WholeRecord> {
        self.walk(expression, Some(BOOL))
    }

    /// The declarations that complete the schema.
    pub(crate) fn declarations(&self) -> String {
        format!(
            "type Arguments = {};\ntype Claims = {};\n",
            self.arguments.declaration(),
            self.claims.declaration()
        )
    }

    /// The type that the policy expects of an attribute of one of the two records, which is text unless its use implies another;
    /// `None` if it is a record, or if the expression is something else.
    pub(crate) fn expected_type(&self, expression: &Value) -> Option<ValueType> {
        let (root, path) = attribute_path(expression)?;
        let (last, parents) = path.split_last()?;
        let mut fields = match root {
            Root::Arguments => &self.arguments,
            Root::Claims => &self.claims,
        };
        for parent in parents {
            fields = &fields.0.get(*parent)?.fields;
        }
        let field = fields.0.get(*last).filter(|field| field.fields.is_empty())?;
        Some(field.value.unwrap_or(UNKNOWN))
    }

    fn record(&mut self, root: Root, path: &[&str], value: Option<ValueType>) {
        let mut fields = match root {
            Root::Arguments => &mut self.arguments,
            Root::Claims => &mut self.claims,
        };
        let Some((last, parents)) = path.split_last() else { return };
        for parent in parents {
            fields = &mut fields.0.entry((*parent).to_owned()).or_default().fields;
        }
        let field = fields.0.entry((*last).to_owned()).or_default();
        field.value = field.value.or(value);
    }

    fn walk(&mut self, expression: &Value, expected: Option<ValueType>) -> Result<(), WholeRecord> {
        if let Some((root, path)) = attribute_path(expression) {
            if path.is_empty() {
                return Err(WholeRecord(root.name()));
            }
            self.record(root, &path, expected);
            return Ok(());
        }
        let Some((operator, operands)) = operation(expression) else { return Ok(()) };
        let operand = |name: &str| operands.get(name).unwrap_or(&Value::Null);
        let (left, right) = (operand("left"), operand("right"));
        match operator {
            "Var" if operands == "context" => return Err(WholeRecord("context")),
            "Value" | "Var" => {}
            "." => self.walk_attribute(left)?,
            "has" => match attribute_path(left) {
                Some((root, mut path)) => {
                    path.extend(operand("attr").as_str());
                    self.record(root, &path, None);
                }
                None => self.walk_attribute(left)?,
            },
            "&&" | "||" => self.walk_both(left, right, Some(BOOL))?,
            "<" | "<=" | ">" | ">=" | "+" | "-" | "*" => self.walk_both(left, right, Some(LONG))?,
            "!" => self.walk(operand("arg"), Some(BOOL))?,
            "neg" => self.walk(operand("arg"), Some(LONG))?,
            "isEmpty" => self.walk(operand("arg"), Some(TEXTS))?,
            "like" => self.walk(left, Some(TEXT))?,
            "==" | "!=" => {
                self.walk(left, type_of(right))?;
                self.walk(right, type_of(left))?;
            }
            "contains" => {
                let item = type_of(right).unwrap_or(TEXT);
                self.walk(left, Some(set_of(item).unwrap_or(TEXTS)))?;
                self.walk(right, type_of(left).and_then(item_of).or(Some(TEXT)))?;
            }
            "containsAll" | "containsAny" => {
                self.walk(left, type_of(right).or(Some(TEXTS)))?;
                self.walk(right, type_of(left).or(Some(TEXTS)))?;
            }
            "if-then-else" => {
                self.walk(operand("if"), Some(BOOL))?;
                self.walk_both(operand("then"), operand("else"), expected)?;
            }
            "Set" => {
                for item in children(operands) {
                    self.walk(item, expected.and_then(item_of))?;
                }
            }
            _ => {
                for child in children(operands) {
                    self.walk(child, None)?;
                }
            }
        }
        Ok(())
    }

    fn walk_both(
        &mut self,
        left: &Value,
        right: &Value,
        expected: Option<ValueType>,
    ) -> Result<(), WholeRecord> {
        self.walk(left, expected)?;
        self.walk(right, expected)
    }

    /// What is left of an attribute: a variable may be there as a whole.
    fn walk_attribute(&mut self, left: &Value) -> Result<(), WholeRecord> {
        if left.get("Var").is_some() { Ok(()) } else { self.walk(left, None) }
    }
}

impl Root {
    fn name(self) -> &'static str {
        match self {
            Self::Arguments => "context.arguments",
            Self::Claims => "principal.claims",
        }
    }
}

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn declaration(&self) -> String {
        let mut text = String::from("{");
        for (name, field) in &self.0 {
            // Rust and Cedar escape text alike.
            let _ = write!(text, " {name:?}?: {},", field.declaration());
        }
        text.push_str(" }");
        text
    }
}

impl Field {
    fn declaration(&self) -> String {
        let scalar = |scalar: Scalar| match scalar {
            Scalar::Text => "String",
            Scalar::Long => "Long",
            Scalar::Bool => "Bool",
        };
        match self.value.unwrap_or(UNKNOWN) {
            _ if !self.fields.is_empty() => self.fields.declaration(),
            ValueType::Scalar(kind) => scalar(kind).to_owned(),
            ValueType::Set(kind) => format!("Set<{}>", scalar(kind)),
        }
    }
}

/// Whether an expression reads arguments, or anything else of the context that can differ between two calls of a tool by
/// one caller.
pub(crate) fn reads_arguments(expression: &Value) -> bool {
    let is_context = |value: &Value| value.get("Var").is_some_and(|name| name == "context");
    if is_context(expression) {
        return true;
    }
    match operation(expression) {
        Some(("." | "has", operands)) if operands.get("left").is_some_and(is_context) => {
            operands.get("attr").is_none_or(|attribute| attribute != "agent" && attribute != "profile")
        }
        Some(("Value" | "Var", _)) => false,
        _ => children(expression).any(reads_arguments),
    }
}

/// The path of an attribute of one of the two records.
fn attribute_path(expression: &Value) -> Option<(Root, Vec<&str>)> {
    let access = expression.get(".")?;
    let (left, attribute) = (access.get("left")?, access.get("attr")?.as_str()?);
    match (left.get("Var").and_then(Value::as_str), attribute) {
        (Some("context"), "arguments") => return Some((Root::Arguments, Vec::new())),
        (Some("principal"), "claims") => return Some((Root::Claims, Vec::new())),
        (Some(_), _) => return None,
        (None, _) => {}
    }
    let (root, mut path) = attribute_path(left)?;
    path.push(attribute);
    Some((root, path))
}

/// The operator of an expression and its operands.
pub(crate) fn operation(expression: &Value) -> Option<(&str, &Value)> {
    let mut members = expression.as_object()?.iter();
    let (operator, operands) = members.next()?;
    members.next().is_none().then_some((operator.as_str(), operands))
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The type of an expression, as far as it is known without the two records.
fn type_of(expression: &Value) -> Option<ValueType> {
    let (operator, operands) = operation(expression)?;
    match operator {
        "Value" if operands.is_string() => Some(TEXT),
        "Value" if operands.is_number() => Some(LONG),
        "Value" if operands.is_boolean() => Some(BOOL),
        "+" | "-" | "*" | "neg" => Some(LONG),
        "&&" | "||" | "!" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "like" | "has" | "in" | "is"
        | "contains" | "containsAll" | "containsAny" | "isEmpty" => Some(BOOL),
        "Set" => type_of(operands.as_array()?.first()?).and_then(set_of),
        "." if attribute_path(expression).is_none() => match operands.get("attr")?.as_str()? {
            "issuer" | "subject" | "name" | "source" | "kind" => Some(TEXT),
            "groups" | "scopes" | "capabilities" => Some(TEXTS),
            "trusted" | "read_only" | "destructive" | "idempotent" | "open_world" => Some(BOOL),
            _ => None,
        },
        _ => None,
    }
}

fn set_of(item: ValueType) -> Option<ValueType> {
    match item {
        ValueType::Scalar(scalar) => Some(ValueType::Set(scalar)),
        ValueType::Set(_) => None,
    }
}

fn item_of(set: ValueType) -> Option<ValueType> {
    match set {
        ValueType::Set(scalar) => Some(ValueType::Scalar(scalar)),
        ValueType::Scalar(_) => None,
    }
}
