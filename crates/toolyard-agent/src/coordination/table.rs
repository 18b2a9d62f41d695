//! Renders tabular results as Markdown tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::values::grid_cell::GridCell;

/// Rows and columns shown; further ones are counted.
const MAX_ROWS: usize = 50;
const MAX_COLUMNS: usize = 12;
/// Longer lists are not rendered as tables.
const MAX_ITEMS: usize = 20_000;
const MAX_CELL_CHARS: usize = 60;

/// The visible part of a table and its full size.
struct Table {
    rows: Vec<Vec<String>>,
    total_rows: usize,
    total_columns: usize,
}

/// Renders a value as a Markdown table; none if it is not tabular.
pub(super) fn markdown_table(value: &Value) -> Option<String> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(entries) => {
            let mut lists = entries.values().filter_map(Value::as_array);
            lists.next().filter(|_| lists.next().is_none())?
        }
        _ => return None,
    };
    if items.len() > MAX_ITEMS {
        return None;
    }
    let table = from_cells(items).or_else(|| from_records(items)).or_else(|| from_rows(items))?;
    (table.rows.len() > 1).then(|| render(&table))
}

/// A table given cell by cell.
fn from_cells(items: &[Value]) -> Option<Table> {
    let mut rows: BTreeMap<i64, BTreeMap<i64, &Value>> = BTreeMap::new();
    let mut columns = BTreeSet::new();
    for item in items {
        let GridCell { row, column, value } = GridCell::parse(item)?;
        columns.insert(column);
        rows.entry(row).or_default().insert(column, value);
    }
    let (total_rows, total_columns) = (rows.len(), columns.len());
    let row = |cells: &BTreeMap<i64, &Value>| {
        let shown = columns.iter().take(MAX_COLUMNS);
        shown.map(|column| cells.get(column).map(|value| cell_text(value)).unwrap_or_default()).collect()
    };
    Some(Table { rows: rows.values().take(MAX_ROWS + 1).map(row).collect(), total_rows, total_columns })
}

/// A table of objects; their field names are the heading.
fn from_records(items: &[Value]) -> Option<Table> {
    let records: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    let records = records.filter(|records| records.len() > 1)?;
    let (mut names, mut all_names) = (Vec::new(), HashSet::new());
    for name in records.iter().take(MAX_ROWS).flat_map(|record| record.keys()) {
        if all_names.insert(name) && names.len() < MAX_COLUMNS {
            names.push(name);
        }
    }
    let heading = names.iter().map(|name| cell_string(name)).collect();
    let row = |record: &&Map<String, Value>| {
        names.iter().map(|name| record.get(*name).map(cell_text).unwrap_or_default()).collect()
    };
    let rows = std::iter::once(heading).chain(records.iter().take(MAX_ROWS).map(row)).collect();
    Some(Table { rows, total_rows: records.len() + 1, total_columns: all_names.len() })
}

fn from_rows(items: &[Value]) -> Option<Table> {
    let all: Option<Vec<&Vec<Value>>> = items.iter().map(Value::as_array).collect();
    let all = all?;
    let total_columns = all.iter().map(|row| row.len()).max().unwrap_or_default();
    let row = |row: &&Vec<Value>| row.iter().take(MAX_COLUMNS).map(cell_text).collect();
    let rows = all.iter().take(MAX_ROWS + 1).map(row).collect();
    Some(Table { rows, total_rows: all.len(), total_columns })
}

/// A value in a cell; lists and objects are shown as their size.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cell_string(text),
        Value::Array(items) => format!("[{}]", items.len()),
        Value::Object(entries) => format!("{{{}}}", entries.len()),
        other => cell_string(&other.to_string()),
    }
}

/// A text on one line, escaped and truncated for a cell.
fn cell_string(text: &str) -> String {
    // Collapsing whitespace shortens the text: this many characters are enough to fill a cell.
    let start: String = text.chars().take(8 * MAX_CELL_CHARS).collect();
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let is_whole = start.len() == text.len();
    match line.char_indices().nth(MAX_CELL_CHARS) {
        None if is_whole => line,
        None => format!("{line}…"),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

fn render(table: &Table) -> String {
    let columns = table.total_columns.min(MAX_COLUMNS);
    let line = |row: &Vec<String>| {
        let cells = (0..columns).map(|at| row.get(at).map_or("", String::as_str));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut lines: Vec<String> = table.rows.iter().map(line).collect();
    lines.insert(1, format!("|{}", " --- |".repeat(columns)));
    let more_rows = table.total_rows.saturating_sub(table.rows.len());
    let more_columns = table.total_columns - columns;
    if more_rows > 0 || more_columns > 0 {
        lines.push(format!("(+ {more_rows} × {more_columns})"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_of_all_forms_are_rendered() {
        let cell =
            |row: i64, column: i64, value: Value| json!({"value": value, "row": row, "column": column});
        let sheet = json!({"range": "A1:B3", "cells": [cell(1, 1, json!("month")), cell(1, 2, json!("sales")),
            cell(2, 1, json!("一月")), cell(2, 2, json!(100)), cell(3, 1, json!("a|b")), cell(3, 2, json!(null))]});
        insta::assert_snapshot!(markdown_table(&sheet).unwrap(), @r#"
    | month | sales |
    | --- | --- |
    | 一月 | 100 |
    | a\|b |  |
    "#);
        let records = json!([{"id": 1, "name": "x"}, {"id": 2, "more": true}]);
        insta::assert_snapshot!(markdown_table(&records).unwrap(), @r#"
    | id | name | more |
    | --- | --- | --- |
    | 1 | x |  |
    | 2 |  | true |
    "#);
        assert!(markdown_table(&json!([[1, 2], [3]])).unwrap().contains("| 3 |  |"));
        for other in [json!("text"), json!({"a": 1}), json!([]), json!([1, 2]), json!({"a": [], "b": []})] {
            assert_eq!(markdown_table(&other), None, "{other}");
        }
    }

    #[test]
    fn rendering_a_large_table_is_bounded() {
        let diagonal: Vec<Value> =
            (0..20_000).map(|at| json!({"row": at, "column": at, "value": "x"})).collect();
        assert!(markdown_table(&json!(diagonal)).unwrap().ends_with("(+ 19949 × 19988)"));
        let wide: Map<String, Value> = (0..10_000).map(|at| (format!("n{at}"), json!(at))).collect();
        let mut records = vec![json!({}); 19_999];
        records.insert(0, Value::Object(wide));
        assert!(markdown_table(&json!(records)).unwrap().ends_with("(+ 19950 × 9988)"));
        assert_eq!(markdown_table(&json!(vec![json!([1]); 20_001])), None);
    }

    proptest! {
        #[test]
        fn no_value_causes_a_panic(value in crate::reference::any_value()) {
            let _ = markdown_table(&value);
        }
    }
}
