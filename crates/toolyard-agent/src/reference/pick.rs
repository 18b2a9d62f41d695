//! What of a value is meant where a value as a whole cannot be: a list of numbers to add up, a number in a calculation,
//! one thing for a cell.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{trail::short, walk::Found};
use crate::cells::{Cell, SAMPLE, is_grid};

/// Deeper than this nothing is looked for.
const MAX_DEPTH: usize = 4;
/// More places than this are not compared.
const MAX_PLACES: usize = 64;
/// What the main thing of a result is usually called, the likeliest first.
const MAIN_NAMES: [&str; 18] = [
    "value", "values", "result", "amount", "price", "total", "sum", "count", "number", "datetime", "date",
    "time", "text", "content", "answer", "output", "message", "name",
];

/// What a place wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A list.
    List,
    /// A list of numbers.
    Numbers,
    /// A number.
    Number,
    /// One thing of any kind.
    Single,
}

/// The part of a value that a place probably wants, and in words which; none where several could be meant. `names` are
/// what it was called by whoever wants it.
pub(super) fn pick<'v>(value: &'v Value, wanted: Wanted, names: &[&str]) -> Option<(Found<'v>, String)> {
    if matches!(wanted, Wanted::List | Wanted::Numbers) {
        return list(value, wanted, names, MAX_DEPTH);
    }
    let mut places = Vec::new();
    singles("", value, MAX_DEPTH, &mut places);
    if places.len() >= MAX_PLACES {
        // There may be more, so that none is known to be the only one.
        return None;
    }
    if wanted == Wanted::Number {
        places.retain(|(_, value)| is_number(value));
    }
    let main = MAIN_NAMES.iter().find_map(|name| {
        let mut named = places.iter().filter(|(known, _)| known == name);
        named.next().filter(|_| named.next().is_none())
    });
    let (name, value) = match (main, places.as_slice()) {
        (Some(main), _) => *main,
        (None, [only]) => *only,
        _ => return None,
    };
    Some((Found::One(value), format!("`{}` of it was taken", short(name))))
}

/// A number, or a text that is one.
pub(super) fn is_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => serde_json::from_str::<serde_json::Number>(text.trim()).is_ok(),
        _ => false,
    }
}

/// The single things of a value by their names; a list of one thing is that thing.
fn singles<'v>(name: &'v str, value: &'v Value, depth: usize, places: &mut Vec<(&'v str, &'v Value)>) {
    if places.len() >= MAX_PLACES {
        return;
    }
    match value {
        Value::Object(entries) if depth > 0 => {
            for (name, value) in entries {
                singles(name, value, depth - 1, places);
            }
        }
        Value::Array(items) if depth > 0 => {
            if let [only] = items.as_slice() {
                singles(name, only, depth - 1, places);
            }
        }
        Value::String(_) | Value::Number(_) => places.push((name, value)),
        _ => {}
    }
}

/// The only list in a value; where numbers are wanted and it holds records, the main thing of each.
fn list<'v>(value: &'v Value, wanted: Wanted, names: &[&str], depth: usize) -> Option<(Found<'v>, String)> {
    match value {
        Value::Array(items) if wanted == Wanted::Numbers && is_grid(items) => numeric_column(items, names),
        Value::Array(items) if wanted == Wanted::Numbers && items.iter().any(Value::is_object) => {
            let field = field(items)?;
            let column = items.iter().filter_map(|item| item.get(field)).map(Found::One);
            Some((Found::Many(column.collect()), format!("each `{}` of it was taken", short(field))))
        }
        Value::Array(_) => Some((Found::One(value), "the list in it was taken".to_owned())),
        Value::Object(entries) if depth > 0 => {
            let mut found = entries.values().filter_map(|inner| list(inner, wanted, names, depth - 1));
            let only = found.next()?;
            found.next().is_none().then_some(only)
        }
        _ => None,
    }
}

/// The column of a table that holds numbers: the only one, or the one with one of these names as its heading.
fn numeric_column<'v>(items: &'v [Value], names: &[&str]) -> Option<(Found<'v>, String)> {
    let mut columns: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for item in items {
        let Cell { column, value, .. } = Cell::read(item)?;
        columns.entry(column).or_default().push(value);
    }
    // A heading may be a text; what stands below it must not be.
    let holds_numbers = |cells: &&Vec<&Value>| {
        cells.iter().any(|cell| is_number(cell))
            && cells.iter().skip(1).all(|cell| is_number(cell) || cell.is_null())
    };
    let numeric: Vec<&Vec<&Value>> = columns.values().filter(holds_numbers).collect();
    let is_named = |cells: &&&Vec<&Value>| {
        let heading = cells.first().and_then(|cell| cell.as_str()).unwrap_or_default();
        names.iter().any(|name| name.eq_ignore_ascii_case(heading.trim()))
    };
    let mut named = numeric.iter().filter(is_named);
    let cells = match (named.next(), numeric.as_slice()) {
        (Some(cells), _) if named.next().is_none() => cells,
        (_, [only]) => only,
        _ => return None,
    };
    let numbers = cells.iter().filter(|cell| is_number(cell)).map(|cell| Found::One(cell));
    Some((
        Found::Many(numbers.collect()),
        "the only column of numbers that can be meant was taken".to_owned(),
    ))
}

/// The field of records that is the main thing: by its name, else the only one with numbers.
fn field(items: &[Value]) -> Option<&str> {
    let records = || items.iter().take(SAMPLE).filter_map(Value::as_object);
    let named = |name: &&&str| records().any(|record| record.contains_key(**name));
    if let Some(name) = MAIN_NAMES.iter().find(named) {
        return Some(name);
    }
    let first = records().next()?;
    let mut numeric =
        first.keys().filter(|key| records().any(|record| record.get(*key).is_some_and(is_number)));
    let only = numeric.next()?;
    numeric.next().is_none().then_some(only)
}
