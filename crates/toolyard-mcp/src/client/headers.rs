//! The values that the modern era repeats in HTTP headers: names, and arguments that a schema marks for it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use toolyard_core::RawJson;

use crate::definition::MirroredParameter;

/// The headers for one call. An argument that is absent or null has none.
pub(super) fn header_values(wanted: &[MirroredParameter], arguments: &RawJson) -> Vec<(String, String)> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.to_value();
    let of = |wanted: &MirroredParameter| {
        let found = wanted.path.iter().try_fold(&arguments, |value, key| value.get(key))?;
        let text = match found {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => found.to_string(),
            _ => return None,
        };
        Some((format!("Mcp-Param-{}", wanted.header), value(&text)))
    };
    wanted.iter().filter_map(of).collect()
}

/// A text as a header's value: as it is where that is possible, otherwise wrapped.
pub(super) fn value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    let wrapped = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !wrapped { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_are_repeated_and_others_are_not() {
        let schema = RawJson::from(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"zone": {"type": "integer", "x-mcp-header": "Zone"}}},
            "secret": {"type": "string"},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
        }}));
        let arguments = RawJson::from(json!({"region": "eu west", "where": {"zone": 3}, "secret": "x"}));
        assert_eq!(
            header_values(&crate::definition::mirrored_parameters(&schema).unwrap(), &arguments),
            [
                ("Mcp-Param-Region".to_owned(), "eu west".to_owned()),
                ("Mcp-Param-Zone".to_owned(), "3".to_owned())
            ]
        );
    }

    #[test]
    fn what_a_header_cannot_carry_is_wrapped() {
        assert_eq!(value("plain"), "plain");
        assert_eq!(value(" led by a space"), "=?base64?IGxlZCBieSBhIHNwYWNl?=");
        assert_eq!(value("中"), "=?base64?5Lit?=");
        assert_eq!(value("line\nbreak"), "=?base64?bGluZQpicmVhaw==?=");
        assert_eq!(value("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
