//! Follows a path into a value exactly as written.

use serde::Serialize;
use serde_json::Value;

use super::parse::PathSegment;

/// The value at the end of a path; borrowed where possible.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum PathValue<'v> {
    Borrowed(&'v Value),
    List(Vec<Self>),
    Owned(Value),
}

impl PathValue<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            PathValue::Borrowed(value) => value.clone(),
            PathValue::List(items) => Value::Array(items.into_iter().map(PathValue::into_value).collect()),
            PathValue::Owned(value) => value,
        }
    }

    /// Strings verbatim, a list of one item as that item, anything else as JSON.
    pub(super) fn into_text(self) -> String {
        let only = match self {
            PathValue::Borrowed(value) => return text_of(value),
            PathValue::List(mut items) if items.len() == 1 => items.pop(),
            other => Some(other),
        };
        only.map(|only| text_of(&only.into_value())).unwrap_or_default()
    }

    pub(super) fn is_list(&self) -> bool {
        match self {
            PathValue::Borrowed(value) => value.is_array(),
            PathValue::List(_) => true,
            PathValue::Owned(value) => value.is_array(),
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, PathValue::Borrowed(Value::Object(_)))
    }

    pub(super) fn is_non_numeric_string(&self) -> bool {
        matches!(self, PathValue::Borrowed(value @ Value::String(_)) if !is_number(value))
    }

    fn is_missing(&self) -> bool {
        matches!(self, PathValue::Owned(Value::Null))
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

/// Whether a value is a number, or a string that contains one.
pub(super) fn is_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => serde_json::from_str::<serde_json::Number>(text.trim()).is_ok(),
        _ => false,
    }
}

/// The value at the end of the path, if the path exists.
pub(super) fn follow_path<'v>(value: &'v Value, path: &[PathSegment]) -> Option<PathValue<'v>> {
    let Some((segment, rest)) = path.split_first() else { return Some(PathValue::Borrowed(value)) };
    match (segment, value) {
        (PathSegment::Key(key), Value::Object(entries)) => follow_path(entries.get(key)?, rest),
        // A key applied to a list applies to each of its items.
        (PathSegment::Key(_), Value::Array(items)) => follow_in_each(items, path),
        (PathSegment::Index(index), Value::Array(items)) => {
            follow_path(items.get(item_index(*index, items.len())?)?, rest)
        }
        (PathSegment::All, Value::Array(items)) => follow_in_each(items, rest),
        (PathSegment::All, Value::Object(entries)) if rest.is_empty() => {
            follow_in_each(entries.values(), rest)
        }
        (PathSegment::Slice(from, to), Value::Array(items)) => slice(items, *from, *to, rest),
        _ => None,
    }
}

fn slice<'v>(
    items: &'v [Value],
    from: Option<i64>,
    to: Option<i64>,
    rest: &[PathSegment],
) -> Option<PathValue<'v>> {
    let bound = |at: Option<i64>, default: usize| at.map_or(default, |at| slice_bound(at, items.len()));
    let (from, to) = (bound(from, 0), bound(to, items.len()));
    let items = items.get(from..to.max(from))?;
    match rest.split_first() {
        Some((PathSegment::All, rest)) => follow_in_each(items, rest),
        // As in Python, an index after a slice counts within the slice.
        Some((PathSegment::Index(index), rest)) => {
            follow_path(items.get(item_index(*index, items.len())?)?, rest)
        }
        _ => follow_in_each(items, rest),
    }
}

/// The same path in each item; null where an item lacks it, so that columns stay aligned. None when every item lacks it.
fn follow_in_each<'v>(
    items: impl IntoIterator<Item = &'v Value>,
    rest: &[PathSegment],
) -> Option<PathValue<'v>> {
    let values: Vec<PathValue<'v>> = items
        .into_iter()
        .map(|item| follow_path(item, rest).unwrap_or(PathValue::Owned(Value::Null)))
        .collect();
    if !values.is_empty() && values.iter().all(PathValue::is_missing) {
        return None;
    }
    let is_nested = rest.iter().any(|segment| matches!(segment, PathSegment::All | PathSegment::Slice(..)));
    Some(PathValue::List(if is_nested { values.into_iter().flat_map(flatten).collect() } else { values }))
}

fn flatten(value: PathValue<'_>) -> Vec<PathValue<'_>> {
    match value {
        PathValue::List(items) => items,
        missing if missing.is_missing() => Vec::new(),
        one => vec![one],
    }
}

/// Position of an item; negative indexes count from the end.
fn item_index(index: i64, length: usize) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { length.checked_sub(distance) } else { Some(distance) }
}

/// Position of a slice bound, clamped to the list.
fn slice_bound(index: i64, length: usize) -> usize {
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    if index < 0 { length.saturating_sub(distance) } else { distance.min(length) }
}
