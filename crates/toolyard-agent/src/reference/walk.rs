//! The way into a value, exactly as it was written.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Part;

/// What a path leads to; parts of values stay where they are.
#[derive(Debug)]
pub(super) enum Found<'v> {
    One(&'v Value),
    Many(Vec<Self>),
    Made(Value),
}

impl Found<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Found::One(value) => value.clone(),
            Found::Many(items) => Value::Array(items.into_iter().map(Found::into_value).collect()),
            Found::Made(value) => value,
        }
    }

    /// A text as it is, a list of one thing as that thing, anything else as JSON.
    pub(super) fn into_text(self) -> String {
        let only = match self {
            Found::One(value) => return text_of(value),
            Found::Many(mut items) if items.len() == 1 => items.pop(),
            other => Some(other),
        };
        only.map(|found| text_of(&found.into_value())).unwrap_or_default()
    }

    pub(super) fn is_list(&self) -> bool {
        match self {
            Found::One(value) => value.is_array(),
            Found::Many(_) => true,
            Found::Made(value) => value.is_array(),
        }
    }

    pub(super) fn is_record(&self) -> bool {
        matches!(self, Found::One(Value::Object(_)))
    }

    /// Whether this is a text that is no number.
    pub(super) fn is_word(&self) -> bool {
        matches!(self, Found::One(value @ Value::String(_)) if !super::pick::is_number(value))
    }

    fn is_missing(&self) -> bool {
        matches!(self, Found::Made(Value::Null))
    }
}

impl Serialize for Found<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Found::One(value) => value.serialize(serializer),
            Found::Many(items) => items.serialize(serializer),
            Found::Made(value) => value.serialize(serializer),
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => match items.as_slice() {
            [only @ (Value::String(_) | Value::Number(_) | Value::Bool(_))] => text_of(only),
            _ => value.to_string(),
        },
        value => value.to_string(),
    }
}

/// What the path leads to, if it does.
pub(super) fn walk<'v>(value: &'v Value, path: &[Part]) -> Option<Found<'v>> {
    let Some((part, rest)) = path.split_first() else { return Some(Found::One(value)) };
    match (part, value) {
        (Part::Key(key), Value::Object(entries)) => walk(entries.get(key)?, rest),
        // A key of a list is that key of each of its items.
        (Part::Key(_), Value::Array(items)) => each(items, path),
        (Part::Index(index), Value::Array(items)) => walk(items.get(place(*index, items.len())?)?, rest),
        (Part::All, Value::Array(items)) => each(items, rest),
        (Part::All, Value::Object(entries)) if rest.is_empty() => each(entries.values(), rest),
        (Part::Slice(from, to), Value::Array(items)) => slice(items, *from, *to, rest),
        _ => None,
    }
}

fn slice<'v>(items: &'v [Value], from: Option<i64>, to: Option<i64>, rest: &[Part]) -> Option<Found<'v>> {
    let bound = |at: Option<i64>, default: usize| at.map_or(default, |at| bound(at, items.len()));
    let (from, to) = (bound(from, 0), bound(to, items.len()));
    let items = items.get(from..to.max(from))?;
    match rest.split_first() {
        Some((Part::All, rest)) => each(items, rest),
        // As in Python, an index behind a slice counts within it.
        Some((Part::Index(index), rest)) => walk(items.get(place(*index, items.len())?)?, rest),
        _ => each(items, rest),
    }
}

/// The same part of each item; null where one has none, so that columns stay side by side. Nothing where none has it.
fn each<'v>(items: impl IntoIterator<Item = &'v Value>, rest: &[Part]) -> Option<Found<'v>> {
    let found: Vec<Found<'v>> =
        items.into_iter().map(|item| walk(item, rest).unwrap_or(Found::Made(Value::Null))).collect();
    if !found.is_empty() && found.iter().all(Found::is_missing) {
        return None;
    }
    let nested = rest.iter().any(|part| matches!(part, Part::All | Part::Slice(..)));
    Some(Found::Many(if nested { found.into_iter().flat_map(flattened).collect() } else { found }))
}

fn flattened(found: Found<'_>) -> Vec<Found<'_>> {
    match found {
        Found::Many(items) => items,
        missing if missing.is_missing() => Vec::new(),
        one => vec![one],
    }
}

/// The place of an item, counted from the end where the index is negative.
fn place(index: i64, length: usize) -> Option<usize> {
    let size = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { length.checked_sub(size) } else { Some(size) }
}

/// The same for an end of a slice, which may lie outside.
fn bound(index: i64, length: usize) -> usize {
    let size = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    if index < 0 { length.saturating_sub(size) } else { size.min(length) }
}
