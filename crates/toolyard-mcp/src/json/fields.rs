//! Lenient access to the fields of JSON objects: values of the wrong type count as absent.

use toolyard_core::{JsonCursor, JsonError, RawJson};

/// Calls `visit` for each field of an object; `visit` must consume the value. Returns false if there is no object.
pub(crate) fn each_field<'t>(
    cursor: &mut JsonCursor<'t>,
    mut visit: impl FnMut(&str, &mut JsonCursor<'t>) -> Result<(), JsonError>,
) -> Result<bool, JsonError> {
    if !cursor.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = cursor.next_key()? {
        visit(&key, cursor)?;
    }
    Ok(true)
}

/// As [`each_field`], but consumes a value that is not an object.
pub(crate) fn each_field_or_skip<'t>(
    cursor: &mut JsonCursor<'t>,
    visit: impl FnMut(&str, &mut JsonCursor<'t>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    if each_field(cursor, visit)? { Ok(()) } else { cursor.next_value().map(drop) }
}

/// The value of a field. If a key occurs several times, the last one counts, as in other JSON parsers.
pub fn raw_field(object: &RawJson, key: &str) -> Option<RawJson> {
    let mut found = None;
    // Fields before a syntax error count.
    let _ = each_field(&mut JsonCursor::of(object), |field, cursor| {
        let value = cursor.next_value()?;
        if field == key {
            found = Some(object.part(value));
        }
        Ok(())
    });
    found
}

/// The string in a field; none for other types and for strings longer than `limit` bytes.
pub fn text_field(object: &RawJson, key: &str, limit: usize) -> Option<String> {
    let value = raw_field(object, key)?;
    let text = JsonCursor::of(&value).next_value().ok()?.string()?.into_owned();
    (text.len() <= limit).then_some(text)
}

/// A string, truncated to `limit` bytes; none for other types.
pub(crate) fn truncated_text(cursor: &mut JsonCursor<'_>, limit: usize) -> Result<Option<String>, JsonError> {
    Ok(cursor.next_value()?.string().map(|text| truncate(&text, limit)))
}

/// The first `limit` bytes of a text, with an ellipsis if truncated.
pub(crate) fn truncate(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}
