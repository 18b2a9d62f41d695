//! Names of MCP headers, and the values that requests repeat in them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderName;
use serde_json::Value;
use toolyard_core::RawJson;
use toolyard_mcp::definition::MirroredParameter;

pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Repeats the JSON-RPC method of a modern request.
pub(crate) const METHOD_HEADER: &str = "Mcp-Method";
/// Repeats the name of the tool or prompt, or the URI of the resource, that a modern request is about.
pub(crate) const NAME_HEADER: &str = "Mcp-Name";

/// The headers that repeat arguments of one call. Only strings, booleans and numbers have one.
pub(crate) fn mirrored_headers(
    parameters: &[MirroredParameter],
    arguments: &RawJson,
) -> Vec<(String, String)> {
    if parameters.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.to_value();
    let header = |parameter: &MirroredParameter| {
        let argument = parameter.path.iter().try_fold(&arguments, |value, key| value.get(key))?;
        let text = match argument {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => argument.to_string(),
            _ => return None,
        };
        Some((format!("Mcp-Param-{}", parameter.header), encode_value(&text)))
    };
    parameters.iter().filter_map(header).collect()
}

/// A text as a header value: unchanged where that is possible, otherwise Base64.
pub(crate) fn encode_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !looks_encoded { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_mcp::definition::mirrored_parameters;

    use super::*;

    #[test]
    fn only_marked_arguments_are_mirrored() {
        let schema = RawJson::from(json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"zone": {"type": "integer", "x-mcp-header": "Zone"}}},
            "secret": {"type": "string"},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
        }}));
        let arguments = RawJson::from(json!({"region": "eu west", "where": {"zone": 3}, "secret": "x"}));
        assert_eq!(
            mirrored_headers(&mirrored_parameters(&schema).unwrap(), &arguments),
            [
                ("Mcp-Param-Region".to_owned(), "eu west".to_owned()),
                ("Mcp-Param-Zone".to_owned(), "3".to_owned())
            ]
        );
    }

    #[test]
    fn values_that_a_header_cannot_carry_are_encoded() {
        assert_eq!(encode_value("plain"), "plain");
        assert_eq!(encode_value(" led by a space"), "=?base64?IGxlZCBieSBhIHNwYWNl?=");
        assert_eq!(encode_value("中"), "=?base64?5Lit?=");
        assert_eq!(encode_value("line\nbreak"), "=?base64?bGluZQpicmVhaw==?=");
        assert_eq!(encode_value("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
