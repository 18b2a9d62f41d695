//! The request body of the Messages API.

use serde_json::{Map, Value, json};

use super::REPLY_TOOL;
use crate::{
    ModelMessage, ModelRequest, ModelServerConfig, ModelTool, Role, tool_call_parser::parse_arguments,
};

/// The API requires a limit.
const DEFAULT_MAX_TOKENS: u32 = 8_192;
/// The limit of a request is not lower, because the reasoning before a reply counts, too.
const MIN_MAX_TOKENS: u32 = 2_048;
/// The highest temperature of the API; agents permit 2.
const MAX_TEMPERATURE: f32 = 1.0;

/// What a model was found not to support. Requests assume first that it supports everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub without_temperature: bool,
}

impl Dialect {
    /// The dialect to use after the server rejected `body`, or `None` if no known difference explains the message.
    pub(super) fn adapt(self, message: &str, body: &Value) -> Option<Self> {
        let adapted = Self { without_temperature: true };
        let blames_temperature =
            body.get("temperature").is_some() && message.to_ascii_lowercase().contains("temperature");
        (blames_temperature && adapted != self).then_some(adapted)
    }
}

pub(super) fn request_body(config: &ModelServerConfig, request: &ModelRequest, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), config.model.clone().into());
    let requested = request.max_tokens.map(|requested| requested.max(MIN_MAX_TOKENS));
    let max_tokens = requested.or(config.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS);
    body.insert("max_tokens".into(), max_tokens.into());
    body.insert("stream".into(), true.into());
    let system = system_prompt(&request.messages);
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), messages(&request.messages).into());
    if let Some(temperature) = request.temperature.filter(|_| !dialect.without_temperature) {
        // Through its decimal form, so that 0.2 stays 0.2 as an f64.
        let temperature: f64 = temperature.min(MAX_TEMPERATURE).to_string().parse().unwrap_or_default();
        body.insert("temperature".into(), temperature.into());
    }
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), request.stop.clone().into());
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool_json).collect();
    if let Some(schema) = &request.schema {
        // Within a field, because the schema of an input must be that of an object.
        let input = json!({
            "type": "object",
            "properties": {REPLY_TOOL: schema.schema.to_value()},
            "required": [REPLY_TOOL],
            "additionalProperties": false,
        });
        tools.push(json!({"name": REPLY_TOOL, "description": "Give the reply.", "input_schema": input}));
        body.insert(
            "tool_choice".into(),
            json!({"type": "tool", "name": REPLY_TOOL, "disable_parallel_tool_use": true}),
        );
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    config.add_extra_fields(&mut body);
    Value::Object(body)
}

fn system_prompt(messages: &[ModelMessage]) -> String {
    let texts = messages.iter().filter(|message| message.role == Role::System);
    texts.map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

/// The conversation. Messages of one role in a row become one message, because all results of a message's calls must stand
/// in the next one.
fn messages(messages: &[ModelMessage]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = match message.role {
            Role::System => continue,
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        let blocks = content_blocks(message);
        match turns.last_mut() {
            Some((last_role, last_blocks)) if *last_role == role => last_blocks.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let turns = turns.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    turns.map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

fn content_blocks(message: &ModelMessage) -> Vec<Value> {
    if message.role == Role::Tool {
        let id = message.call_id.as_deref().unwrap_or_default();
        return vec![json!({"type": "tool_result", "tool_use_id": id, "content": message.text})];
    }
    // The API rejects empty text.
    let text = Some(&message.text).filter(|text| !text.trim().is_empty());
    let text = text.map(|text| json!({"type": "text", "text": text}));
    let calls = message.calls.iter().map(|call| {
        let input = Value::Object(parse_arguments(&call.arguments).unwrap_or_default());
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    });
    text.into_iter().chain(calls).collect()
}

fn tool_json(tool: &ModelTool) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters.to_value()})
}

#[cfg(test)]
#[path = "request_body_tests.rs"]
mod tests;
