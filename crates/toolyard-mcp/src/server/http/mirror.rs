//! That headers of the modern era say what the request says: whoever stands between may have looked at either.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::super::{answer::Outcome, asked::Asked, era::mismatch};

static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Checks the headers of a request of the modern era.
pub(super) fn check_headers(headers: &HeaderMap, asked: &Asked) -> Result<(), Outcome> {
    let method = only(headers, &METHOD);
    if method != Some(asked.method.as_str()) {
        return Err(mismatch("Mcp-Method", method, &asked.method));
    }
    let name = match asked.method.as_str() {
        "tools/call" | "prompts/get" => asked.params.name.as_deref(),
        "resources/read" => asked.params.uri.as_deref(),
        _ => None,
    };
    let Some(name) = name else { return Ok(()) };
    let said = only(headers, &NAME).and_then(decoded);
    if said.as_deref() != Some(name) {
        return Err(mismatch("Mcp-Name", said.as_deref(), name));
    }
    if asked.method == "tools/call" { check_parameters(headers, asked, name) } else { Ok(()) }
}

/// Arguments that a tool's schema wants to see in headers.
fn check_parameters(headers: &HeaderMap, asked: &Asked, tool: &str) -> Result<(), Outcome> {
    let written = asked.room.catalogue(&asked.speaker.viewer);
    let mirrored = written.mirrored(tool);
    if mirrored.is_empty() {
        return Ok(());
    }
    let arguments = asked.params.arguments.as_ref().map(toolyard_core::RawJson::to_value).unwrap_or_default();
    for parameter in mirrored {
        let header = format!("Mcp-Param-{}", parameter.header);
        let Ok(name) = HeaderName::try_from(header.as_str()) else { continue };
        let said = only(headers, &name).and_then(decoded);
        let value = parameter.path.iter().try_fold(&arguments, |value, key| value.get(key));
        let is_right = match value {
            None | Some(Value::Null) => headers.get(&name).is_none(),
            Some(value) => said.as_deref().is_some_and(|said| says(said, value)),
        };
        if !is_right {
            let expected = value.map(text_of).unwrap_or_default();
            return Err(mismatch(&header, said.as_deref(), &expected));
        }
    }
    Ok(())
}

/// Whether a header says a value; whole numbers by what they are worth, not by how they are spelt.
fn says(said: &str, value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let worth = |text: &str| text.parse::<f64>().ok();
            said == number.to_string() || (worth(said).is_some() && worth(said) == number.as_f64())
        }
        value => said == text_of(value),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// What a header says, if it is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?;
    if all.next().is_some() {
        return None;
    }
    value.to_str().ok().map(str::trim)
}

/// A value, also where a header could not carry it as it is; none if it is wrapped wrongly.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(Cow::Borrowed(value)),
        Some(wrapped) => String::from_utf8(STANDARD.decode(wrapped).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrapped_values_are_read() {
        assert_eq!(decoded("=?base64?5Lit?=").as_deref(), Some("中"));
        assert_eq!(decoded("=?base64?!?="), None);
        assert_eq!(decoded("=?base64?SGVsbG8").as_deref(), Some("=?base64?SGVsbG8"));
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
    }

    #[test]
    fn numbers_are_compared_by_worth() {
        assert!(says("42.0", &json!(42)) && says("42", &json!(42)) && says("true", &json!(true)));
        assert!(!says("43", &json!(42)) && !says("nan", &json!(42)) && !says("\"a\"", &json!("a")));
    }

    #[test]
    fn a_header_that_is_there_twice_says_nothing() {
        let mut headers = HeaderMap::new();
        headers.append(&METHOD, "tools/call".parse().unwrap());
        assert_eq!(only(&headers, &METHOD), Some("tools/call"));
        headers.append(&METHOD, "tools/list".parse().unwrap());
        assert_eq!(only(&headers, &METHOD), None);
    }
}
