//! JSON text that is known to be valid, is kept exactly as it came, and is cheap to clone and to take apart.

mod cursor;
mod grammar;
mod jumps;

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

pub use cursor::{JsonCursor, JsonFault, JsonKind, JsonText};
use jumps::Jumps;

/// A part of a text up to this size shares it whatever its own size: that is what a few small buffers cost.
const SHARED_FREELY: usize = 64 << 10;
/// A part of a larger text shares it only if it is at least this fraction of it. What is kept of a message for long (a
/// tool's definition, one row) so never holds more than eight times its own size; what is most of a message (its
/// result, its structured content) is never copied.
const SHARED_FRACTION: usize = 8;

/// JSON kept as its own text: key order, number spelling and unknown fields survive untouched.
///
/// The text is parsed only when someone asks for it, cloning copies a pointer, and a part of a text can share it.
#[derive(Clone)]
pub struct RawJson {
    whole: SharedText,
    range: Range<usize>,
}

/// A text that several may hold parts of.
#[derive(Clone)]
pub struct SharedText(Arc<Whole>);

enum Whole {
    /// Text as it came; only the parts that a [`JsonCursor`] found in it are known to be JSON.
    /// Once all of it was walked over, it is known where its large values end.
    Text(String, OnceLock<Jumps>),
    /// JSON as a whole, in the form that is written out without being looked at again.
    Json(Box<RawValue>),
}

/// A text that should have been JSON.
#[derive(Debug, thiserror::Error)]
#[error("this is not JSON: {0}")]
pub struct NotJson(#[from] serde_json::Error);

impl RawJson {
    /// Checks that `text` is JSON and keeps it as it is.
    pub fn parse(text: String) -> Result<Self, NotJson> {
        Ok(Self::from_boxed(RawValue::from_string(text)?))
    }

    /// Writes `value` as JSON.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, NotJson> {
        Ok(Self::from_boxed(serde_json::value::to_raw_value(value)?))
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        Self::from_value(&Value::Object(serde_json::Map::new()))
    }

    /// A value as text. A [`Value`] always has a JSON text, so this cannot fail.
    pub fn from_value(value: &Value) -> Self {
        Self::from_boxed(
            RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        )
    }

    /// A part of this JSON, found by a [`JsonCursor`] over [`RawJson::get`]; see [`SharedText::part`].
    pub fn part(&self, part: JsonText<'_>) -> Self {
        self.whole.part(part)
    }

    /// The items of a JSON array, as parts of its text.
    pub fn items(array: String) -> Result<Vec<Self>, JsonFault> {
        let text = SharedText::from(array);
        let mut cursor = JsonCursor::new(text.as_str(), usize::MAX);
        let mut items = Vec::new();
        if !cursor.enter_array()? {
            return Err(JsonFault::NotJson(0));
        }
        while cursor.next_item()? {
            items.push(text.part(cursor.skip()?));
        }
        cursor.end().map(|()| items)
    }

    /// The text itself.
    pub fn get(&self) -> &str {
        // The range was taken from this very text.
        self.whole.as_str().get(self.range.clone()).unwrap_or("null")
    }

    /// The text read as a value. Text nested too deeply to be read becomes `null`.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or(Value::Null)
    }

    /// The text read as a type of your own.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, NotJson> {
        Ok(serde_json::from_str(self.get())?)
    }

    fn from_boxed(json: Box<RawValue>) -> Self {
        let range = 0..json.get().len();
        Self { whole: SharedText(Arc::new(Whole::Json(json))), range }
    }
}

impl SharedText {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        match self.0.as_ref() {
            Whole::Text(text, _) => text,
            Whole::Json(json) => json.get(),
        }
    }

    /// A part of this text as JSON, without copying it, unless that would keep a large text alive for a small part.
    /// A part of another text is copied.
    pub fn part(&self, part: JsonText<'_>) -> RawJson {
        match self.range_of(part.get()) {
            Some(range) if self.is_worth(range.len()) => RawJson { whole: self.clone(), range },
            _ => {
                let copy = part.get().to_owned();
                RawJson { range: 0..copy.len(), whole: Self::from(copy) }
            }
        }
    }

    /// Keeps what a walk over all of this text has found out.
    fn remember(&self, found: Jumps) {
        if let Whole::Text(_, jumps) = self.0.as_ref() {
            // Whoever came first found the same.
            let _ = jumps.set(found);
        }
    }

    fn jumps(&self) -> Option<&Jumps> {
        match self.0.as_ref() {
            Whole::Text(_, jumps) => jumps.get(),
            Whole::Json(_) => None,
        }
    }

    /// Where `part` lies in this text, by its address.
    fn range_of(&self, part: &str) -> Option<Range<usize>> {
        let whole = self.as_str();
        let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        (end <= whole.len()).then_some(start..end)
    }

    /// Whether a part of this many bytes may keep the whole alive.
    fn is_worth(&self, bytes: usize) -> bool {
        let held = match self.0.as_ref() {
            Whole::Text(text, _) => text.capacity(),
            Whole::Json(json) => json.get().len(),
        };
        held <= SHARED_FREELY || bytes >= held / SHARED_FRACTION
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::new(Whole::Text(text, OnceLock::new())))
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedText({} bytes)", self.as_str().len())
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        Self::from_value(&value)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole.0.as_ref() {
            Whole::Json(json) if json.get().len() == self.range.len() => json.serialize(serializer),
            // serde_json believes nobody that a text is JSON and looks at a part once more.
            _ => serde_json::from_str::<&RawValue>(self.get())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_boxed(Box::<RawValue>::deserialize(deserializer)?))
    }
}

#[cfg(test)]
#[path = "raw_json_tests.rs"]
mod tests;
