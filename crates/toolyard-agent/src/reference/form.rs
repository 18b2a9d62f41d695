//! What a reference stands for, in the form that a parameter takes: a list, numbers, rows of single things.

use serde_json::Value;
use toolyard_core::{Param, ParamType};

use super::{
    ReferenceError, Values,
    node::Node,
    pick::{Wanted, is_number, pick},
    text::{Piece, pieces},
    walk::Found,
};
use crate::shape;

/// Whether a parameter takes rows of cells.
pub(super) fn holds_rows(param: &Param) -> bool {
    let cells = param.items.as_deref().filter(|rows| rows.kind == ParamType::Array);
    cells.is_some_and(|rows| rows.items.as_deref().is_none_or(|cell| cell.kind == ParamType::Any))
}

/// Where a list is wanted and a reference leads to a text or a record, the list of the step is meant; where numbers are,
/// those in its records.
pub(super) fn listed<'v>(
    node: Node<'v>,
    param: &Param,
    written: &str,
    values: &'v Values,
    notes: &mut Vec<String>,
) -> Node<'v> {
    let Some(wanted) = wanted_list(param) else { return node };
    let is_wrong = match &node {
        Node::Found(Found::One(Value::Array(items))) => {
            wanted == Wanted::Numbers && items.iter().any(Value::is_object)
        }
        Node::Found(Found::One(value)) => value.is_object() || (value.is_string() && !is_number(value)),
        Node::Found(Found::Many(items)) => {
            wanted == Wanted::Numbers && items.iter().any(|item| item.is_record() || item.is_word())
        }
        Node::Text(_) => true,
        _ => false,
    };
    let other = if is_wrong { picked(written, wanted, values, notes) } else { None };
    other.unwrap_or(node)
}

/// What an argument that is nothing but a reference probably means where its path does not help.
pub(super) fn picked<'v>(
    written: &str,
    wanted: Wanted,
    values: &'v Values,
    notes: &mut Vec<String>,
) -> Option<Node<'v>> {
    let pieces = pieces(written);
    let [Piece::Reference(reference)] = pieces.as_slice() else { return None };
    let names: Vec<&str> = std::iter::once(reference.step.as_str()).chain(reference.keys()).collect();
    let (found, how) = pick(values.get(&reference.step)?, wanted, &names)?;
    notes.push(format!("`{}`: {how}", reference.written));
    Some(Node::Found(found))
}

/// What kind of list a parameter wants; none where anything else would do.
pub(super) fn wanted_list(param: &Param) -> Option<Wanted> {
    let is_number = |kind: &ParamType| matches!(kind, ParamType::Number | ParamType::Integer);
    let items = param.items.as_deref().map(|items| &items.kind);
    match &param.kind {
        ParamType::Union(kinds) if kinds.contains(&ParamType::Array) && kinds.iter().any(is_number) => {
            (!kinds.contains(&ParamType::String)).then_some(Wanted::Numbers)
        }
        ParamType::Array if items.is_some_and(is_number) => Some(Wanted::Numbers),
        ParamType::Array if items.is_none_or(|items| *items == ParamType::Any) => Some(Wanted::List),
        _ => None,
    }
}

/// Rows whose cells are single things: of a record in a cell its main thing is meant, a list is spread.
pub(super) fn celled<'v>(node: Node<'v>, notes: &mut Vec<String>) -> Result<Node<'v>, ReferenceError> {
    let Node::Array(rows) = node else { return Ok(node) };
    let rows = rows.into_iter().map(|row| match row {
        Node::Array(cells) => {
            let mut row = Vec::with_capacity(cells.len());
            for cell in cells {
                spread(cell, &mut row, notes)?;
            }
            Ok(Node::Array(row))
        }
        other => Ok(other),
    });
    Ok(Node::Array(rows.collect::<Result<_, _>>()?))
}

fn spread<'v>(
    cell: Node<'v>,
    row: &mut Vec<Node<'v>>,
    notes: &mut Vec<String>,
) -> Result<(), ReferenceError> {
    match cell {
        Node::Found(Found::One(value @ Value::Object(_))) => {
            let (found, how) = pick(value, Wanted::Single, &[])
                .ok_or_else(|| ReferenceError::NoSingle { shape: shape(value) })?;
            notes.push(format!("a cell takes one thing: {how}"));
            row.push(Node::Found(found));
        }
        Node::Found(Found::One(Value::Array(items))) => {
            for item in items {
                spread(Node::Found(Found::One(item)), row, notes)?;
            }
        }
        Node::Found(Found::Many(items)) => {
            for item in items {
                spread(Node::Found(item), row, notes)?;
            }
        }
        other => row.push(other),
    }
    Ok(())
}
