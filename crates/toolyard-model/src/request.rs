//! Requests to a model.

use serde::{Deserialize, Serialize};
use toolyard_core::RawJson;

use crate::ModelToolCall;

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The conversation, oldest message first.
    pub messages: Vec<ModelMessage>,
    /// Tools for native tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ModelTool>,
    /// Constrains the reply to a JSON Schema, if the model supports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<ResponseSchema>,
    /// Limits the length of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The sampling temperature; 0 for replies as deterministic as the model allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The reply ends before any of these strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the chat protocols")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelMessage {
    /// Its author.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// The native tool calls in an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelToolCall>,
    /// The tool call that a [`Role::Tool`] message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ModelMessage {
    /// A message of text alone.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), calls: Vec::new(), call_id: None }
    }

    /// A system prompt.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// An earlier reply of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }
}

/// A tool that a model may call natively.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: RawJson,
}

/// A JSON Schema that constrains a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseSchema {
    /// A short name, required by some servers.
    pub name: String,
    /// The JSON Schema.
    pub schema: RawJson,
}
