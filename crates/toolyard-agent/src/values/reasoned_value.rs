//! The value of a step that a model did without a tool.

use serde_json::{Map, Value};

use super::{compact_table::CELL_SEPARATOR, step_value};

/// The text of a reply to a request for reasoning: what is in `result` if the reply is an object with that field alone.
pub(crate) fn reasoned_text(reply: &str) -> String {
    let result = serde_json::from_str::<Map<String, Value>>(reply)
        .ok()
        .filter(|entries| entries.len() == 1)
        .and_then(|mut entries| entries.remove("result"));
    match result {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => reply.to_owned(),
    }
}

/// The value of such a text. Rows as [`compact_table`](super::compact_table) writes them are lists: one row is a list of
/// cells, several are a list of rows.
pub(crate) fn reasoned_value(text: &str) -> Value {
    let rows: Vec<Vec<Value>> = text
        .trim()
        .lines()
        .map(|line| line.split(CELL_SEPARATOR).map(|cell| Value::from(cell.trim())).collect())
        .collect();
    let columns = rows.first().map_or(0, Vec::len);
    if columns < 2 || rows.iter().any(|row| row.len() != columns) {
        return step_value(None, text);
    }
    match <[Vec<Value>; 1]>::try_from(rows) {
        Ok([row]) => Value::Array(row),
        Err(rows) => Value::Array(rows.into_iter().map(Value::Array).collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_of_a_constrained_reply_is_its_text() {
        assert_eq!(reasoned_text("{\n  \"result\": \"Monat | Preis\"\n}"), "Monat | Preis");
        assert_eq!(reasoned_text(r#"{"result": ["a", "b"]}"#), r#"["a","b"]"#);
        for other in ["plain", r#"{"result": 1, "exact": true}"#, "{broken", ""] {
            assert_eq!(reasoned_text(other), other);
        }
    }

    #[test]
    fn rows_become_lists() {
        assert_eq!(reasoned_value("Monat | Preis"), json!(["Monat", "Preis"]));
        assert_eq!(reasoned_value("a | b\nc | d\n"), json!([["a", "b"], ["c", "d"]]));
        assert_eq!(reasoned_value("[\"a\",\"b\"]"), json!(["a", "b"]));
        for text in ["one", "a | b\nc", "x|y", ""] {
            assert_eq!(reasoned_value(text), json!(text));
        }
    }
}
