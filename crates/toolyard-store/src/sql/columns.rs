//! Conversions between Rust values and text columns.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{ContentHash, DataOwner, RawJson};

use crate::error::StoreError;

/// An enum as the text serde gives it.
pub(crate) fn enum_to_text(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// An enum from its text.
pub(crate) fn enum_from_text<T: DeserializeOwned>(text: String) -> Result<T, StoreError> {
    serde_json::from_value(Value::from(text)).map_err(StoreError::corrupt)
}

pub(crate) fn json_from_text(text: String) -> Result<RawJson, StoreError> {
    RawJson::parse(text).map_err(StoreError::corrupt)
}

pub(crate) fn read_enum<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    enum_from_text(row.try_get(column)?)
}

pub(crate) fn read_hash(row: &AnyRow, column: &str) -> Result<ContentHash, StoreError> {
    row.try_get::<String, _>(column)?.parse().map_err(StoreError::corrupt)
}

pub(crate) fn read_optional_hash(row: &AnyRow, column: &str) -> Result<Option<ContentHash>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    text.map(|text| text.parse().map_err(StoreError::corrupt)).transpose()
}

/// Reads the column `owner`.
pub(crate) fn read_owner(row: &AnyRow) -> Result<DataOwner, StoreError> {
    DataOwner::from_text(&row.try_get::<String, _>("owner")?).map_err(StoreError::corrupt)
}

/// Reads a text column as an id type.
pub(crate) fn read_id<T: From<String>>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    Ok(T::from(row.try_get::<String, _>(column)?))
}

/// Reads a flag, stored as 0 or 1.
pub(crate) fn read_flag(row: &AnyRow, column: &str) -> Result<bool, StoreError> {
    Ok(row.try_get::<i64, _>(column)? != 0)
}
