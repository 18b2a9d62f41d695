//! Resolves the references in arguments and serializes the result.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolyard_core::{Param, RawJson};

use super::{
    adapt::{ReferencedValues, adapt_list, expected_list, select_for_argument, spread_cells, takes_rows},
    argument_tree::{ArgumentNode, fits},
    error::ReferenceError,
    main_value::{is_wrapper, main_value},
    parse::{Fragment, PathSegment, Reference, is_file_extension, parse_fragments},
    path::{PathValue, follow_path},
    select::{ValueKind, select_part},
};
use crate::values::outline;

pub(crate) type ValueLookup<'a> = &'a dyn Fn(&str) -> Option<Arc<Value>>;

/// Largest arguments that are serialized: references to large values can multiply their size.
const MAX_ARGUMENT_BYTES: usize = 128 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResolvedArguments {
    pub(crate) arguments: RawJson,
    /// Where a value other than the one written was used, for the approver.
    pub(crate) notes: Vec<String>,
}

/// All references in arguments, in order.
pub(crate) fn references(arguments: &Map<String, Value>) -> Vec<Reference> {
    arguments.values().flat_map(references_in).collect()
}

/// All references in a value, in order.
pub(crate) fn references_in(value: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    collect_references(value, &mut found);
    found
}

fn collect_references(value: &Value, found: &mut Vec<Reference>) {
    match value {
        Value::String(text) => {
            found.extend(parse_fragments(text).into_iter().filter_map(|fragment| match fragment {
                Fragment::Reference(reference) => Some(reference),
                Fragment::Text(_) => None,
            }));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Object(entries) => entries.values().for_each(|value| collect_references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces references with the values of steps and serializes the arguments, without copying large values. Values are
/// converted to the type of their parameter where that is unambiguous: one value for a list of rows is one row with one
/// cell.
pub(crate) fn resolve_references(
    arguments: &Map<String, Value>,
    params: &[Param],
    value_of: ValueLookup<'_>,
) -> Result<ResolvedArguments, ReferenceError> {
    let values = &referenced_values(arguments, value_of);
    let mut resolver = Resolver { values, notes: Vec::new() };
    let param_of = |name: &str| params.iter().find(|param| param.name == name);
    let mut nodes = Vec::with_capacity(arguments.len());
    for (name, value) in arguments {
        let resolved = resolver.node(value).or_else(|error| {
            // The path does not exist, but the value may contain exactly one list of numbers.
            let wanted = param_of(name).and_then(expected_list).filter(|kind| *kind == ValueKind::NumberList);
            let is_path_missing =
                matches!(error, ReferenceError::NoSuchPath { .. } | ReferenceError::NoFields { .. });
            let written = value.as_str().filter(|_| is_path_missing);
            let selected = wanted.zip(written).and_then(|(wanted, written)| {
                select_for_argument(written, wanted, values, &mut resolver.notes)
            });
            selected.ok_or(error)
        })?;
        nodes.push((name.as_str(), resolved));
    }
    let mut notes = resolver.notes;
    for (name, node) in &mut nodes {
        let Some(param) = param_of(name) else { continue };
        let resolved = std::mem::replace(node, ArgumentNode::Text(String::new()));
        let written = arguments.get(*name).and_then(Value::as_str).unwrap_or_default();
        let adapted = adapt_list(resolved, param, written, values, &mut notes);
        *node = if takes_rows(param) { spread_cells(adapted, &mut notes)? } else { adapted }.coerce(param);
    }
    let node = ArgumentNode::Object(nodes);
    if !values.is_empty() && !fits(&node, MAX_ARGUMENT_BYTES) {
        return Err(ReferenceError::TooLarge { limit_mb: MAX_ARGUMENT_BYTES >> 20 });
    }
    // JSON values always serialize.
    let arguments = RawJson::from_serialize(&node).unwrap_or_else(|_| RawJson::empty_object());
    Ok(ResolvedArguments { arguments, notes })
}

pub(super) fn referenced_values(
    arguments: &Map<String, Value>,
    value_of: ValueLookup<'_>,
) -> ReferencedValues {
    let mut values = ReferencedValues::new();
    for Reference { step, .. } in references(arguments) {
        if !values.contains_key(&step)
            && let Some(value) = value_of(&step)
        {
            values.insert(step, value);
        }
    }
    values
}

pub(super) struct Resolver<'v> {
    pub(super) values: &'v ReferencedValues,
    pub(super) notes: Vec<String>,
}

impl<'v> Resolver<'v> {
    pub(super) fn fields(
        &mut self,
        arguments: &'v Map<String, Value>,
    ) -> Result<Vec<(&'v str, ArgumentNode<'v>)>, ReferenceError> {
        arguments.iter().map(|(name, value)| Ok((name.as_str(), self.node(value)?))).collect()
    }

    fn node(&mut self, value: &'v Value) -> Result<ArgumentNode<'v>, ReferenceError> {
        Ok(match value {
            Value::String(text) if text.contains('$') => self.text_node(text)?,
            Value::Array(items) => {
                ArgumentNode::Array(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => ArgumentNode::Object(self.fields(entries)?),
            literal => ArgumentNode::Literal(literal),
        })
    }

    fn text_node(&mut self, text: &str) -> Result<ArgumentNode<'v>, ReferenceError> {
        let fragments = parse_fragments(text);
        if let [Fragment::Reference(reference)] = fragments.as_slice() {
            return Ok(match self.resolve(reference)? {
                None => ArgumentNode::Text(text.to_owned()),
                Some((found, "")) => ArgumentNode::Resolved(found),
                Some((found, rest)) => ArgumentNode::Text(format!("{}{rest}", found.into_text())),
            });
        }
        let mut spliced = String::new();
        let is_calculation = is_calculation(&fragments);
        for fragment in &fragments {
            match fragment {
                Fragment::Text(text) => spliced.push_str(text),
                Fragment::Reference(reference) => match self.resolve(reference)? {
                    None => spliced.push_str(&reference.written),
                    Some((found, rest)) => {
                        let found = if is_calculation { self.select_number(found, reference) } else { found };
                        spliced.push_str(&found.into_text());
                        spliced.push_str(rest);
                    }
                },
            }
        }
        Ok(ArgumentNode::Text(spliced))
    }

    /// The value of a reference, and the end of the reference that turned out to be plain text: a file name extension, or the
    /// next sentence. None when the whole reference is plain text.
    fn resolve<'r>(
        &mut self,
        reference: &'r Reference,
    ) -> Result<Option<(PathValue<'v>, &'r str)>, ReferenceError> {
        let Reference { step, path, written, .. } = reference;
        let value: &'v Value = match self.values.get(step) {
            Some(value) => value,
            None if reference.may_be_text() => return Ok(None),
            None => {
                return Err(ReferenceError::NoValue { reference: written.clone(), step: step.clone() });
            }
        };
        if path.is_empty() {
            return Ok(Some((PathValue::Borrowed(main_value(value)), "")));
        }
        if let Some(found) = follow_path(value, path) {
            return Ok(Some((found, "")));
        }
        if let Some((found, rest)) = split_text_suffix(reference, value) {
            return Ok(Some((found, rest)));
        }
        let (reference, step, outline) = (written.clone(), step.clone(), outline(value));
        Err(match (value, path.first()) {
            (Value::String(_) | Value::Number(_), Some(PathSegment::Key(field))) => {
                let outline = scalar_phrase(&outline);
                ReferenceError::NoFields { reference, step, outline, field: field.clone() }
            }
            _ => ReferenceError::NoSuchPath { reference, step, outline },
        })
    }

    /// The number inside an object or a list that is part of a calculation.
    fn select_number(&mut self, found: PathValue<'v>, reference: &Reference) -> PathValue<'v> {
        let PathValue::Borrowed(value @ (Value::Object(_) | Value::Array(_))) = found else { return found };
        match select_part(value, ValueKind::Number, &[]) {
            Some((number, note)) => {
                self.notes.push(format!("`{}`: {note}", reference.written));
                number
            }
            None => found,
        }
    }
}

/// The outline of a text or number within a sentence, such as `text ("report")` or `a number (7)`.
fn scalar_phrase(outline: &str) -> String {
    match outline.split_once(' ') {
        Some(("number", number)) => format!("a number ({number})"),
        Some(("text", text)) if text.starts_with('"') => format!("text ({text})"),
        _ => outline.to_owned(),
    }
}

/// Whether a text consists of references, numbers and arithmetic operators only.
fn is_calculation(fragments: &[Fragment]) -> bool {
    let is_arithmetic =
        |text: &String| text.chars().all(|letter| letter.is_ascii_digit() || " .+-*/^()%".contains(letter));
    let mut texts = fragments.iter().filter_map(|fragment| match fragment {
        Fragment::Text(text) => Some(text),
        Fragment::Reference(_) => None,
    });
    texts.clone().any(|text| text.contains(['+', '-', '*', '/', '^'])) && texts.all(is_arithmetic)
}

/// A scalar followed by `.xlsx`, or inside a sentence by a full stop and another word.
fn split_text_suffix<'v, 'r>(reference: &'r Reference, value: &'v Value) -> Option<(PathValue<'v>, &'r str)> {
    let (last, before) = reference.path.split_last()?;
    let PathSegment::Key(word) = last else { return None };
    let found =
        if before.is_empty() { PathValue::Borrowed(main_value(value)) } else { follow_path(value, before)? };
    let is_scalar =
        matches!(&found, PathValue::Borrowed(Value::String(_) | Value::Number(_) | Value::Bool(_)));
    let is_text = is_file_extension(word) || (!reference.is_whole_argument && !is_wrapper(word));
    let rest = reference.written.strip_suffix('}').unwrap_or(&reference.written);
    let at = rest.len().checked_sub(word.len() + 1)?;
    (is_scalar && is_text).then_some((found, rest.get(at..).filter(|rest| rest.starts_with('.'))?))
}
