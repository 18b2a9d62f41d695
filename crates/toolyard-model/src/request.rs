//! What a model is asked.

use serde::{Deserialize, Serialize};
use toolyard_core::RawJson;

use crate::NativeCall;

/// One request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// What was said so far, the oldest first.
    pub messages: Vec<ModelMessage>,
    /// Tools it may call by itself; only for models that do that natively.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// The form its answer is held to, where the model can be held to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<WantedSchema>,
    /// It ends after so many tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// 0 for the same answer every time, as far as the model can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// It ends before it says one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelMessage {
    /// Who says it.
    pub role: Role,
    /// What.
    pub text: String,
    /// Calls that the model made in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<NativeCall>,
    /// The call that this answers; only for [`Role::Tool`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ModelMessage {
    /// A message of text alone.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), calls: Vec::new(), call_id: None }
    }

    /// What the model is told before everything else.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// What a person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, text)
    }
}

/// A tool as a model that calls natively is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: RawJson,
}

/// The form an answer is held to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WantedSchema {
    /// A short name, as some servers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: RawJson,
}
