//! The request body for an OpenAI-compatible server, in the dialect that it supports.

use serde_json::{Map, Value, json};

use crate::{ModelMessage, ModelRequest, ModelServerConfig, Role, tool_call_parser::parse_arguments};

/// What a server was found not to support. Requests assume first that it supports everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub without_stream_options: bool,
    /// `max_tokens` is called `max_completion_tokens`.
    pub with_max_completion_tokens: bool,
    pub without_temperature: bool,
    /// Strict mode rejects some schemas.
    pub without_strict: bool,
}

impl Dialect {
    /// The dialect to use after the server rejected `body`, or `None` if no known difference explains the message.
    pub(super) fn adapt(self, message: &str, body: &Value) -> Option<Self> {
        let message = message.to_ascii_lowercase();
        let blames = |field: &str, word: &str| body.get(field).is_some() && message.contains(word);
        let mut adapted = self;
        if blames("stream_options", "stream_options") || blames("stream_options", "include_usage") {
            adapted.without_stream_options = true;
        } else if blames("max_tokens", "max_completion_tokens") {
            adapted.with_max_completion_tokens = true;
        } else if blames("temperature", "temperature") {
            adapted.without_temperature = true;
        } else if blames("response_format", "strict")
            || blames("response_format", "additionalproperties")
            || blames("response_format", "invalid schema")
        {
            adapted.without_strict = true;
        }
        (adapted != self).then_some(adapted)
    }
}

pub(super) fn request_body(config: &ModelServerConfig, request: &ModelRequest, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    body.insert("messages".into(), request.messages.iter().map(message_json).collect());
    body.insert("stream".into(), true.into());
    if !dialect.without_stream_options {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if let Some(max_tokens) = request.max_tokens.or(config.max_tokens) {
        let field = if dialect.with_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.insert(field.into(), max_tokens.into());
    }
    if let Some(temperature) = request.temperature.filter(|_| !dialect.without_temperature) {
        // Through its decimal form, so that 0.2 stays 0.2 as an f64.
        let temperature: f64 = temperature.to_string().parse().unwrap_or_default();
        body.insert("temperature".into(), temperature.into());
    }
    if !request.stop.is_empty() {
        body.insert("stop".into(), request.stop.clone().into());
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool_json).collect());
    }
    if let Some(response_schema) = &request.schema {
        let (name, schema) = (schema_name(&response_schema.name), response_schema.schema.to_value());
        let strict = !dialect.without_strict;
        let schema = json!({"name": name, "schema": schema, "strict": strict});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": schema}));
    }
    config.add_extra_fields(&mut body);
    Value::Object(body)
}

fn message_json(message: &ModelMessage) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut fields = Map::new();
    fields.insert("role".into(), role.into());
    // Never `null`: the chat templates of some servers print it.
    fields.insert("content".into(), message.text.clone().into());
    if !message.calls.is_empty() {
        let calls = message.calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": json_arguments(&call.arguments)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        fields.insert("tool_calls".into(), calls.collect());
    }
    if let Some(id) = &message.call_id {
        fields.insert("tool_call_id".into(), id.clone().into());
    }
    Value::Object(fields)
}

/// Makes valid JSON of the arguments that a model wrote. Servers whose chat template parses them would otherwise reject the
/// whole conversation.
fn json_arguments(text: &str) -> String {
    if serde_json::from_str::<Map<String, Value>>(text).is_ok() {
        return text.to_owned();
    }
    parse_arguments(text).map_or_else(|| "{}".to_owned(), |arguments| Value::Object(arguments).to_string())
}

fn tool_json(tool: &crate::ModelTool) -> Value {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters.to_value(),
    });
    json!({"type": "function", "function": function})
}

/// A name that servers accept: at most 64 letters, digits, `_` and `-`.
fn schema_name(name: &str) -> String {
    let replace = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(64).map(replace).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
