//! What a model says: piece by piece, and put together.

use serde::{Deserialize, Serialize};

/// A piece of what a model says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// More of its answer.
    Text(String),
    /// More of what it thinks before it answers.
    Reasoning(String),
    /// More of a call it makes.
    ToolCall(ToolCallDelta),
    /// What it cost so far; the last one counts.
    Usage(Usage),
    /// Why it stopped; the last event.
    Finished(FinishReason),
}

/// A piece of a call; pieces with the same index belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallDelta {
    /// Which of its calls.
    pub index: usize,
    /// The call's id, where this piece brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name, where this piece brings it or more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments' JSON text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

/// A call that a model made natively.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeCall {
    /// The model's name for it; never empty once put together.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if all went well.
    pub arguments: String,
}

/// What a request cost. Tokens are estimated where a server does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were read.
    pub input: u64,
    /// Of these, tokens that were cached.
    #[serde(default)]
    pub cached: u64,
    /// Tokens that were written, thoughts included.
    pub output: u64,
    /// Money, in millionths of the operator's currency.
    #[serde(default)]
    pub cost_micros: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// It wants its calls made.
    ToolCalls,
    /// It had to stop at its limit.
    Length,
    /// It or its provider refused.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// A whole reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// What it said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What it thought.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The calls it made natively.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<NativeCall>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why it stopped.
    #[serde(default)]
    pub finish: FinishReason,
}

impl ModelReply {
    /// Adds a piece.
    pub fn take(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.text.push_str(&text),
            ModelEvent::Reasoning(text) => self.reasoning.push_str(&text),
            ModelEvent::ToolCall(delta) => self.take_call(delta),
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Finished(reason) => self.finish = reason,
        }
    }

    fn take_call(&mut self, delta: ToolCallDelta) {
        // A model that counts to a million has not made a million calls.
        const MOST: usize = 256;
        if delta.index >= MOST {
            return;
        }
        while self.calls.len() <= delta.index {
            let id = format!("call_{}", self.calls.len() + 1);
            self.calls.push(NativeCall { id, ..NativeCall::default() });
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
