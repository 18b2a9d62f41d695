//! Encodes JSON-RPC messages, each on one line; raw payloads are copied unchanged.

use toolyard_core::{RawJson, text::join_json_lines};

use super::RequestId;
use crate::json::{JsonObject, push_quoted, quoted};

/// A request.
pub fn request(id: u64, method: &str, params: &JsonObject) -> Vec<u8> {
    message_with_params(format!(r#""id":{id},"method":"#), method, params)
}

/// A request whose id is a number or a string.
pub fn request_with_id(id: &RequestId, method: &str, params: &JsonObject) -> Vec<u8> {
    message_with_params(format!(r#""id":{},"method":"#, id.0.get()), method, params)
}

fn message_with_params(mut head: String, method: &str, params: &JsonObject) -> Vec<u8> {
    push_quoted(&mut head, method);
    message(&head, Some(("params", "{", params.fields(), "}")))
}

/// A notification; empty parameters are omitted.
pub fn notification(method: &str, params: &JsonObject) -> Vec<u8> {
    let params = (!params.is_empty()).then_some(("params", "{", params.fields(), "}"));
    message(&format!(r#""method":{}"#, quoted(method)), params)
}

/// A response with a result.
pub fn response(id: &RequestId, result: &RawJson) -> Vec<u8> {
    message(&format!(r#""id":{}"#, id.0.get()), Some(("result", "", result.get(), "")))
}

/// A response with an error.
pub fn error_response(id: &RequestId, code: i64, text: &str) -> Vec<u8> {
    let error_fields = format!(r#""code":{code},"message":{}"#, quoted(text));
    message(&format!(r#""id":{}"#, id.0.get()), Some(("error", "{", &error_fields, "}")))
}

/// A message with one optional field, given as its key and three parts of its JSON, so that the JSON is copied once.
fn message(head: &str, field: Option<(&str, &str, &str, &str)>) -> Vec<u8> {
    let length = field.map_or(0, |(key, _, json, _)| key.len() + json.len());
    let mut text = String::with_capacity(head.len() + length + 32);
    text.push_str(r#"{"jsonrpc":"2.0","#);
    text.push_str(head);
    if let Some((key, before, json, after)) = field {
        for part in [",\"", key, "\":", before, json, after] {
            text.push_str(part);
        }
    }
    text.push('}');
    let mut line = text.into_bytes();
    join_json_lines(&mut line);
    line
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
