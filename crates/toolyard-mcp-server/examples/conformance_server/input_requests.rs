//! Input requests of the tools, as the suite expects them.

use serde_json::{Value, json};
use toolyard_core::{CallInputKind, CallInputRequest, RawJson};

/// An input request with its key.
pub(crate) fn input_request(key: &str, kind: CallInputKind, params: &Value) -> CallInputRequest {
    CallInputRequest {
        key: key.to_owned(),
        source: "native".into(),
        kind,
        params: Some(RawJson::from_value(params)),
    }
}

/// A form with one field.
pub(crate) fn form(key: &str, message: &str, field: &str, kind: &str) -> CallInputRequest {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    input_request(key, CallInputKind::Elicitation, &json!({"message": message, "requestedSchema": schema}))
}

/// A sampling request.
pub(crate) fn sampling(key: &str, text: &str, max_tokens: u32) -> CallInputRequest {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    input_request(key, CallInputKind::Sampling, &json!({"messages": [message], "maxTokens": max_tokens}))
}

/// A request for the client's roots.
pub(crate) fn roots() -> CallInputRequest {
    input_request("client_roots", CallInputKind::Roots, &json!({}))
}

/// A form for a name and an email address.
pub(crate) fn person(message: &str) -> CallInputRequest {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        },
        "required": ["username", "email"]
    });
    input_request(
        "person",
        CallInputKind::Elicitation,
        &json!({"message": message, "requestedSchema": schema}),
    )
}

/// A form with every type of value, each with a default.
pub(crate) fn defaults() -> CallInputRequest {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        },
        "required": []
    });
    let params = json!({"message": "Please look at the defaults", "requestedSchema": schema});
    input_request("defaults", CallInputKind::Elicitation, &params)
}

/// A form with every kind of choice.
pub(crate) fn choices() -> CallInputRequest {
    let titled = |word: &str| {
        json!([
            {"const": "value1", "title": format!("First {word}")},
            {"const": "value2", "title": format!("Second {word}")},
            {"const": "value3", "title": format!("Third {word}")}
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}
        },
        "required": []
    });
    input_request(
        "choices",
        CallInputKind::Elicitation,
        &json!({"message": "Please choose", "requestedSchema": schema}),
    )
}
