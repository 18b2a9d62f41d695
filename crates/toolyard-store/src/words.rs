//! The stored form of words: enums as the text that serde gives them.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::StoreError;

/// The stored form of a word.
pub(crate) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A word from its stored form.
pub(crate) fn read_word<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_value(Value::from(text)).map_err(|error| StoreError::Corrupt(error.to_string()))
}
