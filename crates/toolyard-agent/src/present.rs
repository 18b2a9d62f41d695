//! A result as a person reads it: tables as tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// More rows and columns than this are counted.
const MAX_ROWS: usize = 50;
const MAX_COLUMNS: usize = 12;
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
const MORE_WORDS: [&str; 48] = [
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

/// A value as a table in Markdown; none where it is none.
pub fn table(value: &Value) -> Option<String> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(entries) => {
            let mut lists = entries.values().filter_map(Value::as_array);
            lists.next().filter(|_| lists.next().is_none())?
        }
        _ => return None,
    };
    let rows = grid(items).or_else(|| records(items)).or_else(|| lists(items))?;
    (rows.len() > 1).then(|| written(&rows))
}

/// Cells that say where they stand: `{"row": 1, "column": 2, "value": "Sales"}`.
fn grid(items: &[Value]) -> Option<Vec<Vec<String>>> {
    let mut rows: BTreeMap<i64, BTreeMap<i64, String>> = BTreeMap::new();
    let mut columns = BTreeSet::new();
    for item in items {
        let number = |name: &str| item.get(name).and_then(Value::as_i64);
        let (row, column) = (number("row")?, number("column")?);
        columns.insert(column);
        rows.entry(row).or_default().insert(column, cell(item.get("value")?));
    }
    let row = |cells: &BTreeMap<i64, String>| {
        columns.iter().map(|column| cells.get(column).cloned().unwrap_or_default()).collect()
    };
    Some(rows.values().map(row).collect())
}

/// Records: their names are the heading.
fn records(items: &[Value]) -> Option<Vec<Vec<String>>> {
    let all: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    let all = all.filter(|all| all.len() > 1)?;
    let mut names: Vec<&String> = Vec::new();
    for name in all.iter().take(MAX_ROWS).flat_map(|record| record.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let heading = names.iter().map(|name| cut(name)).collect();
    let row = |record: &&Map<String, Value>| {
        names.iter().map(|name| record.get(*name).map(cell).unwrap_or_default()).collect()
    };
    Some(std::iter::once(heading).chain(all.iter().map(row)).collect())
}

/// Rows of cells.
fn lists(items: &[Value]) -> Option<Vec<Vec<String>>> {
    let row = |item: &Value| Some(item.as_array()?.iter().map(cell).collect());
    items.iter().map(row).collect()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

/// A text that fits into a cell and ends it nowhere.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    match line.char_indices().nth(MAX_CELL) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

fn written(rows: &[Vec<String>]) -> String {
    let wide = rows.iter().map(Vec::len).max().unwrap_or_default();
    let columns = wide.min(MAX_COLUMNS);
    let line = |row: &Vec<String>| {
        let cells = (0..columns).map(|at| row.get(at).map_or("", String::as_str));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut lines: Vec<String> = rows.iter().take(MAX_ROWS + 1).map(line).collect();
    lines.insert(1, format!("|{}", " --- |".repeat(columns)));
    let (more_rows, more_columns) = (rows.len().saturating_sub(MAX_ROWS + 1), wide - columns);
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
