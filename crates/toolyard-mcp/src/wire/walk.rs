//! Small steps of reading answers leniently: what does not fit is passed over, never a reason to fail.

use toolyard_core::{JsonCursor, JsonFault, JsonText, RawJson};

/// Walks over the fields of an object; `visit` must take the value of each. False if there is no object.
pub(super) fn each_field<'t>(
    cursor: &mut JsonCursor<'t>,
    mut visit: impl FnMut(&str, &mut JsonCursor<'t>) -> Result<(), JsonFault>,
) -> Result<bool, JsonFault> {
    if !cursor.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = cursor.next_key()? {
        visit(&key, cursor)?;
    }
    Ok(true)
}

/// The value of one field of an object, as it stands there. Of several with this key the last one counts, as for every other
/// reader of JSON.
pub(crate) fn field_of(object: &RawJson, key: &str) -> Option<RawJson> {
    let mut found = None;
    // What was read before a fault counts; after it there is nothing anyway.
    let _ = each_field(&mut JsonCursor::of(object), |field, cursor| {
        let value = cursor.skip()?;
        if field == key {
            found = Some(object.part(value));
        }
        Ok(())
    });
    found
}

/// The text of one field of an object; none if something else stands there, or a text of more than `limit` bytes.
pub(crate) fn text_of(object: &RawJson, key: &str, limit: usize) -> Option<String> {
    let value = field_of(object, key)?;
    let text = JsonCursor::of(&value).skip().ok()?.string()?.into_owned();
    (text.len() <= limit).then_some(text)
}

/// A text of at most `limit` bytes; none if something else stands there.
pub(super) fn short_text(cursor: &mut JsonCursor<'_>, limit: usize) -> Result<Option<String>, JsonFault> {
    Ok(cursor.skip()?.string().map(|text| shortened(&text, limit)))
}

/// The beginning of a text, and a mark where it was cut.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// A time or a count, however it is spelt; what is below zero counts as zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it ends at the borders of the integer"
)]
pub(super) fn count(value: JsonText<'_>) -> Option<u64> {
    value.number::<u64>().or_else(|| value.number::<f64>().map(|number| number as u64))
}
