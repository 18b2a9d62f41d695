//! Resolves a name against the only list of a value: a column of a table, in any of its usual forms.

use serde_json::Value;

use super::{
    lookup_trace::{LookupTrace, display_name},
    parse::PathSegment,
    path::{PathValue, follow_path},
};
use crate::values::grid_cell::{GridCell, SAMPLED_RECORDS};

/// Values nested deeper are not searched.
pub(super) const MAX_DEPTH: usize = 6;
/// Cells that are searched for a heading.
const MAX_HEADING_CELLS: usize = 5_000;

/// How a name or an index matched the only list of a value.
pub(super) enum ListMatch<'v> {
    /// The column of that name.
    Column(PathValue<'v>),
    /// The list itself, to which the path applies.
    List(&'v Value),
}

/// Matches a field that each record of the only list has, or a position in that list.
pub(super) fn match_list<'v>(
    value: &'v Value,
    segment: &PathSegment,
    rest: &[PathSegment],
    trace: &mut LookupTrace,
) -> Option<ListMatch<'v>> {
    let (name, list) = only_list(value, trace)?;
    let items = list.as_array()?;
    let list_name = if name.is_empty() { "the list".to_owned() } else { format!("`{}`", display_name(name)) };
    let (key, rest) = match (segment, rest.split_first()) {
        (PathSegment::Key(key), _) => (key, rest),
        // `[*].key` of the list itself, with another name for the key.
        (PathSegment::All, Some((PathSegment::Key(key), rest))) => (key, rest),
        // An index into a value that contains only one list.
        _ if !value.is_array() => {
            trace.note(format!("used {list_name}"));
            return Some(ListMatch::List(list));
        }
        _ => return None,
    };
    // A column already covers every item, so `[*]` is redundant.
    let rest = if rest.first() == Some(&PathSegment::All) { rest.get(1..).unwrap_or_default() } else { rest };
    if let Some(values) = cells_below_heading(items, key) {
        trace.note(format!("used the cells below `{key}` in {list_name}"));
        return rest.is_empty().then_some(ListMatch::Column(PathValue::List(values)));
    }
    let path = if let Some(at) = header_index(items, key) {
        trace.note(format!("used column `{key}` of {list_name}"));
        vec![PathSegment::Slice(Some(1), None), PathSegment::All, PathSegment::Index(at)]
    } else {
        let field = record_field(items, key)?;
        trace.note(format!("used each `{}` of {list_name}", display_name(&field)));
        vec![PathSegment::All, PathSegment::Key(field)]
    };
    follow_path(list, &[path.as_slice(), rest].concat()).map(ListMatch::Column)
}

pub(super) fn only_list<'v>(value: &'v Value, trace: &mut LookupTrace) -> Option<(&'v str, &'v Value)> {
    let mut lists = Vec::new();
    collect_lists("", value, MAX_DEPTH, trace, &mut lists);
    match lists.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn collect_lists<'v>(
    name: &'v str,
    value: &'v Value,
    depth: usize,
    trace: &mut LookupTrace,
    lists: &mut Vec<(&'v str, &'v Value)>,
) {
    if lists.len() > 1 || !trace.spend_visits(1) {
        return;
    }
    match value {
        Value::Array(_) => lists.push((name, value)),
        Value::Object(entries) if depth > 0 => {
            for (name, value) in entries {
                collect_lists(name, value, depth - 1, trace, lists);
            }
        }
        _ => {}
    }
}

/// The values below a heading, in a table given cell by cell.
fn cells_below_heading<'v>(items: &'v [Value], key: &str) -> Option<Vec<PathValue<'v>>> {
    let wanted = fold_name(key);
    let wanted = wanted.strip_suffix("column").unwrap_or(&wanted);
    let is_heading =
        |cell: &GridCell<'_>| cell.value.as_str().is_some_and(|value| fold_name(value) == wanted);
    let heading = items.iter().take(MAX_HEADING_CELLS).filter_map(GridCell::parse).find(is_heading)?;
    let is_below = |cell: &GridCell<'_>| cell.column == heading.column && cell.row > heading.row;
    let below = items.iter().filter_map(GridCell::parse).filter(is_below);
    let values: Vec<_> = below.map(|cell| PathValue::Borrowed(cell.value)).collect();
    (!values.is_empty()).then_some(values)
}

/// The index of a column in rows whose first row contains the column names.
fn header_index(items: &[Value], key: &str) -> Option<i64> {
    let Some(Value::Array(names)) = items.first() else { return None };
    let wanted = fold_name(key);
    let at = names.iter().position(|name| name.as_str().is_some_and(|name| fold_name(name) == wanted))?;
    i64::try_from(at).ok()
}

/// The field of records that matches a key: in any spelling, or in the singular.
fn record_field(items: &[Value], key: &str) -> Option<String> {
    let wanted = fold_name(key);
    let singular = wanted.strip_suffix('s').map(str::to_owned);
    let records = || items.iter().take(SAMPLED_RECORDS).filter_map(Value::as_object);
    let named = |wanted: &str| {
        records().find_map(|record| record.keys().find(|known| fold_name(known) == wanted)).cloned()
    };
    named(&wanted).or_else(|| named(singular.as_deref()?))
}

/// Reduces a name to its letters and digits in lower case, for comparing spellings.
pub(crate) fn fold_name(key: &str) -> String {
    key.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
