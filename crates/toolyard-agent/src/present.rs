//! A result as a person reads it: tables as tables.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::cells::Cell;

/// More rows and columns than this are counted.
const MAX_ROWS: usize = 50;
const MAX_COLUMNS: usize = 12;
/// A longer list is shown by its beginning, in another form.
const MAX_ITEMS: usize = 20_000;
/// Longer texts in a cell are cut.
const MAX_CELL: usize = 60;

/// Words by which somebody only wants to see something.
const SHOW_WORDS: [&str; 14] = [
    "read",
    "show",
    "list",
    "display",
    "print",
    "open",
    "读取",
    "读一下",
    "查看",
    "显示",
    "列出",
    "打开",
    "看看",
    "读出",
];
/// Words by which somebody wants more than that.
const MORE_WORDS: [&str; 72] = [
    "?",
    "？",
    "how",
    "which",
    "what",
    "who",
    "why",
    "when",
    "where",
    "sum",
    "total",
    "average",
    "mean",
    "max",
    "min",
    "maximum",
    "minimum",
    "highest",
    "lowest",
    "most",
    "least",
    "compare",
    "count",
    "tell",
    "find",
    "explain",
    "translate",
    "check",
    "summarize",
    "summarise",
    "calculate",
    "add",
    "write",
    "save",
    "and",
    "then",
    "delete",
    "remove",
    "send",
    "sort",
    "sorted",
    "newest",
    "latest",
    "oldest",
    "first",
    "last",
    "top",
    "where",
    "only",
    "except",
    "filter",
    "多少",
    "哪",
    "几",
    "最",
    "总",
    "平均",
    "求",
    "比较",
    "统计",
    "分析",
    "告诉",
    "翻译",
    "检查",
    "写",
    "并",
    "然后",
    "删",
    "发",
    "按",
    "前",
    "只",
];

/// Whether a request is fulfilled by showing what a tool gave.
pub(crate) fn only_shows(question: &str) -> bool {
    let said = question.to_lowercase();
    let words: BTreeSet<&str> = said.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let is_word = |word: &str| word.bytes().all(|letter| letter.is_ascii_alphabetic());
    let holds = |all: &[&str]| {
        all.iter().any(|one| if is_word(one) { words.contains(one) } else { said.contains(one) })
    };
    holds(&SHOW_WORDS) && !holds(&MORE_WORDS)
}

/// What is shown of a table, and how much there is of it.
struct Table {
    rows: Vec<Vec<String>>,
    /// How many rows and columns there are in all.
    size: (usize, usize),
}

/// A value as a table in Markdown; none where it is none. Nothing is made of what is not shown.
pub(crate) fn table(value: &Value) -> Option<String> {
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
    let table = grid(items).or_else(|| records(items)).or_else(|| lists(items))?;
    (table.rows.len() > 1).then(|| written(&table))
}

/// Cells that say where they stand.
fn grid(items: &[Value]) -> Option<Table> {
    let mut rows: BTreeMap<i64, BTreeMap<i64, &Value>> = BTreeMap::new();
    let mut columns = BTreeSet::new();
    for item in items {
        let Cell { row, column, value } = Cell::read(item)?;
        columns.insert(column);
        rows.entry(row).or_default().insert(column, value);
    }
    let size = (rows.len(), columns.len());
    let row = |cells: &BTreeMap<i64, &Value>| {
        let shown = columns.iter().take(MAX_COLUMNS);
        shown.map(|column| cells.get(column).map(|value| cell(value)).unwrap_or_default()).collect()
    };
    Some(Table { rows: rows.values().take(MAX_ROWS + 1).map(row).collect(), size })
}

/// Records: their names are the heading.
fn records(items: &[Value]) -> Option<Table> {
    let all: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    let all = all.filter(|all| all.len() > 1)?;
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for name in all.iter().take(MAX_ROWS).flat_map(|record| record.keys()) {
        if known.insert(name) && names.len() < MAX_COLUMNS {
            names.push(name);
        }
    }
    let heading = names.iter().map(|name| cut(name)).collect();
    let row = |record: &&Map<String, Value>| {
        names.iter().map(|name| record.get(*name).map(cell).unwrap_or_default()).collect()
    };
    let rows = std::iter::once(heading).chain(all.iter().take(MAX_ROWS).map(row)).collect();
    Some(Table { rows, size: (all.len() + 1, known.len()) })
}

/// Rows of cells.
fn lists(items: &[Value]) -> Option<Table> {
    let all: Option<Vec<&Vec<Value>>> = items.iter().map(Value::as_array).collect();
    let all = all?;
    let wide = all.iter().map(|row| row.len()).max().unwrap_or_default();
    let row = |row: &&Vec<Value>| row.iter().take(MAX_COLUMNS).map(cell).collect();
    Some(Table { rows: all.iter().take(MAX_ROWS + 1).map(row).collect(), size: (all.len(), wide) })
}

/// A value in a cell; of what holds others only the beginning is looked at.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cut(text),
        Value::Array(items) => format!("[{}]", items.len()),
        Value::Object(entries) => format!("{{{}}}", entries.len()),
        other => cut(&other.to_string()),
    }
}

/// A text that fits into a cell and ends it nowhere.
fn cut(text: &str) -> String {
    // Spaces and signs may become one or two letters: this many are enough to fill a cell.
    let begin: String = text.chars().take(8 * MAX_CELL).collect();
    let line = begin.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let is_whole = begin.len() == text.len();
    match line.char_indices().nth(MAX_CELL) {
        None if is_whole => line,
        None => format!("{line}…"),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

fn written(table: &Table) -> String {
    let (all_rows, all_columns) = table.size;
    let columns = all_columns.min(MAX_COLUMNS);
    let line = |row: &Vec<String>| {
        let cells = (0..columns).map(|at| row.get(at).map_or("", String::as_str));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut lines: Vec<String> = table.rows.iter().map(line).collect();
    lines.insert(1, format!("|{}", " --- |".repeat(columns)));
    let (more_rows, more_columns) = (all_rows.saturating_sub(table.rows.len()), all_columns - columns);
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
    fn tables_are_tables_whatever_their_form() {
        let cell =
            |row: i64, column: i64, value: Value| json!({"value": value, "row": row, "column": column});
        let sheet = json!({"range": "A1:B3", "cells": [cell(1, 1, json!("month")), cell(1, 2, json!("sales")),
            cell(2, 1, json!("一月")), cell(2, 2, json!(100)), cell(3, 1, json!("a|b")), cell(3, 2, json!(null))]});
        insta::assert_snapshot!(table(&sheet).unwrap(), @r#"
    | month | sales |
    | --- | --- |
    | 一月 | 100 |
    | a\|b |  |
    "#);
        let records = json!([{"id": 1, "name": "x"}, {"id": 2, "more": true}]);
        insta::assert_snapshot!(table(&records).unwrap(), @r#"
    | id | name | more |
    | --- | --- | --- |
    | 1 | x |  |
    | 2 |  | true |
    "#);
        assert!(table(&json!([[1, 2], [3]])).unwrap().contains("| 3 |  |"));
        for other in [json!("text"), json!({"a": 1}), json!([]), json!([1, 2]), json!({"a": [], "b": []})] {
            assert_eq!(table(&other), None, "{other}");
        }
    }

    #[test]
    fn a_large_table_costs_what_is_shown_of_it() {
        let diagonal: Vec<Value> =
            (0..20_000).map(|at| json!({"row": at, "column": at, "value": "x"})).collect();
        assert!(table(&json!(diagonal)).unwrap().ends_with("(+ 19949 × 19988)"));
        let wide: Map<String, Value> = (0..10_000).map(|at| (format!("n{at}"), json!(at))).collect();
        let mut records = vec![json!({}); 19_999];
        records.insert(0, Value::Object(wide));
        assert!(table(&json!(records)).unwrap().ends_with("(+ 19950 × 9988)"));
        assert_eq!(table(&json!(vec![json!([1]); 20_001])), None);
    }

    #[test]
    fn only_what_is_asked_to_be_shown_is_only_shown() {
        for question in ["帮我读取 test.xlsx 的 Sheet1 工作表", "Read Sheet1 of test.xlsx", "Show the orders"]
        {
            assert!(only_shows(question), "{question}");
        }
        for question in [
            "Which month sold most in test.xlsx?",
            "读取 test.xlsx 并告诉我最高的销售额",
            "Hello",
            "Read it and sum it",
            "Show the 5 newest orders",
            "Read x.csv and delete row 1",
        ] {
            assert!(!only_shows(question), "{question}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_survived(value in crate::reference::any_value()) {
            let _ = table(&value);
        }
    }
}
