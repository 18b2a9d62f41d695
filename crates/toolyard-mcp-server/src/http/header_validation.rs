//! Checks that the headers of a modern request match its body: proxies may have checked either.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::dispatch::{incoming_request::IncomingRequest, outcome::Outcome, revision::header_mismatch};

static METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
static NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// Checks `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` of a modern request.
pub(crate) fn validate_headers(headers: &HeaderMap, incoming: &IncomingRequest) -> Result<(), Outcome> {
    let method = single_header(headers, &METHOD_HEADER);
    if method != Some(incoming.method.as_str()) {
        return Err(header_mismatch("Mcp-Method", method, &incoming.method));
    }
    let name = match incoming.method.as_str() {
        "tools/call" | "prompts/get" => incoming.params.name.as_deref(),
        "resources/read" => incoming.params.uri.as_deref(),
        _ => None,
    };
    let Some(name) = name else { return Ok(()) };
    let header_value = single_header(headers, &NAME_HEADER).and_then(decode_header);
    if header_value.as_deref() != Some(name) {
        return Err(header_mismatch("Mcp-Name", header_value.as_deref(), name));
    }
    if incoming.method == "tools/call" {
        validate_mirrored_parameters(headers, incoming, name)
    } else {
        Ok(())
    }
}

/// Checks the arguments that a tool's schema mirrors in headers.
fn validate_mirrored_parameters(
    headers: &HeaderMap,
    incoming: &IncomingRequest,
    tool: &str,
) -> Result<(), Outcome> {
    let catalogue = incoming.endpoint.catalogue(&incoming.client_info());
    let parameters = catalogue.mirrored_parameters(tool);
    if parameters.is_empty() {
        return Ok(());
    }
    let arguments =
        incoming.params.arguments.as_ref().map(toolyard_core::RawJson::to_value).unwrap_or_default();
    for parameter in parameters {
        let header = format!("Mcp-Param-{}", parameter.header);
        let Ok(name) = HeaderName::try_from(header.as_str()) else { continue };
        let header_value = single_header(headers, &name).and_then(decode_header);
        let value = parameter.path.iter().try_fold(&arguments, |value, key| value.get(key));
        let is_match = match value {
            None | Some(Value::Null) => headers.get(&name).is_none(),
            Some(value) => {
                header_value.as_deref().is_some_and(|header_value| matches_value(header_value, value))
            }
        };
        if !is_match {
            let expected = value.map(value_text).unwrap_or_default();
            return Err(header_mismatch(&header, header_value.as_deref(), &expected));
        }
    }
    Ok(())
}

/// Whether a header has a value; numbers compare by value.
fn matches_value(header_value: &str, value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let parse_number = |text: &str| text.parse::<f64>().ok();
            header_value == number.to_string()
                || (parse_number(header_value).is_some() && parse_number(header_value) == number.as_f64())
        }
        value => header_value == value_text(value),
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The value of a header that occurs once.
fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?;
    if all.next().is_some() {
        return None;
    }
    value.to_str().ok().map(str::trim)
}

/// Decodes a value, which may be wrapped in base64; none if the wrapping is invalid.
fn decode_header(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_values_are_decoded() {
        assert_eq!(decode_header("=?base64?5Lit?=").as_deref(), Some("中"));
        assert_eq!(decode_header("=?base64?!?="), None);
        assert_eq!(decode_header("=?base64?SGVsbG8").as_deref(), Some("=?base64?SGVsbG8"));
        assert_eq!(decode_header("plain").as_deref(), Some("plain"));
    }

    #[test]
    fn numbers_compare_by_value() {
        assert!(
            matches_value("42.0", &json!(42))
                && matches_value("42", &json!(42))
                && matches_value("true", &json!(true))
        );
        assert!(
            !matches_value("43", &json!(42))
                && !matches_value("nan", &json!(42))
                && !matches_value("\"a\"", &json!("a"))
        );
    }

    #[test]
    fn a_repeated_header_has_no_value() {
        let mut headers = HeaderMap::new();
        headers.append(&METHOD_HEADER, "tools/call".parse().unwrap());
        assert_eq!(single_header(&headers, &METHOD_HEADER), Some("tools/call"));
        headers.append(&METHOD_HEADER, "tools/list".parse().unwrap());
        assert_eq!(single_header(&headers, &METHOD_HEADER), None);
    }
}
