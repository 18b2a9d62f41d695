//! Adapts a resolved reference to its parameter: a list, numbers, rows of scalar cells.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use toolyard_core::{Param, ParamType};

use super::{
    argument_tree::ArgumentNode,
    error::ReferenceError,
    parse::{Fragment, parse_fragments},
    path::{PathValue, is_number},
    select::{ValueKind, select_part},
};
use crate::values::outline;

/// The values that arguments refer to, by step id.
pub(super) type ReferencedValues = HashMap<String, Arc<Value>>;

/// Whether a parameter takes rows of untyped cells.
pub(super) fn takes_rows(param: &Param) -> bool {
    let cells = param.items.as_deref().filter(|rows| rows.kind == ParamType::Array);
    cells.is_some_and(|rows| rows.items.as_deref().is_none_or(|cell| cell.kind == ParamType::Any))
}

/// For a list parameter: replaces a string or an object with the list of the step's value, and objects with their numbers
/// where numbers are expected.
pub(super) fn adapt_list<'v>(
    node: ArgumentNode<'v>,
    param: &Param,
    written: &str,
    values: &'v ReferencedValues,
    notes: &mut Vec<String>,
) -> ArgumentNode<'v> {
    let Some(wanted) = expected_list(param) else { return node };
    let is_mismatch = match &node {
        ArgumentNode::Resolved(PathValue::Borrowed(Value::Array(items))) => {
            wanted == ValueKind::NumberList && items.iter().any(Value::is_object)
        }
        ArgumentNode::Resolved(PathValue::Borrowed(value)) => {
            value.is_object() || (value.is_string() && !is_number(value))
        }
        ArgumentNode::Resolved(PathValue::List(items)) => {
            wanted == ValueKind::NumberList
                && items.iter().any(|item| item.is_object() || item.is_non_numeric_string())
        }
        ArgumentNode::Text(_) => true,
        _ => false,
    };
    let selected = if is_mismatch { select_for_argument(written, wanted, values, notes) } else { None };
    selected.unwrap_or(node)
}

/// For an argument that is exactly one reference: selects the part of the step's value that has the wanted kind.
pub(super) fn select_for_argument<'v>(
    written: &str,
    wanted: ValueKind,
    values: &'v ReferencedValues,
    notes: &mut Vec<String>,
) -> Option<ArgumentNode<'v>> {
    let fragments = parse_fragments(written);
    let [Fragment::Reference(reference)] = fragments.as_slice() else { return None };
    let names: Vec<&str> = std::iter::once(reference.step.as_str()).chain(reference.keys()).collect();
    let (found, note) = select_part(values.get(&reference.step)?, wanted, &names)?;
    notes.push(format!("`{}`: {note}", reference.written));
    Some(ArgumentNode::Resolved(found))
}

/// The kind of list that a parameter takes; none when it takes other types as well.
pub(super) fn expected_list(param: &Param) -> Option<ValueKind> {
    let is_number = |kind: &ParamType| matches!(kind, ParamType::Number | ParamType::Integer);
    let items = param.items.as_deref().map(|items| &items.kind);
    match &param.kind {
        ParamType::Union(kinds) if kinds.contains(&ParamType::Array) && kinds.iter().any(is_number) => {
            (!kinds.contains(&ParamType::String)).then_some(ValueKind::NumberList)
        }
        ParamType::Array if items.is_some_and(is_number) => Some(ValueKind::NumberList),
        ParamType::Array if items.is_none_or(|items| *items == ParamType::Any) => Some(ValueKind::List),
        _ => None,
    }
}

/// Makes the cells of rows scalar: an object becomes its main field, a list is spread over several cells.
pub(super) fn spread_cells<'v>(
    node: ArgumentNode<'v>,
    notes: &mut Vec<String>,
) -> Result<ArgumentNode<'v>, ReferenceError> {
    let ArgumentNode::Array(rows) = node else { return Ok(node) };
    let rows = rows.into_iter().map(|row| match row {
        ArgumentNode::Array(cells) => {
            let mut row = Vec::with_capacity(cells.len());
            for cell in cells {
                spread(cell, &mut row, notes)?;
            }
            Ok(ArgumentNode::Array(row))
        }
        other => Ok(other),
    });
    Ok(ArgumentNode::Array(rows.collect::<Result<_, _>>()?))
}

fn spread<'v>(
    cell: ArgumentNode<'v>,
    row: &mut Vec<ArgumentNode<'v>>,
    notes: &mut Vec<String>,
) -> Result<(), ReferenceError> {
    match cell {
        ArgumentNode::Resolved(PathValue::Borrowed(value @ Value::Object(_))) => {
            let (found, note) = select_part(value, ValueKind::Scalar, &[])
                .ok_or_else(|| ReferenceError::AmbiguousCell { outline: outline(value) })?;
            notes.push(format!("a cell takes one value: {note}"));
            row.push(ArgumentNode::Resolved(found));
        }
        ArgumentNode::Resolved(PathValue::Borrowed(Value::Array(items))) => {
            for item in items {
                spread(ArgumentNode::Resolved(PathValue::Borrowed(item)), row, notes)?;
            }
        }
        ArgumentNode::Resolved(PathValue::List(items)) => {
            for item in items {
                spread(ArgumentNode::Resolved(item), row, notes)?;
            }
        }
        other => row.push(other),
    }
    Ok(())
}
