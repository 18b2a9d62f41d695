//! Takes hidden text out of a definition where that is harmless, and refuses it where it is not.
//!
//! - Names, and keys anywhere: refused. A cleaned name would call something else.
//! - Values of a schema that are more than words (`enum`, `default`, `const`, `pattern`, …): refused, for the same reason.
//! - Words for readers (titles, descriptions, everything outside the schemas): taken out, with a note that says what, how
//!   many and where. What is hidden between terminal escapes becomes visible by that.
//! - Tag characters, overrides of direction, and runs long enough to be a message: refused everywhere. Nobody writes
//!   these by accident, and a server that does is not asked for the rest.
//!
//! What ordinary writing needs (see [`toolyard_core::hidden_places`]) is not hidden text.

use toolyard_core::{HiddenPlace, hidden_places, is_hostile, without_hidden};

use super::{canonical::Reading, text::brief, tree::Tree};

/// Hidden text that cannot be taken out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} holds what people cannot see: {what}")]
pub struct HiddenText {
    /// Where.
    pub place: String,
    /// What, and how many.
    pub what: String,
}

/// Refuses hidden text in a name.
pub(crate) fn check_name(name: &str) -> Result<(), HiddenText> {
    match hidden_places(name) {
        places if places.is_empty() => Ok(()),
        places => Err(HiddenText { place: "its name".to_owned(), what: count(&places) }),
    }
}

/// Takes hidden text out of all words for readers; a note for each place.
pub(crate) fn clean(definition: &mut Tree) -> Result<Vec<String>, HiddenText> {
    if !hides(definition) {
        return Ok(Vec::new());
    }
    let mut cleaner = Cleaner { path: Vec::new(), notes: Vec::new() };
    let Tree::Object(fields) = definition else { return Ok(Vec::new()) };
    for (key, value) in fields {
        let place = match key.as_str() {
            "inputSchema" | "outputSchema" => Place::Schema(Reading::Schema),
            _ => Place::Words,
        };
        cleaner.field(key, value, place)?;
    }
    Ok(cleaner.notes)
}

/// Whether there is anything to take out or refuse; almost never, so this is looked at first.
fn hides(value: &Tree) -> bool {
    match value {
        Tree::Text(text) => !hidden_places(text).is_empty(),
        Tree::List(items) => items.iter().any(hides),
        Tree::Object(fields) => {
            fields.iter().any(|(key, value)| !hidden_places(key).is_empty() || hides(value))
        }
        Tree::Null | Tree::Bool(_) | Tree::Number(_) => false,
    }
}

/// What a value is to its reader.
#[derive(Clone, Copy)]
enum Place {
    /// Words.
    Words,
    /// Part of a schema, read in this way.
    Schema(Reading),
}

struct Cleaner {
    path: Vec<String>,
    notes: Vec<String>,
}

impl Cleaner {
    fn field(&mut self, key: &str, value: &mut Tree, place: Place) -> Result<(), HiddenText> {
        self.path.push(brief(key, 64));
        let hidden = hidden_places(key);
        if !hidden.is_empty() {
            return Err(self.refused("the key ", &hidden));
        }
        self.value(value, place)?;
        self.path.pop();
        Ok(())
    }

    fn value(&mut self, value: &mut Tree, place: Place) -> Result<(), HiddenText> {
        match value {
            Tree::Text(text) => self.text(text, place),
            Tree::List(items) => items.iter_mut().try_for_each(|item| {
                let place = match place {
                    Place::Words => Place::Words,
                    Place::Schema(reading) => Place::Schema(reading.of_items()),
                };
                self.value(item, place)
            }),
            Tree::Object(fields) => fields.iter_mut().try_for_each(|(key, value)| {
                let place = match place {
                    Place::Schema(Reading::Schema) if is_for_readers(key) && value.as_text().is_some() => {
                        Place::Words
                    }
                    Place::Schema(reading) => Place::Schema(reading.of_field(key)),
                    Place::Words => Place::Words,
                };
                self.field(key, value, place)
            }),
            Tree::Null | Tree::Bool(_) | Tree::Number(_) => Ok(()),
        }
    }

    fn text(&mut self, text: &mut String, place: Place) -> Result<(), HiddenText> {
        let (clean, hidden) = without_hidden(text);
        if hidden.is_empty() {
            return Ok(());
        }
        if is_hostile(&hidden) || matches!(place, Place::Schema(_)) {
            return Err(self.refused("", &hidden));
        }
        self.notes.push(format!("taken out of {}: {}", self.path.join("."), count(&hidden)));
        *text = clean.into_owned();
        Ok(())
    }

    fn refused(&self, what: &str, hidden: &[HiddenPlace]) -> HiddenText {
        HiddenText { place: format!("{what}{}", self.path.join(".")), what: count(hidden) }
    }
}

fn is_for_readers(key: &str) -> bool {
    matches!(key, "title" | "description" | "$comment" | "markdownDescription")
}

/// `tag characters (2), zero-width characters (1)`.
fn count(places: &[HiddenPlace]) -> String {
    let mut kinds: Vec<_> = places.iter().map(|place| place.kind).collect();
    kinds.sort_unstable();
    let counts = kinds.chunk_by(PartialEq::eq);
    let words = counts.filter_map(|same| Some(format!("{} ({})", same.first()?, same.len())));
    words.collect::<Vec<_>>().join(", ")
}
