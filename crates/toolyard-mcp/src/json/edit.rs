//! Changes single fields of a JSON object and copies the others unchanged.

use toolyard_core::{JsonCursor, RawJson};

use super::{JsonObject, fields::each_field};

/// What happens to a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldEdit {
    /// The field stays unchanged.
    Keep,
    /// The field is removed.
    Remove,
    /// The field gets this string.
    Text(String),
    /// The field gets this JSON.
    Raw(RawJson),
}

/// Copies an object, applying `edit` to each field. Anything but an object becomes an empty object.
pub fn edit_fields(object: &RawJson, mut edit: impl FnMut(&str, &RawJson) -> FieldEdit) -> JsonObject {
    let mut edited = JsonObject::new();
    // An error (not an object, or invalid JSON in an unchecked `RawJson`) ends the copy; the fields before it are kept.
    let _ = each_field(&mut JsonCursor::of(object), |key, cursor| {
        let value = object.part(cursor.next_value()?);
        let so_far = std::mem::take(&mut edited);
        edited = match edit(key, &value) {
            FieldEdit::Keep => so_far.with_raw(key, &value),
            FieldEdit::Remove => so_far,
            FieldEdit::Text(text) => so_far.with_text(key, &text),
            FieldEdit::Raw(raw) => so_far.with_raw(key, &raw),
        };
        Ok(())
    });
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_fields_change_and_the_others_stay() {
        let object = RawJson::parse(r#"{"a": 1.50, "name":"x", "_meta":{}, "b":{"name":"x"}}"#.to_owned());
        let changed = edit_fields(&object.unwrap(), |key, _| match key {
            "name" => FieldEdit::Text("y\"".to_owned()),
            "_meta" => FieldEdit::Remove,
            _ => FieldEdit::Keep,
        });
        assert_eq!(changed.to_string(), r#"{"a":1.50,"name":"y\"","b":{"name":"x"}}"#);
        assert!(edit_fields(&serde_json::json!([1]).into(), |_, _| FieldEdit::Keep).is_empty());
    }
}
