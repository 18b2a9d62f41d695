//! Requests and responses of OpenAI's Responses API.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_model::Usage;

use super::{
    answer::{AnswerFormat, AnswerRequest, AnsweringRun, FinishedAnswer},
    parameters::{ResponseParameters, SharedParameters},
};
use crate::{
    agents::api::{
        chat_message::{ChatMessage, question_and_history},
        error::ApiError,
    },
    api::extract::parse_body,
};

/// Largest number of metadata entries, and of characters in their keys and values.
const MAX_METADATA_ENTRIES: usize = 16;
const MAX_METADATA_KEY_CHARS: usize = 64;
const MAX_METADATA_VALUE_CHARS: usize = 512;

/// The body of a request. `store` is accepted and has no effect: responses are not stored.
#[derive(Debug, Deserialize)]
struct ResponseBody {
    #[serde(default)]
    model: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    conversation: Option<Conversation>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    shared: SharedParameters,
    #[serde(flatten)]
    parameters: ResponseParameters,
}

/// The name of a conversation, in either form of OpenAI's API.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Conversation {
    Name(String),
    Object { id: String },
}

/// Answers as responses.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct ResponseFormat {
    instructions: Option<String>,
    metadata: BTreeMap<String, String>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    /// The number of the next event.
    sequence_number: u64,
    /// The text that was sent.
    sent: String,
    is_message_open: bool,
}

/// Reads the body of `POST /v1/responses`.
pub(super) fn parse_response_request(body: &str) -> Result<(AnswerRequest, ResponseFormat), ApiError> {
    let body: ResponseBody = parse_body(body)?;
    body.shared.check()?;
    body.parameters.check()?;
    let metadata = body.metadata.unwrap_or_default();
    check_metadata(&metadata)?;
    let instructions = body.instructions.filter(|instructions| !instructions.trim().is_empty());
    let instruction_message = instructions.iter().map(|instructions| ChatMessage {
        role: "developer".to_owned(),
        content: Value::String(instructions.clone()),
    });
    let messages = instruction_message.chain(input_messages(body.input)?).collect();
    let (question, history) = question_and_history("input", messages)?;
    let request = AnswerRequest {
        agent: body.model,
        question,
        history,
        conversation: body.conversation.map(|conversation| match conversation {
            Conversation::Name(name) | Conversation::Object { id: name } => name,
        }),
        stream: body.stream.unwrap_or(false),
        max_tokens: body.parameters.max_tokens()?,
        temperature_hundredths: body.shared.temperature_hundredths(),
    };
    let (temperature, top_p) = (body.shared.temperature, body.shared.top_p);
    Ok((request, ResponseFormat { instructions, metadata, temperature, top_p, ..ResponseFormat::default() }))
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), ApiError> {
    let is_too_long = |(key, value): (&String, &String)| {
        key.chars().count() > MAX_METADATA_KEY_CHARS || value.chars().count() > MAX_METADATA_VALUE_CHARS
    };
    if metadata.len() > MAX_METADATA_ENTRIES || metadata.iter().any(is_too_long) {
        let message = format!(
            "`metadata` may have {MAX_METADATA_ENTRIES} entries with keys of {MAX_METADATA_KEY_CHARS} and values of \
             {MAX_METADATA_VALUE_CHARS} characters"
        );
        return Err(ApiError::invalid_param("metadata", message));
    }
    Ok(())
}

/// The messages of an input: a text is a message of the user.
fn input_messages(input: Value) -> Result<Vec<ChatMessage>, ApiError> {
    let items = match input {
        Value::Null => return Err(ApiError::invalid_param("input", "`input` is missing")),
        text @ Value::String(_) => return Ok(vec![ChatMessage { role: "user".to_owned(), content: text }]),
        Value::Array(items) => items,
        _ => return Err(ApiError::invalid_param("input", "`input` must be a string or a list of items")),
    };
    let mut messages = Vec::new();
    for mut item in items {
        match item.get("type").and_then(Value::as_str) {
            None | Some("message") => {
                let role = item.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
                let content = item.get_mut("content").map(Value::take).unwrap_or_default();
                messages.push(ChatMessage { role, content });
            }
            // Of the client's own tools and of other models: the agent has its own.
            Some("reasoning" | "function_call" | "function_call_output") => {}
            Some(kind) => {
                let message = format!("only message items are supported, not `{kind}`");
                return Err(ApiError::invalid_param("input", message));
            }
        }
    }
    Ok(messages)
}

impl ResponseFormat {
    /// The response in a state, with what it has only in this state.
    fn response(&self, run: &AnsweringRun, status: &str, fields: Value) -> Value {
        let response = json!({
            "id": format!("resp_{}", run.run),
            "object": "response",
            "created_at": run.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": self.instructions,
            "max_output_tokens": run.max_tokens,
            "model": run.agent,
            "output": [],
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "store": false,
            "temperature": self.temperature,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": self.top_p,
            "truncation": "disabled",
            "usage": null,
            "user": null,
            "metadata": self.metadata,
        });
        with_fields(response, fields)
    }

    fn finished(&self, run: &AnsweringRun, answer: &FinishedAnswer, text: &str) -> Value {
        let status = status(answer);
        let fields = json!({
            "incomplete_details": answer.is_cut.then(|| json!({"reason": "max_output_tokens"})),
            "output": [message(run, status, &[text_part(text)])],
            "usage": usage_json(answer.usage),
            "toolyard": run.toolyard_json(answer),
        });
        self.response(run, status, fields)
    }

    /// A server-sent event with the next sequence number.
    fn event(&mut self, name: &str, fields: Value) -> Bytes {
        let data = json!({"type": name, "sequence_number": self.sequence_number});
        self.sequence_number += 1;
        let data = with_fields(data, fields);
        Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// An event about the only part of the only message.
    fn part_event(&mut self, run: &AnsweringRun, name: &str, fields: Value) -> Bytes {
        let part = json!({"item_id": message_id(run), "output_index": 0, "content_index": 0});
        self.event(name, with_fields(part, fields))
    }

    fn open_message(&mut self, run: &AnsweringRun) -> Vec<Bytes> {
        if std::mem::replace(&mut self.is_message_open, true) {
            return Vec::new();
        }
        let item = json!({"output_index": 0, "item": message(run, "in_progress", &[])});
        vec![
            self.event("response.output_item.added", item),
            self.part_event(run, "response.content_part.added", json!({"part": text_part("")})),
        ]
    }

    fn close_message(&mut self, run: &AnsweringRun, status: &str) -> Vec<Bytes> {
        let part = text_part(&self.sent);
        let done = json!({"text": self.sent, "logprobs": []});
        let item = json!({"output_index": 0, "item": message(run, status, std::slice::from_ref(&part))});
        vec![
            self.part_event(run, "response.output_text.done", done),
            self.part_event(run, "response.content_part.done", json!({ "part": part })),
            self.event("response.output_item.done", item),
        ]
    }
}

impl AnswerFormat for ResponseFormat {
    fn whole(&self, run: &AnsweringRun, answer: &FinishedAnswer) -> Value {
        self.finished(run, answer, &answer.text)
    }

    fn start(&mut self, run: &AnsweringRun) -> Vec<Bytes> {
        let response = json!({"response": self.response(run, "in_progress", json!({}))});
        vec![self.event("response.created", response.clone()), self.event("response.in_progress", response)]
    }

    fn content(&mut self, run: &AnsweringRun, text: &str) -> Vec<Bytes> {
        let mut events = self.open_message(run);
        self.sent.push_str(text);
        let delta = json!({"delta": text, "logprobs": []});
        events.push(self.part_event(run, "response.output_text.delta", delta));
        events
    }

    /// Not sent: an item of reasoning would have to be complete before the answer begins.
    fn reasoning(&mut self, _: &AnsweringRun, _: &str) -> Vec<Bytes> {
        Vec::new()
    }

    fn finish(&mut self, run: &AnsweringRun, outcome: Result<&FinishedAnswer, &ApiError>) -> Vec<Bytes> {
        match outcome {
            Ok(answer) => {
                let mut events = self.open_message(run);
                events.extend(self.close_message(run, status(answer)));
                let name = if answer.is_cut { "response.incomplete" } else { "response.completed" };
                let response = self.finished(run, answer, &self.sent);
                events.push(self.event(name, json!({ "response": response })));
                events
            }
            Err(error) => {
                let error = error.to_json();
                let field = |name: &str| error.pointer(&format!("/error/{name}")).cloned();
                let fields = json!({"error": {"code": field("code"), "message": field("message")}});
                let response = self.response(run, "failed", fields);
                vec![self.event("response.failed", json!({ "response": response }))]
            }
        }
    }
}

/// An object with further fields.
fn with_fields(mut object: Value, fields: Value) -> Value {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
    object
}

fn status(answer: &FinishedAnswer) -> &'static str {
    if answer.is_cut { "incomplete" } else { "completed" }
}

fn message_id(run: &AnsweringRun) -> String {
    format!("msg_{}", run.run)
}

fn message(run: &AnsweringRun, status: &str, parts: &[Value]) -> Value {
    json!({"id": message_id(run), "type": "message", "status": status, "role": "assistant", "content": parts})
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
