//! What is sent to an OpenAI-compatible server for a request, in the dialect it understands.

use serde_json::{Map, Value, json};

use super::config::OpenAiConfig;
use crate::{ModelMessage, ModelRequest, Role, tool_call_tag};

/// What a server was found not to understand. Everything is tried in its modern form first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// It must not be asked for usage within the stream.
    pub without_stream_options: bool,
    /// It wants `max_completion_tokens` in place of `max_tokens`.
    pub max_completion_tokens: bool,
    /// It has one temperature only.
    pub without_temperature: bool,
    /// Its strict mode takes fewer schemas than there are.
    pub without_strict: bool,
}

impl Dialect {
    /// What to leave out after this refusal; none if nothing we could leave out was to blame.
    pub(super) fn after(self, refusal: &str, body: &Value) -> Option<Self> {
        let refusal = refusal.to_ascii_lowercase();
        let blames = |field: &str, word: &str| body.get(field).is_some() && refusal.contains(word);
        let mut next = self;
        if blames("stream_options", "stream_options") || blames("stream_options", "include_usage") {
            next.without_stream_options = true;
        } else if blames("max_tokens", "max_completion_tokens") {
            next.max_completion_tokens = true;
        } else if blames("temperature", "temperature") {
            next.without_temperature = true;
        } else if blames("response_format", "strict")
            || blames("response_format", "additionalproperties")
            || blames("response_format", "invalid schema")
        {
            next.without_strict = true;
        }
        (next != self).then_some(next)
    }
}

/// The body of a request.
pub(super) fn body(config: &OpenAiConfig, request: &ModelRequest, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    body.insert("messages".into(), request.messages.iter().map(message).collect());
    body.insert("stream".into(), true.into());
    if !dialect.without_stream_options {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if let Some(most) = request.max_tokens.or(config.max_tokens) {
        let field = if dialect.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.insert(field.into(), most.into());
    }
    if let Some(temperature) = request.temperature.filter(|_| !dialect.without_temperature) {
        // As it is written, not as the nearest number of twice the size: 0.2 stays 0.2.
        let temperature: f64 = temperature.to_string().parse().unwrap_or_default();
        body.insert("temperature".into(), temperature.into());
    }
    if !request.stop.is_empty() {
        body.insert("stop".into(), request.stop.clone().into());
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if let Some(wanted) = &request.schema {
        let (name, schema) = (field_name(&wanted.name), wanted.schema.to_value());
        let strict = !dialect.without_strict;
        let schema = json!({"name": name, "schema": schema, "strict": strict});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": schema}));
    }
    for (field, value) in &config.extra {
        if value.is_null() {
            body.remove(field);
        } else {
            body.insert(field.clone(), value.clone());
        }
    }
    Value::Object(body)
}

fn message(message: &ModelMessage) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut fields = Map::new();
    fields.insert("role".into(), role.into());
    // Never `null`: templates of some servers write it out as a word.
    fields.insert("content".into(), message.text.clone().into());
    if !message.calls.is_empty() {
        let calls = message.calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": arguments(&call.arguments)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        fields.insert("tool_calls".into(), calls.collect());
    }
    if let Some(id) = &message.call_id {
        fields.insert("tool_call_id".into(), id.clone().into());
    }
    Value::Object(fields)
}

/// Arguments as a model once wrote them, made JSON: a server that puts them into a template fails on anything else, and
/// with it the whole conversation.
fn arguments(text: &str) -> String {
    if serde_json::from_str::<Map<String, Value>>(text).is_ok() {
        return text.to_owned();
    }
    tool_call_tag::read_arguments(text)
        .map_or_else(|| "{}".to_owned(), |arguments| Value::Object(arguments).to_string())
}

fn tool(tool: &crate::ToolDefinition) -> Value {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters.to_value(),
    });
    json!({"type": "function", "function": function})
}

/// A name as servers want it: letters, digits, `_` and `-`, 64 at most.
fn field_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(64).map(fits).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
