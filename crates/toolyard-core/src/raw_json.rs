//! JSON text that is known to be valid, is kept exactly as it came, and is cheap to clone.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// JSON kept as its own text: key order, number spelling and unknown fields survive untouched.
///
/// The text is parsed only when someone asks for it, and cloning copies a pointer.
#[derive(Clone)]
pub struct RawJson(Arc<RawText>);

/// The boxed text is moved behind the shared pointer as it is; `Arc<RawValue>` would copy it once more.
struct RawText(Box<RawValue>);

/// A text that should have been JSON.
#[derive(Debug, thiserror::Error)]
#[error("this is not JSON: {0}")]
pub struct NotJson(#[from] serde_json::Error);

impl RawJson {
    /// Checks that `text` is JSON and keeps it as it is.
    pub fn parse(text: String) -> Result<Self, NotJson> {
        Ok(Self(Arc::new(RawText(RawValue::from_string(text)?))))
    }

    /// Writes `value` as JSON.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, NotJson> {
        Ok(Self(Arc::new(RawText(serde_json::value::to_raw_value(value)?))))
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        Self::from_value(&Value::Object(serde_json::Map::new()))
    }

    /// A value as text. A [`Value`] always has a JSON text, so this cannot fail.
    pub fn from_value(value: &Value) -> Self {
        let text = RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new(RawText(text)))
    }

    /// The text itself.
    pub fn get(&self) -> &str {
        self.0.0.get()
    }

    /// The text read as a value. Text nested too deeply to be read becomes `null`.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or(Value::Null)
    }

    /// The text read as a type of your own.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, NotJson> {
        Ok(serde_json::from_str(self.get())?)
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
        self.0.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Arc::new(RawText(Box::<RawValue>::deserialize(deserializer)?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_byte_for_byte() {
        let text = r#"{"z":1.0,  "a":1e400,"z":"中文"}"#;
        let raw = RawJson::parse(text.to_owned()).unwrap();
        assert_eq!(raw.get(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn the_empty_object_is_an_object() {
        assert_eq!(RawJson::empty_object().get(), "{}");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        assert!(RawJson::parse("{".to_owned()).is_err());
    }
}
