//! Selects the part of a value that an argument can take: a list, a list of numbers, a number in a calculation, one scalar
//! for a table cell.

use std::collections::BTreeMap;

use serde_json::Value;

use super::path::{PathValue, is_number};
use crate::{
    escape::display_name,
    values::grid_cell::{GridCell, SAMPLED_RECORDS, is_grid},
};

/// Values nested deeper are not searched.
const MAX_DEPTH: usize = 4;
/// With this many scalars or more, none is selected.
const MAX_SCALARS: usize = 64;
/// Usual names of a result's main field, most likely first.
const MAIN_FIELDS: [&str; 18] = [
    "value", "values", "result", "amount", "price", "total", "sum", "count", "number", "datetime", "date",
    "time", "text", "content", "answer", "output", "message", "name",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    List,
    NumberList,
    Number,
    /// One string or number.
    Scalar,
}

/// The part of a value that has the wanted kind, with a note for the approver; none when several parts qualify. `names`
/// are the names that the reference used.
pub(super) fn select_part<'v>(
    value: &'v Value,
    wanted: ValueKind,
    names: &[&str],
) -> Option<(PathValue<'v>, String)> {
    if matches!(wanted, ValueKind::List | ValueKind::NumberList) {
        return select_list(value, wanted, names, MAX_DEPTH);
    }
    let mut scalars = Vec::new();
    collect_scalars("", value, MAX_DEPTH, &mut scalars);
    if scalars.len() >= MAX_SCALARS {
        // Collection stopped early, so uniqueness cannot be established.
        return None;
    }
    if wanted == ValueKind::Number {
        scalars.retain(|(_, value)| is_number(value));
    }
    let main = MAIN_FIELDS.iter().find_map(|name| {
        let mut named = scalars.iter().filter(|(known, _)| known == name);
        named.next().filter(|_| named.next().is_none())
    });
    let (name, value) = match (main, scalars.as_slice()) {
        (Some(main), _) => *main,
        (None, [only]) => *only,
        _ => return None,
    };
    Some((PathValue::Borrowed(value), format!("used its `{}`", display_name(name))))
}

/// Collects the strings and numbers of a value with their field names; a list of one item counts as that item.
fn collect_scalars<'v>(
    name: &'v str,
    value: &'v Value,
    depth: usize,
    scalars: &mut Vec<(&'v str, &'v Value)>,
) {
    if scalars.len() >= MAX_SCALARS {
        return;
    }
    match value {
        Value::Object(entries) if depth > 0 => {
            for (name, value) in entries {
                collect_scalars(name, value, depth - 1, scalars);
            }
        }
        Value::Array(items) if depth > 0 => {
            if let [only] = items.as_slice() {
                collect_scalars(name, only, depth - 1, scalars);
            }
        }
        Value::String(_) | Value::Number(_) => scalars.push((name, value)),
        _ => {}
    }
}

/// The only list in a value; when numbers are wanted and it contains objects, the main field of each.
fn select_list<'v>(
    value: &'v Value,
    wanted: ValueKind,
    names: &[&str],
    depth: usize,
) -> Option<(PathValue<'v>, String)> {
    match value {
        Value::Array(items) if wanted == ValueKind::NumberList && is_grid(items) => {
            numeric_column(items, names)
        }
        Value::Array(items) if wanted == ValueKind::NumberList && items.iter().any(Value::is_object) => {
            let field = main_field(items)?;
            let column = items.iter().filter_map(|item| item.get(field)).map(PathValue::Borrowed);
            Some((PathValue::List(column.collect()), format!("used `{}` of each item", display_name(field))))
        }
        Value::Array(_) => Some((PathValue::Borrowed(value), "used the list inside it".to_owned())),
        Value::Object(entries) if depth > 0 => {
            let mut found = entries.values().filter_map(|inner| select_list(inner, wanted, names, depth - 1));
            let only = found.next()?;
            found.next().is_none().then_some(only)
        }
        _ => None,
    }
}

/// The only numeric column of a table, or the one whose heading is among `names`.
fn numeric_column<'v>(items: &'v [Value], names: &[&str]) -> Option<(PathValue<'v>, String)> {
    let mut columns: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for item in items {
        let GridCell { column, value, .. } = GridCell::parse(item)?;
        columns.entry(column).or_default().push(value);
    }
    // The first cell may be a textual heading; the cells below it must be numeric.
    let is_numeric = |cells: &&Vec<&Value>| {
        cells.iter().any(|cell| is_number(cell))
            && cells.iter().skip(1).all(|cell| is_number(cell) || cell.is_null())
    };
    let numeric: Vec<&Vec<&Value>> = columns.values().filter(is_numeric).collect();
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
    let numbers = cells.iter().filter(|cell| is_number(cell)).map(|cell| PathValue::Borrowed(cell));
    Some((PathValue::List(numbers.collect()), "used the only matching numeric column".to_owned()))
}

/// The main field of a list of objects: by its usual name, else the only numeric one.
fn main_field(items: &[Value]) -> Option<&str> {
    let records = || items.iter().take(SAMPLED_RECORDS).filter_map(Value::as_object);
    let named = |name: &&&str| records().any(|record| record.contains_key(**name));
    if let Some(name) = MAIN_FIELDS.iter().find(named) {
        return Some(name);
    }
    let first = records().next()?;
    let mut numeric =
        first.keys().filter(|key| records().any(|record| record.get(*key).is_some_and(is_number)));
    let only = numeric.next()?;
    numeric.next().is_none().then_some(only)
}
