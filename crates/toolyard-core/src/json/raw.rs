//! JSON text that is known to be valid, stays exactly as it came, and is cheap to clone and to split.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::{skip_index::SkipIndex, value::JsonText};

/// Parts of a text up to this size always share it.
const MAX_FREELY_SHARED_BYTES: usize = 64 << 10;
/// A part of a larger text shares it only if it is at least this fraction of it. A part that lives long (a tool's
/// definition, one row) therefore never keeps more than eight times its own size alive, and a part that is most of a
/// message (its result, its structured content) is never copied.
const MIN_SHARED_FRACTION: usize = 8;

/// JSON kept as text: key order, number spelling and unknown fields survive.
///
/// The text is parsed only on demand, cloning copies a pointer, and a part shares the text it was taken from.
#[derive(Clone)]
pub struct RawJson {
    pub(super) text: SharedText,
    pub(super) range: Range<usize>,
}

/// Text that several [`RawJson`] values are parts of.
#[derive(Clone)]
pub struct SharedText(Arc<Buffer>);

enum Buffer {
    /// Text as it came; only the parts that a [`crate::JsonCursor`] has scanned are known to be JSON. The index is set once a
    /// cursor has read the whole text.
    Text(String, OnceLock<SkipIndex>),
    /// Valid JSON as a whole, in the form that serde_json writes without validating it again.
    Json(Box<RawValue>),
}

/// A text is not JSON, or not JSON of the expected form.
///
/// Remedy: correct the JSON at the place that the message names, for example with `jq . FILE`.
#[derive(Debug, thiserror::Error)]
#[error("invalid JSON: {0}")]
pub struct InvalidJson(#[from] serde_json::Error);

impl RawJson {
    /// Validates `text` and keeps it unchanged.
    pub fn parse(text: String) -> Result<Self, InvalidJson> {
        Ok(Self::from_boxed(RawValue::from_string(text)?))
    }

    /// Serializes `value`.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, InvalidJson> {
        Ok(Self::from_boxed(serde_json::value::to_raw_value(value)?))
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        Self::from_value(&Value::Object(serde_json::Map::new()))
    }

    /// The text of a value. Cannot fail: every [`Value`] has one.
    pub fn from_value(value: &Value) -> Self {
        Self::from_boxed(
            RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        )
    }

    /// A part of this JSON that a [`crate::JsonCursor`] over [`RawJson::get`] has scanned; see [`SharedText::part`].
    pub fn part(&self, part: JsonText<'_>) -> Self {
        self.text.part(part)
    }

    /// The text itself.
    pub fn get(&self) -> &str {
        // The range lies within the text and on character boundaries by construction.
        self.text.as_str().get(self.range.clone()).unwrap_or("null")
    }

    /// The text parsed as a value. Text nested too deeply for serde_json becomes `null`.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or(Value::Null)
    }

    /// The text deserialized as `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, InvalidJson> {
        Ok(serde_json::from_str(self.get())?)
    }

    fn from_boxed(json: Box<RawValue>) -> Self {
        let range = 0..json.get().len();
        Self { text: SharedText(Arc::new(Buffer::Json(json))), range }
    }
}

impl SharedText {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        match self.0.as_ref() {
            Buffer::Text(text, _) => text,
            Buffer::Json(json) => json.get(),
        }
    }

    /// A part of this text as JSON. Shares the text unless that would keep a large text alive for a small part. A part of
    /// another text is copied.
    pub fn part(&self, part: JsonText<'_>) -> RawJson {
        match self.range_of(part.get()) {
            Some(range) if self.may_share(range.len()) => RawJson { text: self.clone(), range },
            _ => {
                let copy = part.get().to_owned();
                RawJson { range: 0..copy.len(), text: Self::from(copy) }
            }
        }
    }

    /// These parts as JSON, like [`Self::part`]. Neighbours that may not share this text are copied into texts that they share
    /// with each other, because a text of its own for each would cost more than its bytes.
    pub(super) fn parts(&self, items: &[JsonText<'_>]) -> Vec<RawJson> {
        let mut parts = Vec::with_capacity(items.len());
        let mut rest = items;
        while let Some((first, others)) = rest.split_first() {
            if self.may_share(first.get().len()) {
                parts.push(self.part(*first));
                rest = others;
                continue;
            }
            let mut bytes = first.get().len();
            let fits = |item: &&JsonText<'_>| {
                bytes += item.get().len();
                bytes <= MAX_FREELY_SHARED_BYTES && !self.may_share(item.get().len())
            };
            let count = 1 + others.iter().take_while(fits).count();
            let (group, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            // Of the exact size, because the size of a text decides whether parts may share it.
            let mut copy = String::with_capacity(group.iter().map(|item| item.get().len()).sum());
            group.iter().for_each(|item| copy.push_str(item.get()));
            let copy = Self::from(copy);
            let mut start = 0;
            for item in group {
                let range = start..start + item.get().len();
                start = range.end;
                parts.push(RawJson { text: copy.clone(), range });
            }
            rest = after;
        }
        parts
    }

    pub(super) fn set_skip_index(&self, index: SkipIndex) {
        if let Buffer::Text(_, slot) = self.0.as_ref() {
            // Every cursor records the same index, so the first one stays.
            let _ = slot.set(index);
        }
    }

    pub(super) fn skip_index(&self) -> Option<&SkipIndex> {
        match self.0.as_ref() {
            Buffer::Text(_, index) => index.get(),
            Buffer::Json(_) => None,
        }
    }

    /// The position of `part` in this text, by its address.
    fn range_of(&self, part: &str) -> Option<Range<usize>> {
        let whole = self.as_str();
        let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let end = start.checked_add(part.len())?;
        (end <= whole.len()).then_some(start..end)
    }

    /// Whether a part of this many bytes may keep the whole text alive.
    fn may_share(&self, bytes: usize) -> bool {
        let held = match self.0.as_ref() {
            Buffer::Text(text, _) => text.capacity(),
            Buffer::Json(json) => json.get().len(),
        };
        held <= MAX_FREELY_SHARED_BYTES || bytes >= held / MIN_SHARED_FRACTION
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::new(Buffer::Text(text, OnceLock::new())))
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

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text.0.as_ref() {
            Buffer::Json(json) if json.get().len() == self.range.len() => json.serialize(serializer),
            // serde_json has no unchecked constructor for a raw value, so a part is validated again.
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
