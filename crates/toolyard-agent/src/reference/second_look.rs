//! What somebody probably meant whose path leads nowhere: the plan was written before the value was known.

use serde_json::{Map, Value};

use super::{
    Part,
    columns::{column, folded, only_list},
    trail::{Trail, short},
    walk::{Found, walk},
};

/// Deeper than this nothing is looked for.
pub(super) const MAX_DEPTH: usize = 6;
/// Looking at so many items of a list on the way is one look.
const ITEMS_AT_A_LOOK: usize = 256;
/// Names that models give to a result as a whole.
const WRAPPERS: [&str; 14] = [
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
/// Fields that say something about a result and are none.
const ABOUT: [&str; 9] =
    ["exact", "approximate", "note", "ignored", "counted", "success", "ok", "unit", "status"];
/// Names for how many there are.
const COUNTS: [&str; 4] = ["length", "count", "size", "len"];

/// Whether a word only says that a result is meant.
pub(super) fn is_wrapper(word: &str) -> bool {
    WRAPPERS.contains(&word)
}

/// The result itself where the value is a result with words about it.
pub(super) fn main_value(value: &Value) -> &Value {
    match value {
        Value::Object(entries)
            if entries.keys().all(|key| key == "result" || ABOUT.contains(&key.as_str())) =>
        {
            entries.get("result").unwrap_or(value)
        }
        _ => value,
    }
}

/// What was probably meant, and in words how it was found. Where not all of the value could be looked at, nobody knows
/// whether what was found is the only one.
pub(super) fn second_look<'v>(value: &'v Value, path: &[Part]) -> Option<(Found<'v>, String)> {
    let mut trail = Trail::default();
    let found = look(value, path, &mut trail, MAX_DEPTH);
    match found {
        _ if trail.is_exhausted => None,
        Some(found) => Some((found, trail.how.join(", "))),
        None => without_one(value, path),
    }
}

/// The path with one name left out, where only one such path leads anywhere.
fn without_one<'v>(value: &'v Value, path: &[Part]) -> Option<(Found<'v>, String)> {
    let mut all = path.iter().enumerate().filter_map(|(at, part)| {
        let Part::Key(key) = part else { return None };
        let shorter: Vec<Part> =
            path.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, part)| part.clone()).collect();
        // Something must be left of the path.
        let found = (!shorter.is_empty()).then(|| walk(value, &shorter)).flatten()?;
        Some((found, format!("`{key}` was left out")))
    });
    let only = all.next()?;
    all.next().is_none().then_some(only)
}

pub(super) fn look<'v>(
    value: &'v Value,
    path: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let items = value.as_array().map_or(0, Vec::len);
    if !trail.may_look(1 + items / ITEMS_AT_A_LOOK) {
        return None;
    }
    if let Some(found) = walk(value, path) {
        return Some(found);
    }
    let depth = depth.checked_sub(1)?;
    let (part, rest) = path.split_first()?;
    if let Some(next) = single_step(value, part)
        && let Some(found) = look(next, rest, trail, depth)
    {
        return Some(found);
    }
    if let Value::String(text) = value {
        return in_json_text(text, path, trail, depth);
    }
    let mark = trail.how.len();
    let ways: [Way<'v>; 7] = [
        |value, part, rest, trail, depth| look(similar_key(value, part, trail)?, rest, trail, depth),
        |value, part, rest, trail, depth| without_wrapper(value, part, rest, trail, depth),
        |value, part, rest, trail, _| how_many(value, part, rest, trail),
        |value, part, rest, trail, depth| deeper(value, part, rest, trail, depth),
        |value, part, rest, trail, depth| column(value, part, rest, trail, depth),
        |value, part, rest, trail, depth| inside_result(value, part, rest, trail, depth),
        |value, part, rest, trail, depth| without_name(value, part, rest, trail, depth),
    ];
    ways.into_iter().find_map(|way| {
        trail.how.truncate(mark);
        way(value, part, rest, trail, depth)
    })
}

type Way<'v> = fn(&'v Value, &Part, &[Part], &mut Trail, usize) -> Option<Found<'v>>;

/// One step of the way as it was written.
fn single_step<'v>(value: &'v Value, part: &Part) -> Option<&'v Value> {
    match walk(value, std::slice::from_ref(part))? {
        Found::One(next) => Some(next),
        Found::Many(_) | Found::Made(_) => None,
    }
}

/// Some servers send JSON as a text within JSON.
fn in_json_text<'v>(text: &str, path: &[Part], trail: &mut Trail, depth: usize) -> Option<Found<'v>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return bare(text, path);
    }
    let parsed = trail.json(text)?;
    trail.say("the text was read as JSON");
    look(&parsed, path, trail, depth).map(|found| Found::Made(found.into_value()))
}

/// `$sum.result` where the whole result is one word.
fn bare<'v>(text: &str, path: &[Part]) -> Option<Found<'v>> {
    let only_wrappers = path.iter().all(|part| matches!(part, Part::Key(key) if is_wrapper(key)));
    only_wrappers.then(|| Found::Made(Value::String(text.to_owned())))
}

/// The same name in another spelling: `sheetName` for `sheet_name`.
fn similar_key<'v>(value: &'v Value, part: &Part, trail: &mut Trail) -> Option<&'v Value> {
    let (Part::Key(key), Value::Object(entries)) = (part, value) else { return None };
    let wanted = folded(key);
    let mut same = entries.iter().filter(|(known, _)| folded(known) == wanted);
    let (known, value) = same.next()?;
    if same.next().is_some() {
        return None;
    }
    trail.say(format!("`{}` was taken for `{key}`", short(known)));
    Some(value)
}

/// `$read.result.cells` where the value has `cells` at once.
fn without_wrapper<'v>(
    value: &'v Value,
    part: &Part,
    rest: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let Part::Key(key) = part else { return None };
    if !is_wrapper(key) {
        return None;
    }
    let inner = main_value(value);
    if rest.is_empty() {
        // A record among others has a name; what has none is the value itself.
        let is_plain = !matches!(inner, Value::Object(_)) || is_result_word(key);
        let in_records =
            matches!(key.as_str(), "value" | "text" | "content") && only_list(inner, trail).is_some();
        if !is_plain || in_records {
            return None;
        }
    }
    trail.say(format!("there is no `{key}`, the whole value was taken"));
    look(inner, rest, trail, depth)
}

/// `$read.cells` where the value is a result that has `cells`.
fn inside_result<'v>(
    value: &'v Value,
    part: &Part,
    rest: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let inner = value.as_object()?.get("result")?;
    trail.say("`result` was looked into");
    look(inner, &[std::slice::from_ref(part), rest].concat(), trail, depth)
}

/// `$sales.data[*].value` where nothing is called `data`, but something has items with a `value`.
fn without_name<'v>(
    value: &'v Value,
    part: &Part,
    rest: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let (Part::Key(key), Value::Object(entries)) = (part, value) else { return None };
    if rest.is_empty() || entries.contains_key(key) {
        return None;
    }
    trail.say(format!("there is no `{key}`"));
    look(value, rest, trail, depth)
}

fn is_result_word(key: &str) -> bool {
    matches!(key, "result" | "output" | "response" | "structured" | "structuredContent" | "return")
}

fn how_many<'v>(value: &Value, part: &Part, rest: &[Part], trail: &mut Trail) -> Option<Found<'v>> {
    let Part::Key(key) = part else { return None };
    if !rest.is_empty() || !COUNTS.contains(&key.as_str()) {
        return None;
    }
    let Value::Array(items) = value else { return None };
    trail.say("the items were counted");
    Some(Found::Made(Value::from(items.len())))
}

/// A key that occurs once further inside, outside of lists.
fn deeper<'v>(
    value: &'v Value,
    part: &Part,
    rest: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let (Part::Key(key), Value::Object(entries)) = (part, value) else { return None };
    let mut found = Vec::new();
    occurrences(entries, key, MAX_DEPTH, trail, &mut found);
    let [only] = found.as_slice() else { return None };
    trail.say(format!("`{key}` was found further inside"));
    look(only, rest, trail, depth)
}

fn occurrences<'v>(
    entries: &'v Map<String, Value>,
    key: &str,
    depth: usize,
    trail: &mut Trail,
    found: &mut Vec<&'v Value>,
) {
    for (name, value) in entries {
        if found.len() > 1 || !trail.may_look(1) {
            return;
        }
        if name == key {
            found.push(value);
        } else if let (Value::Object(inner), true) = (value, depth > 0) {
            occurrences(inner, key, depth - 1, trail, found);
        }
    }
}

#[cfg(test)]
#[path = "second_look_tests.rs"]
mod tests;
