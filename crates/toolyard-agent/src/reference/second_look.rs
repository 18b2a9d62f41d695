//! What somebody probably meant whose path leads nowhere: the plan was written before the value was known.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use crate::prompt::fence;

use super::{
    Part,
    walk::{Found, walk},
};

/// Deeper than this nothing is looked for.
const MAX_DEPTH: usize = 6;
/// More cells than this are not searched for a heading.
const MAX_CELLS: usize = 5_000;
/// More values than this are not looked at, all ways together.
const MAX_LOOKS: usize = 50_000;
/// Looking at so many items of a list on the way is one look.
const ITEMS_AT_A_LOOK: usize = 256;
/// More bytes of texts than this are not read as JSON.
const MAX_READ: usize = 32 << 20;
/// Longer names are cut where they are told.
const LONGEST_NAME: usize = 40;
/// Longer notes are cut.
const LONGEST_NOTE: usize = 200;
/// So many records of a list show what is in all of them.
const SAMPLE: usize = 50;
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

/// The way so far, and how much may still be looked at.
struct Trail {
    /// In words, what was done.
    how: Vec<String>,
    looks: usize,
    bytes: usize,
    is_exhausted: bool,
    /// Texts that were read as JSON, by where they lie: several ways lead to the same one.
    read: HashMap<(usize, usize), Option<Arc<Value>>>,
}

impl Default for Trail {
    fn default() -> Self {
        let (how, read) = (Vec::new(), HashMap::new());
        Self { how, looks: MAX_LOOKS, bytes: MAX_READ, is_exhausted: false, read }
    }
}

impl Trail {
    /// Names in it come from servers: whoever decides by it must not take them for our words.
    fn say(&mut self, what: impl Into<String>) {
        self.how.push(fence::escaped(&fence::one_line(&what.into())).chars().take(LONGEST_NOTE).collect());
    }

    /// Whether so much more may be looked at.
    fn may_look(&mut self, looks: usize) -> bool {
        match self.looks.checked_sub(looks) {
            Some(left) => self.looks = left,
            None => self.is_exhausted = true,
        }
        !self.is_exhausted
    }

    /// A text read as JSON, once however many ways lead to it.
    fn json(&mut self, text: &str) -> Option<Arc<Value>> {
        let place = (text.as_ptr().addr(), text.len());
        if let Some(known) = self.read.get(&place) {
            return known.clone();
        }
        let Some(left) = self.bytes.checked_sub(text.len()) else {
            self.is_exhausted = true;
            return None;
        };
        self.bytes = left;
        let read = serde_json::from_str(text).ok().map(Arc::new);
        // What was read is kept until the search is over, so that its texts stay where they are.
        self.read.insert(place, read.clone());
        read
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

fn look<'v>(value: &'v Value, path: &[Part], trail: &mut Trail, depth: usize) -> Option<Found<'v>> {
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

fn folded(key: &str) -> String {
    key.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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

/// A name that a server gave, as it is told to people.
pub(crate) fn short(name: &str) -> String {
    let plain =
        |letter: char| if letter.is_alphanumeric() || "_-.:/".contains(letter) { letter } else { '_' };
    let mut shown: String = name.chars().take(LONGEST_NAME).map(plain).collect();
    if shown.len() < name.len() && name.chars().nth(LONGEST_NAME).is_some() {
        shown.push('…');
    }
    shown
}

/// A name of what each record of the only list has, or a place within that list.
fn column<'v>(
    value: &'v Value,
    part: &Part,
    rest: &[Part],
    trail: &mut Trail,
    depth: usize,
) -> Option<Found<'v>> {
    let (name, list) = only_list(value, trail)?;
    let items = list.as_array()?;
    let named = if name.is_empty() { "the list".to_owned() } else { format!("`{}`", short(name)) };
    let (key, rest) = match (part, rest.split_first()) {
        (Part::Key(key), _) => (key, rest),
        // The list itself, but another name for what is in it.
        (Part::All, Some((Part::Key(key), rest))) => (key, rest),
        // A place in a value that has only one list.
        _ if !value.is_array() => {
            trail.say(format!("{named} was taken"));
            return look(list, &[std::slice::from_ref(part), rest].concat(), trail, depth);
        }
        _ => return None,
    };
    // What follows is about each item, whether it is said or not.
    let rest = if rest.first() == Some(&Part::All) { rest.get(1..).unwrap_or_default() } else { rest };
    if let Some(values) = below_heading(items, key) {
        trail.say(format!("what stands below `{key}` in {named} was taken"));
        return rest.is_empty().then_some(Found::Many(values));
    }
    if let Some(at) = header(items, key) {
        trail.say(format!("the column `{key}` of {named} was taken"));
        return walk(list, &[&[Part::Slice(Some(1), None), Part::All, Part::Index(at)], rest].concat());
    }
    let field = field_of_records(items, key)?;
    trail.say(format!("each `{}` of {named} was taken", short(&field)));
    walk(list, &[&[Part::All, Part::Key(field)], rest].concat())
}

/// The only list in a value, with its name.
fn only_list<'v>(value: &'v Value, trail: &mut Trail) -> Option<(&'v str, &'v Value)> {
    let mut found = Vec::new();
    lists("", value, MAX_DEPTH, trail, &mut found);
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn lists<'v>(
    name: &'v str,
    value: &'v Value,
    depth: usize,
    trail: &mut Trail,
    found: &mut Vec<(&'v str, &'v Value)>,
) {
    if found.len() > 1 || !trail.may_look(1) {
        return;
    }
    match value {
        Value::Array(_) => found.push((name, value)),
        Value::Object(entries) if depth > 0 => {
            for (name, value) in entries {
                lists(name, value, depth - 1, trail, found);
            }
        }
        _ => {}
    }
}

/// The values below a heading, where a table is given cell by cell: `{"row": 1, "column": 2, "value": "Sales"}`.
fn below_heading<'v>(items: &'v [Value], key: &str) -> Option<Vec<Found<'v>>> {
    let wanted = folded(key);
    let wanted = wanted.strip_suffix("column").unwrap_or(&wanted);
    let number = |cell: &Value, name: &str| cell.get(name).and_then(Value::as_i64);
    let is_heading = |cell: &&Value| {
        cell.get("value").and_then(Value::as_str).is_some_and(|value| folded(value) == wanted)
    };
    let heading = items.iter().take(MAX_CELLS).find(is_heading)?;
    let (row, column) = (number(heading, "row")?, number(heading, "column")?);
    let below = |cell: &&Value| {
        number(cell, "column") == Some(column) && number(cell, "row").is_some_and(|at| at > row)
    };
    let values = items.iter().filter(below).filter_map(|cell| cell.get("value")).map(Found::One);
    Some(values.collect::<Vec<_>>()).filter(|values| !values.is_empty())
}

/// Where a column of this name is in rows whose first one holds the names.
fn header(items: &[Value], key: &str) -> Option<i64> {
    let Some(Value::Array(names)) = items.first() else { return None };
    let wanted = folded(key);
    let at = names.iter().position(|name| name.as_str().is_some_and(|name| folded(name) == wanted))?;
    i64::try_from(at).ok()
}

/// The field that records have under this name: the same, in another spelling, or in the singular.
fn field_of_records(items: &[Value], key: &str) -> Option<String> {
    let wanted = folded(key);
    let singular = wanted.strip_suffix('s').map(str::to_owned);
    let records = || items.iter().take(SAMPLE).filter_map(Value::as_object);
    let named = |wanted: &str| {
        records().find_map(|record| record.keys().find(|known| folded(known) == wanted)).cloned()
    };
    named(&wanted).or_else(|| named(singular.as_deref()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> Part {
        Part::Key(name.to_owned())
    }

    #[test]
    fn a_text_is_read_once_however_many_ways_lead_to_it() {
        let text = format!("[{}1]", "1,".repeat(1_000));
        let mut trail = Trail::default();
        let (once, again) = (trail.json(&text).unwrap(), trail.json(&text).unwrap());
        assert!(Arc::ptr_eq(&once, &again));
        assert_eq!(trail.bytes, MAX_READ - text.len());
        let mut trail = Trail { bytes: 10, ..Trail::default() };
        assert!(trail.json(&text).is_none() && trail.is_exhausted);
    }

    #[test]
    fn what_cannot_be_looked_at_whole_has_no_only_part() {
        let mut entries: Map<String, Value> =
            (0..MAX_LOOKS).map(|at| (format!("m{at}"), json!(at))).collect();
        entries.insert("a".to_owned(), json!({"email": "first@example.org"}));
        let small = json!({"a": entries.get("a"), "b": 1});
        assert!(second_look(&small, &[key("email")]).is_some());
        assert!(second_look(&Value::Object(entries), &[key("email")]).is_none());
    }

    #[test]
    fn wrappings_within_wrappings_cost_a_bounded_time() {
        let mut value = json!({"rows": vec![json!({"a": 1}); 20_000], "more": 1});
        for _ in 0..5 {
            value = json!({"result": value.to_string(), "data": value.to_string(), "more": {"x": 1}});
            if value.to_string().len() > 8 << 20 {
                break;
            }
        }
        let path = ["result", "data", "output", "nothing", "of", "this"].map(key);
        assert!(second_look(&value, &path).is_none());
    }
}
