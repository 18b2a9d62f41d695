//! Our words in those of the crate genai, and its words in ours.

use std::time::Duration;

use genai::{
    chat::{
        ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, JsonSpec, MessageContent,
        StopReason, StreamEnd, Tool, ToolCall, ToolResponse,
    },
    webc,
};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::GenAiConfig;
use crate::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelMessage, ModelRequest, Role, ToolCallDelta,
    Usage,
    openai::{
        failure::{Complaint, Spokesman},
        retry,
    },
    tool_call_tag::read_arguments,
};

/// What is asked.
pub(super) fn request(request: &ModelRequest) -> ChatRequest {
    let tools = request.tools.iter().map(|tool| {
        Tool::new(tool.name.clone())
            .with_description(tool.description.clone())
            .with_schema(tool.parameters.to_value())
    });
    let asked = ChatRequest::new(request.messages.iter().map(message).collect());
    if request.tools.is_empty() { asked } else { asked.with_tools(tools.collect::<Vec<Tool>>()) }
}

fn message(message: &ModelMessage) -> ChatMessage {
    let text = message.text.clone();
    match message.role {
        Role::System => ChatMessage::system(text),
        Role::User => ChatMessage::user(text),
        Role::Tool => {
            let id = message.call_id.clone().unwrap_or_default();
            ChatMessage::tool(MessageContent::from_tool_responses(vec![ToolResponse::new(id, text)]))
        }
        Role::Assistant if message.calls.is_empty() => ChatMessage::assistant(text),
        Role::Assistant => {
            let words = (!text.is_empty()).then(|| ContentPart::from_text(text));
            let calls = message.calls.iter().map(|call| {
                ContentPart::ToolCall(ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: Value::Object(read_arguments(&call.arguments).unwrap_or_default()),
                    thought_signatures: None,
                })
            });
            ChatMessage::assistant(MessageContent::from_parts(
                words.into_iter().chain(calls).collect::<Vec<_>>(),
            ))
        }
    }
}

/// How it is to be answered.
pub(super) fn options(config: &GenAiConfig, request: &ModelRequest) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_normalize_reasoning_content(true);
    if let Some(most) = request.max_tokens.or(config.max_tokens) {
        options = options.with_max_tokens(most);
    }
    if let Some(temperature) = request.temperature {
        // As it is written: 0.2 stays 0.2.
        options = options.with_temperature(temperature.to_string().parse().unwrap_or_default());
    }
    if !request.stop.is_empty() {
        options = options.with_stop_sequences(request.stop.clone());
    }
    if let Some(wanted) = &request.schema {
        options = options.with_response_format(JsonSpec::new(wanted.name.clone(), wanted.schema.to_value()));
    }
    options
}

/// Whether something was said.
pub(super) fn is_sign_of_life(event: &ChatStreamEvent) -> bool {
    !matches!(event, ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)
}

/// What was said, and whether it was the last.
pub(super) fn events(event: ChatStreamEvent, price: impl Fn(&Usage) -> u64) -> (Vec<ModelEvent>, bool) {
    match event {
        ChatStreamEvent::Chunk(chunk) => (vec![ModelEvent::Text(chunk.content)], false),
        ChatStreamEvent::ReasoningChunk(chunk) => (vec![ModelEvent::Reasoning(chunk.content)], false),
        ChatStreamEvent::End(end) => (last_events(end, price), true),
        // Calls are taken whole at the end: their pieces mean something else with every provider.
        ChatStreamEvent::Start
        | ChatStreamEvent::Heartbeat
        | ChatStreamEvent::ThoughtSignatureChunk(_)
        | ChatStreamEvent::ToolCallChunk(_) => (Vec::new(), false),
    }
}

fn last_events(end: StreamEnd, price: impl Fn(&Usage) -> u64) -> Vec<ModelEvent> {
    let mut usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
    usage.cost_micros = price(&usage);
    let reason = end.captured_stop_reason.clone();
    let calls = end.captured_into_tool_calls().unwrap_or_default();
    let reason = match reason {
        None | Some(StopReason::Completed(_) | StopReason::StopSequence(_) | StopReason::ToolCall(_)) => {
            if calls.is_empty() {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            }
        }
        Some(StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(StopReason::ContentFilter(_)) => FinishReason::Refused,
        Some(StopReason::Other(word)) => FinishReason::Other(word),
    };
    let calls = calls.into_iter().enumerate().map(|(index, call)| {
        let arguments = match call.fn_arguments {
            Value::String(text) => text,
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        };
        let (id, name) = (Some(call.call_id), Some(call.fn_name));
        ModelEvent::ToolCall(ToolCallDelta { index, id, name, arguments })
    });
    calls.chain([ModelEvent::Usage(usage), ModelEvent::Finished(reason)]).collect()
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |number: Option<i32>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let input = count(usage.prompt_tokens);
    let cached = usage.prompt_tokens_details.as_ref().map_or(0, |details| count(details.cached_tokens));
    Usage { input, cached: cached.min(input), output: count(usage.completion_tokens), cost_micros: 0 }
}

/// What went wrong, and when another attempt may help.
pub(super) fn failure(error: &genai::Error, spokesman: &Spokesman) -> (ModelError, Option<Option<Duration>>) {
    use genai::Error;
    let complaint = match error {
        Error::HttpError { status, body, headers, .. } => complaint(status.as_u16(), body, headers),
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => match webc_error
        {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                complaint(status.as_u16(), body, headers)
            }
            other => return (unreachable(spokesman, &other.to_string()), Some(None)),
        },
        Error::WebStream { cause, error, .. } => match error.downcast_ref::<Error>() {
            Some(inner) => return failure(inner, spokesman),
            None => return (unreachable(spokesman, cause), Some(None)),
        },
        Error::ChatResponse { body, .. } => {
            Complaint::in_answer(body).unwrap_or_else(|| Complaint::garbled(&body.to_string()))
        }
        Error::RequiresApiKey { .. }
        | Error::NoAuthResolver { .. }
        | Error::NoAuthData { .. }
        | Error::Resolver { .. } => Complaint { status: Some(401), ..Complaint::default() },
        Error::AdapterNotSupported { feature, .. } => {
            Complaint { status: Some(501), message: feature.clone(), ..Complaint::default() }
        }
        other => Complaint::garbled(&other.to_string()),
    };
    let again = complaint.is_passing().then_some(complaint.retry_after);
    (spokesman.complain(&complaint), again)
}

fn unreachable(spokesman: &Spokesman, cause: &str) -> ModelError {
    // The last line says why; those before it repeat where.
    let cause = cause.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    spokesman.error(ModelErrorKind::Unreachable, format!("cannot be reached: {cause}"))
}

fn complaint(status: u16, body: &str, headers: &HeaderMap) -> Complaint {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let wait = retry::retry_after(header("retry-after"), header("retry-after-ms"), Timestamp::now());
    Complaint { retry_after: wait, ..Complaint::in_body(status, body) }
}
