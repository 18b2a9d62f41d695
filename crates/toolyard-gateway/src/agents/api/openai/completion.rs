//! Requests and responses of OpenAI's chat completions API.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_model::Usage;

use super::{
    answer::{AnswerFormat, AnswerRequest, AnsweringRun, FinishedAnswer},
    answer_stream::data_event,
    parameters::{CompletionParameters, SharedParameters},
};
use crate::{
    agents::api::{
        chat_message::{ChatMessage, question_and_history},
        error::ApiError,
    },
    api::extract::parse_body,
};

/// The body of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionBody {
    model: String,
    messages: Vec<CompletionMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// Not part of OpenAI's API.
    conversation: Option<String>,
    #[serde(flatten)]
    shared: SharedParameters,
    #[serde(flatten)]
    parameters: CompletionParameters,
}

/// A message. Its other fields, such as `tool_calls` and `refusal`, are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionMessage {
    role: String,
    #[serde(alias = "text")]
    content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Answers as chat completions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CompletionFormat {
    include_usage: bool,
}

/// Reads the body of `POST /v1/chat/completions`.
pub(super) fn parse_completion(body: &str) -> Result<(AnswerRequest, CompletionFormat), ApiError> {
    let body: CompletionBody = parse_body(body)?;
    body.shared.check()?;
    body.parameters.check()?;
    let max_tokens = body.parameters.max_tokens()?;
    let message = |CompletionMessage { role, content }| ChatMessage { role, content };
    let messages = body.messages.into_iter().map(message).collect();
    let (question, history) = question_and_history("messages", messages)?;
    let request = AnswerRequest {
        agent: body.model,
        question,
        history,
        conversation: body.conversation,
        stream: body.stream.unwrap_or(false),
        max_tokens,
        temperature_hundredths: body.shared.temperature_hundredths(),
    };
    let include_usage = body.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
    Ok((request, CompletionFormat { include_usage }))
}

impl AnswerFormat for CompletionFormat {
    fn whole(&self, run: &AnsweringRun, answer: &FinishedAnswer) -> Value {
        json!({
            "id": completion_id(run),
            "object": "chat.completion",
            "created": run.created,
            "model": run.agent,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": answer.text, "refusal": null},
                "logprobs": null,
                "finish_reason": finish_reason(answer),
            }],
            "usage": usage_json(answer.usage),
            "toolyard": run.toolyard_json(answer),
        })
    }

    fn start(&mut self, run: &AnsweringRun) -> Vec<Bytes> {
        vec![delta_event(run, &json!({"role": "assistant", "content": ""}))]
    }

    fn content(&mut self, run: &AnsweringRun, text: &str) -> Vec<Bytes> {
        vec![delta_event(run, &json!({ "content": text }))]
    }

    fn reasoning(&mut self, run: &AnsweringRun, text: &str) -> Vec<Bytes> {
        vec![delta_event(run, &json!({ "reasoning_content": text }))]
    }

    fn finish(&mut self, run: &AnsweringRun, outcome: Result<&FinishedAnswer, &ApiError>) -> Vec<Bytes> {
        let mut events = Vec::new();
        match outcome {
            Ok(answer) => {
                let mut last =
                    chunk(run, &json!([choice(&json!({}), Some(finish_reason(answer)))]), &Value::Null);
                if let Some(last) = last.as_object_mut() {
                    last.insert("toolyard".to_owned(), run.toolyard_json(answer));
                }
                events.push(data_event(&last));
                if self.include_usage {
                    events.push(data_event(&chunk(run, &json!([]), &usage_json(answer.usage))));
                }
            }
            Err(error) => events.push(data_event(&error.to_json())),
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events
    }
}

fn finish_reason(answer: &FinishedAnswer) -> &'static str {
    if answer.is_cut { "length" } else { "stop" }
}

fn choice(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason})
}

fn delta_event(run: &AnsweringRun, delta: &Value) -> Bytes {
    data_event(&chunk(run, &json!([choice(delta, None)]), &Value::Null))
}

fn chunk(run: &AnsweringRun, choices: &Value, usage: &Value) -> Value {
    json!({
        "id": completion_id(run),
        "object": "chat.completion.chunk",
        "created": run.created,
        "model": run.agent,
        "choices": choices,
        "usage": usage,
    })
}

fn completion_id(run: &AnsweringRun) -> String {
    format!("chatcmpl-{}", run.run)
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
