//! `$step.path`: how an argument stands for the value of another step, or for a part of it.
//!
//! A text that is nothing but a reference is replaced by the value with its type; within a longer text the value is
//! written as text. `$$` is a dollar sign. What comes out of a value is never looked at for references again.

mod columns;
mod form;
mod node;
mod pick;
mod second_look;
mod text;
mod trail;
mod walk;

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use toolyard_core::{Param, RawJson};

pub use self::text::{Part, Reference};
pub(crate) use self::trail::short;
use self::{
    form::{celled, holds_rows, listed, picked, wanted_list},
    node::{Node, fits},
    pick::{Wanted, pick},
    second_look::{main_value, second_look},
    text::{Piece, pieces},
    walk::{Found, walk},
};
use crate::shape;

/// A value that a step has once it is over.
pub type ValueOf<'a> = &'a dyn Fn(&str) -> Option<Arc<Value>>;

/// Why an argument could not be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// There is no value of this name.
    #[error("`{reference}` refers to a step `{step}` that has no value")]
    NoValue {
        /// As it was written.
        reference: String,
        /// The step.
        step: String,
    },
    /// A record stands where one thing is wanted, and it is not plain which of its parts is meant.
    #[error("a cell takes one thing, not {shape}: refer to a part of it")]
    NoSingle {
        /// What the value looks like.
        shape: String,
    },
    /// The value has no such part.
    #[error("`{reference}` leads nowhere: the value of `{step}` is {shape}")]
    NoPart {
        /// As it was written.
        reference: String,
        /// The step.
        step: String,
        /// What the value looks like.
        shape: String,
    },
    /// What the references stand for is too much for one call.
    #[error("its arguments would be larger than {limit} MB with all that they refer to")]
    TooLarge {
        /// How much is allowed.
        limit: usize,
    },
}

/// Larger arguments are never written: references to references can stand for more than any machine holds.
const LARGEST: usize = 128 << 20;

/// Arguments without references.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Where something else was taken than what was written, in words.
    pub notes: Vec<String>,
}

/// The same as JSON text, for values that should not be copied on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedJson {
    /// The arguments.
    pub arguments: RawJson,
    /// Where something else was taken than what was written, in words.
    pub notes: Vec<String>,
}

/// All references in arguments, in their order.
pub fn references(arguments: &Map<String, Value>) -> Vec<Reference> {
    let mut found = Vec::new();
    for value in arguments.values() {
        gather(value, &mut found);
    }
    found
}

fn gather(value: &Value, found: &mut Vec<Reference>) {
    match value {
        Value::String(text) => found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        })),
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Object(entries) => entries.values().for_each(|value| gather(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts the values of steps in the place of references.
pub fn resolve(arguments: &Map<String, Value>, value_of: ValueOf<'_>) -> Result<Resolved, ReferenceError> {
    let values = values_for(arguments, value_of);
    let mut notes = Vec::new();
    let nodes = fields(arguments, &values, &mut notes)?;
    let arguments = nodes.into_iter().map(|(name, node)| (name.to_owned(), node.into_value())).collect();
    Ok(Resolved { arguments, notes })
}

/// The same, written as JSON at once: a large value is not copied before. What is resolved is brought into the form that
/// the tool takes where only one thing can be meant: one value where a list of rows is wanted is one row with one cell.
pub fn resolve_json(
    arguments: &Map<String, Value>,
    params: &[Param],
    value_of: ValueOf<'_>,
) -> Result<ResolvedJson, ReferenceError> {
    let values = values_for(arguments, value_of);
    let mut notes = Vec::new();
    let param_of = |name: &str| params.iter().find(|param| param.name == name);
    let mut nodes = Vec::with_capacity(arguments.len());
    for (name, value) in arguments {
        let found = node(value, &values, &mut notes).or_else(|error| {
            // A path that leads nowhere: where numbers are wanted, there may be only some that can be meant.
            let wanted = param_of(name).and_then(wanted_list).filter(|wanted| *wanted == Wanted::Numbers);
            let written = value.as_str().filter(|_| matches!(error, ReferenceError::NoPart { .. }));
            let picked = wanted
                .zip(written)
                .and_then(|(wanted, written)| picked(written, wanted, &values, &mut notes));
            picked.ok_or(error)
        })?;
        nodes.push((name.as_str(), found));
    }
    for (name, node) in &mut nodes {
        let Some(param) = param_of(name) else { continue };
        let taken = std::mem::replace(node, Node::Text(String::new()));
        let written = arguments.get(*name).and_then(Value::as_str).unwrap_or_default();
        let listed = listed(taken, param, written, &values, &mut notes);
        *node = if holds_rows(param) { celled(listed, &mut notes)? } else { listed }.fitted(param);
    }
    let node = Node::Object(nodes);
    if !values.is_empty() && !fits(&node, LARGEST) {
        return Err(ReferenceError::TooLarge { limit: LARGEST >> 20 });
    }
    // Values have a JSON text, so this cannot fail.
    let arguments = RawJson::from_serialize(&node).unwrap_or_else(|_| RawJson::empty_object());
    Ok(ResolvedJson { arguments, notes })
}

type Values = HashMap<String, Arc<Value>>;

fn values_for(arguments: &Map<String, Value>, value_of: ValueOf<'_>) -> Values {
    let mut values = Values::new();
    for Reference { step, .. } in references(arguments) {
        if !values.contains_key(&step)
            && let Some(value) = value_of(&step)
        {
            values.insert(step, value);
        }
    }
    values
}

fn fields<'v>(
    arguments: &'v Map<String, Value>,
    values: &'v Values,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'v str, Node<'v>)>, ReferenceError> {
    arguments.iter().map(|(name, value)| Ok((name.as_str(), node(value, values, notes)?))).collect()
}

fn node<'v>(
    value: &'v Value,
    values: &'v Values,
    notes: &mut Vec<String>,
) -> Result<Node<'v>, ReferenceError> {
    Ok(match value {
        Value::String(text) if text.contains('$') => in_text(text, values, notes)?,
        Value::Array(items) => {
            let items = items.iter().map(|item| node(item, values, notes));
            Node::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => Node::Object(fields(entries, values, notes)?),
        literal => Node::Literal(literal),
    })
}

fn in_text<'v>(
    text: &'v str,
    values: &'v Values,
    notes: &mut Vec<String>,
) -> Result<Node<'v>, ReferenceError> {
    let pieces = pieces(text);
    if let [Piece::Reference(reference)] = pieces.as_slice() {
        return Ok(match known(reference, values)? {
            None => Node::Text(reference.written.clone()),
            Some(value) => match taken(reference, value, notes)? {
                (found, "") => Node::Found(found),
                (found, rest) => Node::Text(format!("{}{rest}", found.into_text())),
            },
        });
    }
    let mut spliced = String::new();
    let calculates = is_calculation(&pieces);
    for piece in &pieces {
        match piece {
            Piece::Text(text) => spliced.push_str(text),
            Piece::Reference(reference) => match known(reference, values)? {
                None => spliced.push_str(&reference.written),
                Some(value) => {
                    let (found, rest) = taken(reference, value, notes)?;
                    let found = if calculates { number_in(found, reference, notes) } else { found };
                    spliced.push_str(&found.into_text());
                    spliced.push_str(rest);
                }
            },
        }
    }
    Ok(Node::Text(spliced))
}

/// Whether a text is nothing but references, numbers and signs of arithmetic.
fn is_calculation(pieces: &[Piece]) -> bool {
    let is_arithmetic =
        |text: &String| text.chars().all(|letter| letter.is_ascii_digit() || " .+-*/^()%".contains(letter));
    let mut texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Reference(_) => None,
    });
    texts.clone().any(|text| text.contains(['+', '-', '*', '/', '^'])) && texts.all(is_arithmetic)
}

/// The number in a record that stands in a calculation.
fn number_in<'v>(found: Found<'v>, reference: &Reference, notes: &mut Vec<String>) -> Found<'v> {
    match found {
        Found::One(value @ (Value::Object(_) | Value::Array(_))) => match pick(value, Wanted::Number, &[]) {
            Some((number, how)) => {
                notes.push(format!("`{}`: {how}", reference.written));
                number
            }
            None => Found::One(value),
        },
        other => other,
    }
}

/// The value a reference is about; none where it can only be ordinary text.
fn known<'v>(reference: &Reference, values: &'v Values) -> Result<Option<&'v Value>, ReferenceError> {
    match values.get(&reference.step) {
        Some(value) => Ok(Some(value)),
        None if reference.may_be_text() => Ok(None),
        None => Err(ReferenceError::NoValue {
            reference: reference.written.clone(),
            step: reference.step.clone(),
        }),
    }
}

/// What a reference leads to, and what of it is ordinary text after all: the ending of a file's name, or of a sentence.
fn taken<'v, 'r>(
    reference: &'r Reference,
    value: &'v Value,
    notes: &mut Vec<String>,
) -> Result<(Found<'v>, &'r str), ReferenceError> {
    if reference.path.is_empty() {
        return Ok((Found::One(main_value(value)), ""));
    }
    if let Some(found) = walk(value, &reference.path) {
        return Ok((found, ""));
    }
    if let Some((found, rest)) = text_behind(reference, value) {
        return Ok((found, rest));
    }
    if let Some((found, how)) = second_look(value, &reference.path) {
        notes.push(format!("`{}`: {how}", reference.written));
        return Ok((found, ""));
    }
    Err(ReferenceError::NoPart {
        reference: reference.written.clone(),
        step: reference.step.clone(),
        shape: shape(value),
    })
}

/// A single value that is followed by `.xlsx`, or within a sentence by a point and another word.
fn text_behind<'v, 'r>(reference: &'r Reference, value: &'v Value) -> Option<(Found<'v>, &'r str)> {
    let (last, before) = reference.path.split_last()?;
    let Part::Key(word) = last else { return None };
    let found = if before.is_empty() { Found::One(main_value(value)) } else { walk(value, before)? };
    let is_single = matches!(&found, Found::One(Value::String(_) | Value::Number(_) | Value::Bool(_)));
    let is_text = text::is_extension(word) || (!reference.whole && !second_look::is_wrapper(word));
    let rest = reference.written.strip_suffix('}').unwrap_or(&reference.written);
    let at = rest.len().checked_sub(word.len() + 1)?;
    (is_single && is_text).then_some((found, rest.get(at..).filter(|rest| rest.starts_with('.'))?))
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;

#[cfg(test)]
pub(crate) use tests::any_value;
