//! Visits the fields of raw JSON objects.

use std::borrow::Cow;

use toolyard_core::{JsonCursor, JsonError, JsonText, RawJson};

/// Calls `visit` for each field of an object. Returns false if `json` is not an object.
pub(crate) fn each_field<'t>(
    json: &'t str,
    mut visit: impl FnMut(&str, JsonText<'t>) -> Result<(), JsonError>,
) -> Result<bool, JsonError> {
    let mut cursor = JsonCursor::new(json, usize::MAX);
    if !cursor.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.next_value()?;
        visit(&key, value)?;
    }
    Ok(true)
}

pub(crate) fn text_field<'t>(json: &'t str, name: &str) -> Option<Cow<'t, str>> {
    let mut found = None;
    each_field(json, |key, value| {
        if key == name {
            found = value.string();
        }
        Ok(())
    })
    .ok()?;
    found
}

pub(crate) fn has_field(object: &RawJson, name: &str) -> bool {
    let search = || -> Result<bool, JsonError> {
        let mut cursor = JsonCursor::of(object);
        if !cursor.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = cursor.next_key()? {
            if key == name {
                return Ok(true);
            }
            cursor.next_value()?;
        }
        Ok(false)
    };
    search().unwrap_or(false)
}
