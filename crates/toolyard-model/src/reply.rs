//! Replies of a model: streamed events and the collected reply.

use serde::{Deserialize, Serialize};

/// Further tool calls of one reply are ignored, whatever index the server gives them.
pub(crate) const MAX_TOOL_CALLS: usize = 256;

/// An event of a streamed reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of the reply's text.
    Text(String),
    /// More of the reasoning that precedes the text.
    Reasoning(String),
    /// More of a native tool call.
    ToolCall(ToolCallDelta),
    /// Tokens and cost so far; the last such event counts.
    Usage(Usage),
    /// The reason why the model stopped; the last event.
    Finished(FinishReason),
}

/// A piece of a tool call. Pieces with the same index belong to the same call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallDelta {
    /// The position of the call in the reply.
    pub index: usize,
    /// The call's id, if this piece has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name or more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments' JSON text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

/// A native tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// The id that the tool's result refers to; never empty in a [`ModelReply`].
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them, usually JSON.
    pub arguments: String,
}

/// Tokens and cost of a request. Tokens are estimated if the server does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Input tokens that the server read from its cache.
    #[serde(default)]
    pub cached: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// The cost in millionths of the operator's currency.
    #[serde(default)]
    pub cost_micros: u64,
}

impl Usage {
    /// The sum of both.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The reply is complete.
    #[default]
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The reply reached the token limit.
    Length,
    /// The model or a content filter refused.
    Refused,
    /// Another reason, in the provider's word.
    Other(String),
}

/// A complete reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The reasoning that preceded the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The native tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelToolCall>,
    /// Tokens and cost.
    #[serde(default)]
    pub usage: Usage,
    /// The reason why the model stopped.
    #[serde(default)]
    pub finish_reason: FinishReason,
}

impl ModelReply {
    /// Adds an event to the reply.
    pub fn apply(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.text.push_str(&text),
            ModelEvent::Reasoning(text) => self.reasoning.push_str(&text),
            ModelEvent::ToolCall(delta) => self.apply_tool_call(delta),
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Finished(reason) => self.finish_reason = reason,
        }
    }

    fn apply_tool_call(&mut self, delta: ToolCallDelta) {
        if delta.index >= MAX_TOOL_CALLS {
            return;
        }
        while self.calls.len() <= delta.index {
            let id = format!("call_{}", self.calls.len() + 1);
            self.calls.push(ModelToolCall { id, ..ModelToolCall::default() });
        }
        if let Some(call) = self.calls.get_mut(delta.index) {
            if let Some(id) = delta.id.filter(|id| !id.is_empty()) {
                call.id = id;
            }
            call.name.push_str(delta.name.as_deref().unwrap_or_default());
            call.arguments.push_str(&delta.arguments);
        }
    }
}
