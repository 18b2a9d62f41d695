//! Requests and responses of OpenAI's chat completions API.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_agent::{O200k, RunEnd, TokenCounter as _};
use toolyard_core::RunId;
use toolyard_model::{ModelMessage, Role, Usage};

use super::{error::ApiError, parameters::Parameters};
use crate::agents::run_text::suspended_notice;

/// Characters of a word at most, where tokens are counted.
const MAX_WORD_CHARS: usize = 32;

/// The body of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionBody {
    model: String,
    messages: Vec<ChatMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// Not part of OpenAI's API.
    conversation: Option<String>,
    #[serde(flatten)]
    parameters: Parameters,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatMessage {
    role: String,
    content: Value,
}

#[derive(Debug, PartialEq)]
pub(super) struct CompletionRequest {
    /// The requested model is the name of an agent.
    pub(super) agent: String,
    pub(super) question: String,
    /// The messages before the question.
    pub(super) history: Vec<ModelMessage>,
    /// The conversation that the question belongs to.
    pub(super) conversation: Option<String>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Tokens of the answer that the client gets at most.
    pub(super) max_tokens: Option<usize>,
    /// The temperature of the answer.
    pub(super) temperature_hundredths: Option<u8>,
}

impl CompletionRequest {
    pub(super) fn parse(body: &str) -> Result<Self, ApiError> {
        let body: CompletionBody = serde_json::from_str(body)
            .map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))?;
        body.parameters.check()?;
        let max_tokens = body.parameters.max_tokens()?;
        let mut messages = body.messages;
        let last =
            messages.pop().ok_or_else(|| ApiError::invalid_param("messages", "`messages` is empty"))?;
        if last.role != "user" {
            return Err(ApiError::invalid_param("messages", "the last message must have the role `user`"));
        }
        let question = message_text(&last.content)?;
        if question.trim().is_empty() {
            return Err(ApiError::invalid_param("messages", "the last message is empty"));
        }
        let mut history = Vec::new();
        for message in &messages {
            history.extend(history_message(message)?);
        }
        Ok(Self {
            agent: body.model,
            question,
            history,
            conversation: body.conversation,
            stream: body.stream.unwrap_or(false),
            max_tokens,
            temperature_hundredths: body.parameters.temperature_hundredths(),
            include_usage: body.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
        })
    }
}

/// A message for the agent's model; none if it is empty or a result of the client's own tools.
fn history_message(message: &ChatMessage) -> Result<Option<ModelMessage>, ApiError> {
    let text = message_text(&message.content)?;
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
        other => return Err(ApiError::invalid_param("messages", format!("unknown role `{other}`"))),
    })
}

/// The content of a message: a string or text parts.
fn message_text(content: &Value) -> Result<String, ApiError> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let part_text = |part: &Value| match part.get("type").and_then(Value::as_str) {
                Some("text" | "input_text") | None => {
                    Ok(part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Some(kind) => {
                    let message = format!("only text parts are supported, not `{kind}`");
                    Err(ApiError::invalid_param("messages", message))
                }
            };
            Ok(parts.iter().map(part_text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(ApiError::invalid_param("messages", "message content must be a string or a list of parts")),
    }
}

#[derive(Debug, Clone)]
pub(super) struct CompletionBuilder {
    pub(super) run: RunId,
    pub(super) agent: String,
    /// Unix time in seconds.
    pub(super) created: i64,
    /// Tokens of the answer that the client gets at most.
    pub(super) max_tokens: Option<usize>,
}

/// The longest beginning of a text with at most so many tokens, and whether that is less than the whole.
pub(super) fn first_tokens(text: &str, max_tokens: usize) -> (&str, bool) {
    if O200k.count(text) <= max_tokens {
        return (text, false);
    }
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = |at: &&usize| O200k.count(text.get(..**at).unwrap_or_default()) <= max_tokens;
    // A part of a word may have more tokens than the word.
    let nearly = boundaries.partition_point(|at| fits(&at));
    let near = boundaries.get(..boundaries.len().min(nearly + MAX_WORD_CHARS)).unwrap_or_default();
    let end = near.iter().rev().find(fits).copied().unwrap_or_default();
    (text.get(..end).unwrap_or_default(), true)
}

/// The text of a completion, and OpenAI's reason why it ended.
pub(super) fn completion_text(run: &RunId, end: &RunEnd) -> Result<(String, &'static str), ApiError> {
    match end {
        RunEnd::Answered { answer, truncated, .. } => {
            Ok((answer.clone(), if *truncated { "length" } else { "stop" }))
        }
        RunEnd::Partial { answer, .. } => Ok((answer.clone(), "stop")),
        RunEnd::Planned => Ok((String::new(), "stop")),
        RunEnd::Suspended { waiting_for } => Ok((suspended_notice(run, waiting_for), "stop")),
        RunEnd::LimitReached { message, .. } => Ok((format!("{message} (run {run})"), "length")),
        RunEnd::Failed { message, hint } => {
            // Hints name commands, files and settings of the operator. A client can follow none of them.
            tracing::warn!(%run, message, hint, "run failed");
            Err(ApiError::failed("run_failed", format!("{message} (run {run})")))
        }
        RunEnd::Cancelled => Err(ApiError::failed("run_cancelled", format!("run {run} was cancelled"))),
    }
}

impl CompletionBuilder {
    pub(super) fn completion(&self, end: &RunEnd, usage: Usage) -> Result<Value, ApiError> {
        let (text, finish_reason) = completion_text(&self.run, end)?;
        let (text, finish_reason) = match self.max_tokens.map(|most| first_tokens(&text, most)) {
            Some((first, true)) => (first.to_owned(), "length"),
            _ => (text, finish_reason),
        };
        Ok(json!({
            "id": self.id(),
            "object": "chat.completion",
            "created": self.created,
            "model": self.agent,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": null},
                "logprobs": null,
                "finish_reason": finish_reason,
            }],
            "usage": usage_json(usage),
            "toolyard": self.run_json(end),
        }))
    }

    /// How the run ended, which OpenAI's fields cannot say.
    fn run_json(&self, end: &RunEnd) -> Value {
        let awaits_approval = matches!(end, RunEnd::Suspended { .. });
        let partial = matches!(end, RunEnd::Partial { .. });
        json!({"run": self.run, "awaits_approval": awaits_approval, "partial": partial})
    }

    /// The chunk that ends the answer; it has the same `toolyard` field as a completion.
    pub(super) fn last_chunk(&self, end: &RunEnd, finish_reason: &str) -> Value {
        let mut chunk = self.chunk(&json!({}), Some(finish_reason));
        if let Some(chunk) = chunk.as_object_mut() {
            chunk.insert("toolyard".to_owned(), self.run_json(end));
        }
        chunk
    }

    pub(super) fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        self.chunk_with(&json!([choice]), &Value::Null)
    }

    /// The last chunk, which has only the usage.
    pub(super) fn usage_chunk(&self, usage: Usage) -> Value {
        self.chunk_with(&json!([]), &usage_json(usage))
    }

    fn chunk_with(&self, choices: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.agent,
            "choices": choices,
            "usage": usage,
        })
    }

    fn id(&self) -> String {
        format!("chatcmpl-{}", self.run)
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    })
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
