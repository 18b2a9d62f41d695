//! Changes single fields of an object and leaves the others as they stand.

use toolyard_core::{JsonCursor, RawJson};

use super::{JsonObject, walk::each_field};

/// What becomes of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edit {
    /// It stays.
    Keep,
    /// It is left out.
    Leave,
    /// It holds this text from now on.
    Text(String),
    /// It holds this from now on.
    Raw(RawJson),
}

/// The object with each field as `edit` wants it. What is no object becomes an empty one.
pub(crate) fn edited(object: &RawJson, mut edit: impl FnMut(&str, &RawJson) -> Edit) -> JsonObject {
    let mut written = JsonObject::new();
    // What was read before a fault counts; after it there is nothing anyway.
    let _ = each_field(&mut JsonCursor::of(object), |key, cursor| {
        let value = object.part(cursor.skip()?);
        let so_far = std::mem::take(&mut written);
        written = match edit(key, &value) {
            Edit::Keep => so_far.with_raw(key, &value),
            Edit::Leave => so_far,
            Edit::Text(text) => so_far.with_text(key, &text),
            Edit::Raw(raw) => so_far.with_raw(key, &raw),
        };
        Ok(())
    });
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_fields_change_and_the_others_stay_as_they_are() {
        let object = RawJson::parse(r#"{"a": 1.50, "name":"x", "_meta":{}, "b":{"name":"x"}}"#.to_owned());
        let changed = edited(&object.unwrap(), |key, _| match key {
            "name" => Edit::Text("y\"".to_owned()),
            "_meta" => Edit::Leave,
            _ => Edit::Keep,
        });
        assert_eq!(changed.to_string(), r#"{"a":1.50,"name":"y\"","b":{"name":"x"}}"#);
        assert!(edited(&serde_json::json!([1]).into(), |_, _| Edit::Keep).is_empty());
    }
}
