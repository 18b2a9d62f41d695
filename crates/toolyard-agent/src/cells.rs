//! Tables that are given cell by cell: `{"row": 1, "column": 2, "value": "Sales"}`.

use serde_json::Value;

/// So many records of a list show what is in all of them.
pub(crate) const SAMPLE: usize = 50;

/// A cell that says where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell<'v> {
    pub(crate) row: i64,
    pub(crate) column: i64,
    pub(crate) value: &'v Value,
}

impl<'v> Cell<'v> {
    /// Reads a cell; none where it is something else.
    pub(crate) fn read(item: &'v Value) -> Option<Self> {
        let number = |name: &str| item.get(name).and_then(Value::as_i64);
        Some(Self { row: number("row")?, column: number("column")?, value: item.get("value")? })
    }
}

/// Whether a list is a table that is given cell by cell, as far as its beginning shows.
pub(crate) fn is_grid(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().take(SAMPLE).all(|item| Cell::read(item).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_says_where_it_stands_and_what_is_in_it() {
        let cell = json!({"row": 2, "column": 1, "value": null, "address": "A2"});
        assert_eq!(Cell::read(&cell), Some(Cell { row: 2, column: 1, value: &Value::Null }));
        let others =
            [json!({"row": 2, "value": 1}), json!({"row": 2, "column": 1}), json!([2, 1, 0]), json!(7)];
        assert!(others.iter().all(|other| Cell::read(other).is_none()));
        assert!(is_grid(std::slice::from_ref(&cell)) && !is_grid(&[]) && !is_grid(&[cell, json!({})]));
    }
}
