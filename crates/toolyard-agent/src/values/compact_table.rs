//! A tabular value as short text for a model: one line per row, and which rows have the highest and lowest numbers. Small
//! models lose their way in cells with metadata, and do not find the largest of ten numbers.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;

use super::grid_cell::{GridCell, is_grid};

pub(super) const CELL_SEPARATOR: &str = " | ";
/// Larger tables are not shown whole.
const MAX_CELLS: usize = 2_000;
/// Rows shown; the extremes are those of all rows.
const MAX_ROWS: usize = 60;
const MAX_CELL_CHARS: usize = 80;
/// With fewer rows, the extremes are plain to see.
const MIN_COMPARED_ROWS: usize = 3;
/// Columns whose extremes are shown.
const MAX_COMPARED_COLUMNS: usize = 4;

struct Rows<'v> {
    heading: Vec<Cow<'v, str>>,
    rows: Vec<Vec<&'v Value>>,
}

/// A list of records, rows or cells as text; none if the value is not tabular, or too large.
pub(crate) fn compact_table(value: &Value) -> Option<String> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(entries) => {
            let mut lists = entries.values().filter_map(Value::as_array).filter(|items| !items.is_empty());
            lists.next().filter(|_| lists.next().is_none())?
        }
        _ => return None,
    };
    if items.len() > MAX_CELLS {
        return None;
    }
    let table = grid_rows(items).or_else(|| record_rows(items)).or_else(|| list_rows(items))?;
    if table.rows.is_empty() || table.rows.iter().map(Vec::len).sum::<usize>() > MAX_CELLS {
        return None;
    }
    let mut lines = Vec::with_capacity(table.rows.len() + 2);
    if !table.heading.is_empty() {
        lines.push(table.heading.join(CELL_SEPARATOR));
    }
    let row = |cells: &Vec<&Value>| {
        cells.iter().map(|cell| cell_text(cell)).collect::<Vec<_>>().join(CELL_SEPARATOR)
    };
    lines.extend(table.rows.iter().take(MAX_ROWS).map(row));
    if table.rows.len() > MAX_ROWS {
        lines.push(format!("(and {} more rows)", table.rows.len() - MAX_ROWS));
    }
    lines.extend(extremes(&table));
    Some(lines.join("\n"))
}

/// Rows of a table given cell by cell; the first row is the heading if it has only texts.
fn grid_rows(items: &[Value]) -> Option<Rows<'_>> {
    if !is_grid(items) {
        return None;
    }
    let mut rows: BTreeMap<i64, BTreeMap<i64, &Value>> = BTreeMap::new();
    let mut columns = BTreeSet::new();
    for item in items {
        let GridCell { row, column, value } = GridCell::parse(item)?;
        columns.insert(column);
        rows.entry(row).or_default().insert(column, value);
    }
    let rows = rows.values().map(|cells| {
        columns.iter().map(|column| cells.get(column).copied().unwrap_or(&Value::Null)).collect()
    });
    Some(with_heading(rows.collect()))
}

fn record_rows(items: &[Value]) -> Option<Rows<'_>> {
    if items.len() < 2 {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for item in items {
        for name in item.as_object()?.keys() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let is_flat = |value: &Value| !value.is_object() && !value.is_array();
    if !items.iter().flat_map(|item| item.as_object()).flat_map(|record| record.values()).all(is_flat) {
        return None;
    }
    let rows = items
        .iter()
        .map(|item| names.iter().map(|name| item.get(*name).unwrap_or(&Value::Null)).collect())
        .collect();
    Some(Rows { heading: names.into_iter().map(Cow::Borrowed).collect(), rows })
}

fn list_rows(items: &[Value]) -> Option<Rows<'_>> {
    let is_flat = |value: &Value| !value.is_object() && !value.is_array();
    let rows: Option<Vec<Vec<&Value>>> =
        items.iter().map(|item| item.as_array().map(|cells| cells.iter().collect())).collect();
    rows.filter(|rows| rows.iter().flatten().all(|cell| is_flat(cell))).map(with_heading)
}

fn with_heading(mut rows: Vec<Vec<&Value>>) -> Rows<'_> {
    let is_heading = rows.len() > 1
        && rows.first().is_some_and(|first| first.iter().all(|cell| cell.is_string()))
        && rows.iter().skip(1).flatten().any(|cell| !cell.is_string());
    if !is_heading {
        return Rows { heading: Vec::new(), rows };
    }
    let heading = rows.remove(0).into_iter().map(|cell| Cow::Borrowed(cell.as_str().unwrap_or_default()));
    Rows { heading: heading.collect(), rows }
}

/// `highest Sales: 1890 (July); lowest Sales: 980 (January)` for each column of numbers.
fn extremes(table: &Rows<'_>) -> Vec<String> {
    if table.rows.len() < MIN_COMPARED_ROWS {
        return Vec::new();
    }
    let column_count = table.rows.iter().map(Vec::len).max().unwrap_or_default();
    let label_column = (0..column_count)
        .find(|at| table.rows.iter().all(|row| row.get(*at).is_some_and(|cell| cell.is_string())));
    let Some(label_column) = label_column else { return Vec::new() };
    let described = |at: usize| {
        let mut numbers: Vec<(f64, &[&Value])> = Vec::new();
        for row in &table.rows {
            match row.get(at) {
                Some(Value::Number(number)) => numbers.push((number.as_f64()?, row)),
                Some(Value::Null) | None => {}
                Some(_) => return None,
            }
        }
        if numbers.len() < MIN_COMPARED_ROWS {
            return None;
        }
        let name =
            table.heading.get(at).map_or_else(|| format!("column {}", at + 1), |name| cell_string(name));
        let line = |word: &str, pick: fn(f64, f64) -> f64| {
            let extreme = numbers.iter().map(|(number, _)| *number).reduce(pick)?;
            let mut rows = numbers.iter().filter(|(number, _)| *number == extreme).map(|(_, row)| row);
            let (row, is_shared) = (rows.next()?, rows.next().is_some());
            let (value, label) = (cell_text(row.get(at)?), cell_text(row.get(label_column)?));
            let more = if is_shared { " and others" } else { "" };
            Some(format!("{word} {name}: {value} ({label}{more})"))
        };
        Some(format!("{}; {}", line("highest", f64::max)?, line("lowest", f64::min)?))
    };
    (0..column_count).filter_map(described).take(MAX_COMPARED_COLUMNS).collect()
}

fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cell_string(text),
        other => other.to_string(),
    }
}

fn cell_string(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
    match line.char_indices().nth(MAX_CELL_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::reference::any_value;

    #[test]
    fn cells_become_rows_with_their_extremes() {
        let cell = |row: i64, column: i64, value: Value| json!({"row": row, "column": column, "value": value, "validation": {}});
        let value = json!({"range": "A1:B4", "cells": [
            cell(1, 1, json!("Month")), cell(1, 2, json!("Sales")), cell(2, 1, json!("May")), cell(2, 2, json!(7)),
            cell(3, 1, json!("June")), cell(3, 2, json!(12)), cell(4, 1, json!("July")), cell(4, 2, json!(9.5))]});
        insta::assert_snapshot!(compact_table(&value).unwrap(), @r"
        Month | Sales
        May | 7
        June | 12
        July | 9.5
        highest Sales: 12 (June); lowest Sales: 7 (May)
        ");
    }

    #[test]
    fn records_and_lists_are_tables_and_other_values_are_not() {
        let records = json!([{"customer": "Ann", "amount": 4}, {"customer": "Bob", "amount": 4}, {"customer": "Eve", "amount": 1}]);
        insta::assert_snapshot!(compact_table(&records).unwrap(), @r"
        customer | amount
        Ann | 4
        Bob | 4
        Eve | 1
        highest amount: 4 (Ann and others); lowest amount: 1 (Eve)
        ");
        assert_eq!(compact_table(&json!([["a", 1], ["b", 2]])).as_deref(), Some("a | 1\nb | 2"));
        for other in
            [json!("text"), json!(4), json!({"a": 1}), json!([{"a": {"b": 1}}]), json!(["a", "b"]), json!([])]
        {
            assert_eq!(compact_table(&other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_value_has_a_bounded_table_or_none(value in any_value()) {
            if let Some(table) = compact_table(&value) {
                prop_assert!(table.lines().count() <= MAX_ROWS + 2 + MAX_COMPARED_COLUMNS);
            }
        }
    }
}
