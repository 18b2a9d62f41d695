//! What the tools ask, in the words of the suite.

use serde_json::{Value, json};
use toolyard_core::{CallQuestion, RawJson};

/// A question under a key.
pub(crate) fn question(key: &str, method: &str, params: &Value) -> CallQuestion {
    CallQuestion {
        key: key.to_owned(),
        source: "native".into(),
        method: method.to_owned(),
        params: Some(RawJson::from_value(params)),
    }
}

/// A form of one field.
pub(crate) fn form(key: &str, message: &str, field: &str, kind: &str) -> CallQuestion {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    question(key, "elicitation/create", &json!({"message": message, "requestedSchema": schema}))
}

/// A question to a language model.
pub(crate) fn prompt(key: &str, text: &str, tokens: u32) -> CallQuestion {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    question(key, "sampling/createMessage", &json!({"messages": [message], "maxTokens": tokens}))
}

/// The question for the client's roots.
pub(crate) fn roots() -> CallQuestion {
    question("client_roots", "roots/list", &json!({}))
}

/// A name and an address.
pub(crate) fn person(message: &str) -> CallQuestion {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        },
        "required": ["username", "email"]
    });
    question("person", "elicitation/create", &json!({"message": message, "requestedSchema": schema}))
}

/// Every kind of value, each with a default.
pub(crate) fn defaults() -> CallQuestion {
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
    question("defaults", "elicitation/create", &params)
}

/// Every kind of choice.
pub(crate) fn choices() -> CallQuestion {
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
    question("choices", "elicitation/create", &json!({"message": "Please choose", "requestedSchema": schema}))
}
