//! What a name means in the only list of a value: a column of a table, in whichever form that is given.

use serde_json::Value;

use super::{
    Part,
    second_look::{MAX_DEPTH, look},
    trail::{Trail, short},
    walk::{Found, walk},
};
use crate::cells::{Cell, SAMPLE};

/// More cells than this are not searched for a heading.
const MAX_CELLS: usize = 5_000;

/// A name of what each record of the only list has, or a place within that list.
pub(super) fn column<'v>(
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
pub(super) fn only_list<'v>(value: &'v Value, trail: &mut Trail) -> Option<(&'v str, &'v Value)> {
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

/// The values below a heading, where a table is given cell by cell.
fn below_heading<'v>(items: &'v [Value], key: &str) -> Option<Vec<Found<'v>>> {
    let wanted = folded(key);
    let wanted = wanted.strip_suffix("column").unwrap_or(&wanted);
    let is_heading = |cell: &Cell<'_>| cell.value.as_str().is_some_and(|value| folded(value) == wanted);
    let heading = items.iter().take(MAX_CELLS).filter_map(Cell::read).find(is_heading)?;
    let below = |cell: &Cell<'_>| cell.column == heading.column && cell.row > heading.row;
    let values = items.iter().filter_map(Cell::read).filter(below).map(|cell| Found::One(cell.value));
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

/// A name without what spellings differ in.
pub(super) fn folded(key: &str) -> String {
    key.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
