//! Messages that clients send: the question and the history before it.

use serde::Deserialize;
use serde_json::Value;
use toolyard_model::{ModelMessage, Role};
use utoipa::{
    ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type},
};

use super::error::ApiError;

/// A message in OpenAI's form.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatMessage {
    /// `user` or `assistant`; `system` and `developer` are passed on as notes.
    pub(super) role: String,
    #[serde(default, alias = "text")]
    #[schema(schema_with = text_or_parts)]
    pub(super) content: Value,
}

fn text_or_parts() -> Schema {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let parts = ArrayBuilder::new().items(ObjectBuilder::new());
    let description = "A string or text parts; may also be named `text`.";
    OneOfBuilder::new().item(text).item(parts).description(Some(description)).build().into()
}

/// The last message, which is the question, and the others. `param` is the parameter that has the messages.
pub(super) fn question_and_history(
    param: &'static str,
    mut messages: Vec<ChatMessage>,
) -> Result<(String, Vec<ModelMessage>), ApiError> {
    let last = messages.pop().ok_or_else(|| ApiError::invalid_param(param, format!("`{param}` is empty")))?;
    if last.role != "user" {
        return Err(ApiError::invalid_param(param, "the last message must have the role `user`"));
    }
    let question = message_text(param, &last.content)?;
    if question.trim().is_empty() {
        return Err(ApiError::invalid_param(param, "the last message is empty"));
    }
    Ok((question, history(param, &messages)?))
}

/// Earlier messages for the agent's model. Empty ones and results of the client's own tools are left out.
pub(super) fn history(param: &'static str, messages: &[ChatMessage]) -> Result<Vec<ModelMessage>, ApiError> {
    let mut history = Vec::new();
    for message in messages {
        history.extend(history_message(param, message)?);
    }
    Ok(history)
}

fn history_message(param: &'static str, message: &ChatMessage) -> Result<Option<ModelMessage>, ApiError> {
    let text = message_text(param, &message.content)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    Ok(match message.role.as_str() {
        "user" => Some(ModelMessage::new(Role::User, text)),
        "assistant" => Some(ModelMessage::new(Role::Assistant, text)),
        // The agent has a system prompt of its own, and many models take only one.
        "system" | "developer" => {
            Some(ModelMessage::new(Role::User, format!("(For this conversation: {})", text.trim())))
        }
        "tool" | "function" => None,
        other => return Err(ApiError::invalid_param(param, format!("unknown role `{other}`"))),
    })
}

/// The content of a message: a string or text parts.
fn message_text(param: &'static str, content: &Value) -> Result<String, ApiError> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let part_text = |part: &Value| match part.get("type").and_then(Value::as_str) {
                Some("text" | "input_text" | "output_text") | None => {
                    Ok(part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Some(kind) => {
                    let message = format!("only text parts are supported, not `{kind}`");
                    Err(ApiError::invalid_param(param, message))
                }
            };
            Ok(parts.iter().map(part_text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(ApiError::invalid_param(param, "message content must be a string or a list of parts")),
    }
}
