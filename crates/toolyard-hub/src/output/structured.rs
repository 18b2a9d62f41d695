//! Truncates structured content while keeping it valid: long strings and lists are shortened.

use serde_json::Value;
use toolyard_core::RawJson;

use crate::execution::validate::Validator;

/// Ends a shortened string.
const TRUNCATION_MARK: char = '…';

/// Structured content in about `limit` characters, valid against the output schema. A client may reject invalid content, so
/// content that cannot be shortened validly stays whole.
pub(crate) fn truncate_structured(structured: &RawJson, limit: usize, schema: &RawJson) -> RawJson {
    if structured.get().len() <= limit {
        return structured.clone();
    }
    let mut value = structured.to_value();
    let mut max_length = limit.max(1);
    while value.to_string().len() > limit && max_length > 1 {
        max_length /= 2;
        shorten(&mut value, max_length);
    }
    let fits = value.to_string().len() <= limit && Validator::compile(schema).accepts(&value);
    if fits { RawJson::from_value(&value) } else { structured.clone() }
}

/// Shortens every string to `max_length` characters and every list to `max_length` items.
fn shorten(value: &mut Value, max_length: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(max_length) {
                text.truncate(end);
                if !text.ends_with(TRUNCATION_MARK) {
                    text.pop();
                    text.push(TRUNCATION_MARK);
                }
            }
        }
        Value::Array(items) => {
            items.truncate(max_length);
            items.iter_mut().for_each(|item| shorten(item, max_length));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, max_length)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn truncate(value: &Value, limit: usize, schema: &Value) -> Value {
        truncate_structured(&RawJson::from_value(value), limit, &RawJson::from_value(schema)).to_value()
    }

    #[test]
    fn texts_and_lists_are_truncated_and_the_structure_stays() {
        let rows: Vec<Value> = (0..1000).map(|at| json!({"row": at, "text": "word ".repeat(50)})).collect();
        let schema = json!({"type": "object", "required": ["rows", "total"], "properties": {
            "rows": {"type": "array", "items": {"type": "object", "required": ["row", "text"]}},
            "total": {"type": "integer"}}});
        let shown = truncate(&json!({"rows": rows, "total": 1000}), 2_000, &schema);
        assert!(shown.to_string().len() <= 2_000 && shown["total"] == 1000, "{shown}");
        assert_eq!(shown["rows"][0]["row"], 0);
        assert!(shown["rows"][0]["text"].as_str().unwrap().ends_with('…'));
    }

    #[test]
    fn a_value_whose_schema_forbids_truncation_stays_whole() {
        let value = json!({"hash": "a".repeat(64)});
        let schema = json!({"properties": {"hash": {"minLength": 64}}});
        assert_eq!(truncate(&value, 20, &schema), value);
    }

    proptest! {
        #[test]
        fn a_value_fits_the_limit_or_stays_whole(texts in prop::collection::vec("\\PC{0,40}", 0..20), limit in 1_usize..400) {
            let value = json!({ "texts": texts });
            let shown = truncate(&value, limit, &json!({"properties": {"texts": {"type": "array"}}}));
            prop_assert!(shown.to_string().len() <= limit || shown == value);
        }
    }
}
