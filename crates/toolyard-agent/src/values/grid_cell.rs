//! Tables given cell by cell: `{"row": 1, "column": 2, "value": "Sales"}`.

use serde_json::Value;

/// Records of a list that are inspected to learn the form of all.
pub(crate) const SAMPLED_RECORDS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GridCell<'v> {
    pub(crate) row: i64,
    pub(crate) column: i64,
    pub(crate) value: &'v Value,
}

impl<'v> GridCell<'v> {
    /// Parses a cell; none if the item has another form.
    pub(crate) fn parse(item: &'v Value) -> Option<Self> {
        let number = |name: &str| item.get(name).and_then(Value::as_i64);
        Some(Self { row: number("row")?, column: number("column")?, value: item.get("value")? })
    }
}

/// Whether a list is a table given cell by cell, judged by its first items.
pub(crate) fn is_grid(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().take(SAMPLED_RECORDS).all(|item| GridCell::parse(item).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_has_a_position_and_a_value() {
        let cell = json!({"row": 2, "column": 1, "value": null, "address": "A2"});
        assert_eq!(GridCell::parse(&cell), Some(GridCell { row: 2, column: 1, value: &Value::Null }));
        let others =
            [json!({"row": 2, "value": 1}), json!({"row": 2, "column": 1}), json!([2, 1, 0]), json!(7)];
        assert!(others.iter().all(|other| GridCell::parse(other).is_none()));
        assert!(is_grid(std::slice::from_ref(&cell)) && !is_grid(&[]) && !is_grid(&[cell, json!({})]));
    }
}
