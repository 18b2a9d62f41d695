//! Finds the intended part of a value when a path does not exist in it: the plan was written before the value was known.

use serde_json::{Map, Value};

use super::{
    lookup_trace::{LookupTrace, display_name},
    parse::PathSegment,
    path::{PathValue, follow_path},
    table_column::{ListMatch, MAX_DEPTH, fold_name, match_list, only_list},
};

/// Scanning this many list items costs as much of the work budget as visiting one value.
const ITEMS_PER_VISIT: usize = 256;
/// Names that models give to a result as a whole.
const WRAPPER_NAMES: [&str; 14] = [
    "result",
    "results",
    "output",
    "outputs",
    "value",
    "data",
    "content",
    "contents",
    "response",
    "text",
    "answer",
    "structured",
    "structuredContent",
    "return",
];
/// Fields that describe the field `result` beside them, as in outputs of `calculate`.
const METADATA_FIELDS: [&str; 9] =
    ["exact", "approximate", "note", "ignored", "counted", "success", "ok", "unit", "status"];
const COUNT_NAMES: [&str; 4] = ["length", "count", "size", "len"];

/// Whether a key only means "the result".
pub(super) fn is_wrapper(key: &str) -> bool {
    WRAPPER_NAMES.contains(&key)
}

/// The `result` field of a value whose other fields are metadata, else the value.
pub(super) fn main_value(value: &Value) -> &Value {
    match value {
        Value::Object(entries)
            if entries.keys().all(|key| key == "result" || METADATA_FIELDS.contains(&key.as_str())) =>
        {
            entries.get("result").unwrap_or(value)
        }
        _ => value,
    }
}

/// The part that the path probably means, with a note for the approver. None when the work budget runs out, because
/// uniqueness is then unknown.
pub(super) fn fuzzy_lookup<'v>(value: &'v Value, path: &[PathSegment]) -> Option<(PathValue<'v>, String)> {
    let mut trace = LookupTrace::default();
    match search(value, path, &mut trace, MAX_DEPTH) {
        _ if trace.is_exhausted => None,
        Some(found) => Some((found, trace.notes.join(", "))),
        None => without_one_key(value, path),
    }
}

/// The path with one key omitted, if exactly one such path exists in the value.
fn without_one_key<'v>(value: &'v Value, path: &[PathSegment]) -> Option<(PathValue<'v>, String)> {
    let mut matching = path.iter().enumerate().filter_map(|(at, segment)| {
        let PathSegment::Key(key) = segment else { return None };
        let mut shorter = path.to_vec();
        shorter.remove(at);
        let found = (!shorter.is_empty()).then(|| follow_path(value, &shorter)).flatten()?;
        Some((found, format!("ignored `{key}`")))
    });
    let only = matching.next()?;
    matching.next().is_none().then_some(only)
}

fn search<'v>(
    value: &'v Value,
    path: &[PathSegment],
    trace: &mut LookupTrace,
    depth: usize,
) -> Option<PathValue<'v>> {
    let items = value.as_array().map_or(0, Vec::len);
    if !trace.spend_visits(1 + items / ITEMS_PER_VISIT) {
        return None;
    }
    if let Some(found) = follow_path(value, path) {
        return Some(found);
    }
    let depth = depth.checked_sub(1)?;
    let (segment, rest) = path.split_first()?;
    if let Some(next) = exact_segment(value, segment)
        && let Some(found) = search(next, rest, trace, depth)
    {
        return Some(found);
    }
    if let Value::String(text) = value {
        return in_json_text(text, path, trace, depth);
    }
    let note_count = trace.notes.len();
    DEVIATIONS.into_iter().find_map(|deviation| {
        trace.notes.truncate(note_count);
        deviation(value, Query { segment, rest, path, depth }, trace)
    })
}

/// A path to look up, split at its first segment.
#[derive(Clone, Copy)]
struct Query<'p> {
    segment: &'p PathSegment,
    rest: &'p [PathSegment],
    path: &'p [PathSegment],
    /// How many more levels may be searched: exact segments and deviations.
    depth: usize,
}

/// One way to deviate from the written path.
type Deviation = for<'v> fn(&'v Value, Query<'_>, &mut LookupTrace) -> Option<PathValue<'v>>;

/// The deviations, in the order in which they are tried.
const DEVIATIONS: [Deviation; 7] =
    [similar_key, without_wrapper, item_count, nested_key, in_only_list, inside_result, without_unknown_key];

/// The value after one segment, taken exactly as written.
fn exact_segment<'v>(value: &'v Value, segment: &PathSegment) -> Option<&'v Value> {
    match follow_path(value, std::slice::from_ref(segment))? {
        PathValue::Borrowed(next) => Some(next),
        PathValue::List(_) | PathValue::Owned(_) => None,
    }
}

/// Searches a string that contains JSON, as some servers send it.
fn in_json_text<'v>(
    text: &str,
    path: &[PathSegment],
    trace: &mut LookupTrace,
    depth: usize,
) -> Option<PathValue<'v>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return whole_string(text, path);
    }
    let parsed = trace.parse_json(text)?;
    trace.note("parsed the text as JSON");
    search(&parsed, path, trace, depth).map(|found| PathValue::Owned(found.into_value()))
}

/// `$sum.result` where the whole result is a string.
fn whole_string<'v>(text: &str, path: &[PathSegment]) -> Option<PathValue<'v>> {
    let only_wrappers =
        path.iter().all(|segment| matches!(segment, PathSegment::Key(key) if is_wrapper(key)));
    only_wrappers.then(|| PathValue::Owned(Value::String(text.to_owned())))
}

/// The same key in another spelling: `sheetName` for `sheet_name`.
fn similar_key<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    let (PathSegment::Key(key), Value::Object(entries)) = (query.segment, value) else { return None };
    let wanted = fold_name(key);
    let mut matching = entries.iter().filter(|(known, _)| fold_name(known) == wanted);
    let (known, value) = matching.next()?;
    if matching.next().is_some() {
        return None;
    }
    trace.note(format!("used `{}` for `{key}`", display_name(known)));
    search(value, query.rest, trace, query.depth)
}

/// `$read.result.cells` where the value has `cells` directly.
fn without_wrapper<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    let PathSegment::Key(key) = query.segment else { return None };
    if !is_wrapper(key) {
        return None;
    }
    let inner = main_value(value);
    if query.rest.is_empty() {
        // A bare wrapper name means the value itself. It does not if it may name a field of each record, and a name such as
        // `data` of an object is more likely a missing field.
        let may_be_whole = !matches!(inner, Value::Object(_)) || is_result_name(key);
        let may_be_column =
            matches!(key.as_str(), "value" | "text" | "content") && only_list(inner, trace).is_some();
        if !may_be_whole || may_be_column {
            return None;
        }
    }
    let used = if std::ptr::eq(inner, value) { "the whole value" } else { "the field `result`" };
    trace.note(format!("skipped `{key}`; used {used}"));
    search(inner, query.rest, trace, query.depth)
}

/// `$read.cells` where the field `result` has `cells`.
fn inside_result<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    let inner = value.as_object()?.get("result")?;
    trace.note("looked inside `result`");
    search(inner, query.path, trace, query.depth)
}

/// `$sales.data[*].value` where there is no `data`, but a list whose items have `value`.
fn without_unknown_key<'v>(
    value: &'v Value,
    query: Query<'_>,
    trace: &mut LookupTrace,
) -> Option<PathValue<'v>> {
    let (PathSegment::Key(key), Value::Object(entries)) = (query.segment, value) else { return None };
    if query.rest.is_empty() || entries.contains_key(key) {
        return None;
    }
    trace.note(format!("no field `{key}`"));
    search(value, query.rest, trace, query.depth)
}

/// Whether a key means the whole value even if that is an object.
fn is_result_name(key: &str) -> bool {
    matches!(key, "result" | "output" | "response" | "structured" | "structuredContent" | "return")
}

/// `$read.rows.length`: the number of items.
fn item_count<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    let PathSegment::Key(key) = query.segment else { return None };
    if !query.rest.is_empty() || !COUNT_NAMES.contains(&key.as_str()) {
        return None;
    }
    let Value::Array(items) = value else { return None };
    trace.note("counted the items");
    Some(PathValue::Owned(Value::from(items.len())))
}

/// A key that occurs exactly once deeper in the value, outside of lists.
fn nested_key<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    let (PathSegment::Key(key), Value::Object(entries)) = (query.segment, value) else { return None };
    let mut found = Vec::new();
    collect_occurrences(entries, key, MAX_DEPTH, trace, &mut found);
    let [only] = found.as_slice() else { return None };
    trace.note(format!("found `{key}` deeper in the value"));
    search(only, query.rest, trace, query.depth)
}

/// A column of the only list, or an index into it.
fn in_only_list<'v>(value: &'v Value, query: Query<'_>, trace: &mut LookupTrace) -> Option<PathValue<'v>> {
    match match_list(value, query.segment, query.rest, trace)? {
        ListMatch::Column(column) => Some(column),
        ListMatch::List(list) => search(list, query.path, trace, query.depth),
    }
}

fn collect_occurrences<'v>(
    entries: &'v Map<String, Value>,
    key: &str,
    depth: usize,
    trace: &mut LookupTrace,
    found: &mut Vec<&'v Value>,
) {
    for (name, value) in entries {
        if found.len() > 1 || !trace.spend_visits(1) {
            return;
        }
        if name == key {
            found.push(value);
        } else if let (Value::Object(inner), true) = (value, depth > 0) {
            collect_occurrences(inner, key, depth - 1, trace, found);
        }
    }
}

#[cfg(test)]
#[path = "fuzzy_lookup_tests.rs"]
mod tests;
