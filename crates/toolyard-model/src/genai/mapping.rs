//! Conversions between our types and those of the crate genai.

use genai::{
    chat::{
        ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, JsonSpec, MessageContent,
        StopReason, StreamEnd, Tool, ToolCall, ToolResponse,
    },
    webc,
};
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::GenAiConfig;
use crate::{
    FinishReason, ModelErrorKind, ModelEvent, ModelMessage, ModelRequest, Prices, Role, ToolCallDelta, Usage,
    provider::{AttemptError, ErrorReporter, ServerError, parse_retry_after},
    tool_call_parser::parse_arguments,
};

pub(super) fn chat_request(request: &ModelRequest) -> ChatRequest {
    let tools = request.tools.iter().map(|tool| {
        Tool::new(tool.name.clone())
            .with_description(tool.description.clone())
            .with_schema(tool.parameters.to_value())
    });
    let chat_request = ChatRequest::new(request.messages.iter().map(chat_message).collect());
    if request.tools.is_empty() {
        chat_request
    } else {
        chat_request.with_tools(tools.collect::<Vec<Tool>>())
    }
}

fn chat_message(message: &ModelMessage) -> ChatMessage {
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
            let text = (!text.is_empty()).then(|| ContentPart::from_text(text));
            let calls = message.calls.iter().map(|call| {
                ContentPart::ToolCall(ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: Value::Object(parse_arguments(&call.arguments).unwrap_or_default()),
                    thought_signatures: None,
                })
            });
            ChatMessage::assistant(MessageContent::from_parts(
                text.into_iter().chain(calls).collect::<Vec<_>>(),
            ))
        }
    }
}

pub(super) fn chat_options(config: &GenAiConfig, request: &ModelRequest) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_normalize_reasoning_content(true);
    if let Some(max_tokens) = request.max_tokens.or(config.max_tokens) {
        options = options.with_max_tokens(max_tokens);
    }
    if let Some(temperature) = request.temperature {
        // Through its decimal form, so that 0.2 stays 0.2 as an f64.
        options = options.with_temperature(temperature.to_string().parse().unwrap_or_default());
    }
    if !request.stop.is_empty() {
        options = options.with_stop_sequences(request.stop.clone());
    }
    if let Some(schema) = &request.schema {
        options = options.with_response_format(JsonSpec::new(schema.name.clone(), schema.schema.to_value()));
    }
    options
}

/// Whether the event resets the idle timeout.
pub(super) fn is_activity(event: &ChatStreamEvent) -> bool {
    !matches!(event, ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)
}

/// The events of a genai event, and whether they are the last ones.
pub(super) fn model_events(event: ChatStreamEvent, prices: &Prices) -> (Vec<ModelEvent>, bool) {
    match event {
        ChatStreamEvent::Chunk(chunk) => (vec![ModelEvent::Text(chunk.content)], false),
        ChatStreamEvent::ReasoningChunk(chunk) => (vec![ModelEvent::Reasoning(chunk.content)], false),
        ChatStreamEvent::End(end) => (last_events(end, prices), true),
        // Tool calls are taken whole from the end event: their pieces differ between providers.
        ChatStreamEvent::Start
        | ChatStreamEvent::Heartbeat
        | ChatStreamEvent::ThoughtSignatureChunk(_)
        | ChatStreamEvent::ToolCallChunk(_) => (Vec::new(), false),
    }
}

fn last_events(end: StreamEnd, prices: &Prices) -> Vec<ModelEvent> {
    let mut usage = end.captured_usage.as_ref().map(convert_usage).unwrap_or_default();
    usage.cost_micros = prices.cost(&usage);
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

fn convert_usage(usage: &genai::chat::Usage) -> Usage {
    let count = |number: Option<i32>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let input = count(usage.prompt_tokens);
    let cached = usage.prompt_tokens_details.as_ref().map_or(0, |details| count(details.cached_tokens));
    Usage { input, cached: cached.min(input), output: count(usage.completion_tokens), cost_micros: 0 }
}

pub(super) fn attempt_error(error: &genai::Error, reporter: &ErrorReporter) -> AttemptError {
    use genai::Error;
    let server_error = match error {
        Error::HttpError { status, body, headers, .. } => error_response(status.as_u16(), body, headers),
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => match webc_error
        {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                error_response(status.as_u16(), body, headers)
            }
            other => return unreachable_error(reporter, &other.to_string()),
        },
        Error::WebStream { cause, error, .. } => match error.downcast_ref::<Error>() {
            Some(inner) => return attempt_error(inner, reporter),
            None => return unreachable_error(reporter, cause),
        },
        Error::ChatResponse { body, .. } => {
            ServerError::find_in(body).unwrap_or_else(|| ServerError::malformed(&body.to_string()))
        }
        Error::RequiresApiKey { .. }
        | Error::NoAuthResolver { .. }
        | Error::NoAuthData { .. }
        | Error::Resolver { .. } => ServerError { status: Some(401), ..ServerError::default() },
        Error::AdapterNotSupported { feature, .. } => {
            ServerError { status: Some(501), message: feature.clone(), ..ServerError::default() }
        }
        other => ServerError::malformed(&other.to_string()),
    };
    let reported = reporter.server_error(&server_error);
    if server_error.is_transient() {
        AttemptError::Transient(reported, server_error.retry_after)
    } else {
        AttemptError::Permanent(reported)
    }
}

fn unreachable_error(reporter: &ErrorReporter, cause: &str) -> AttemptError {
    // The last line has the cause; those before it repeat the context.
    let cause = cause.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let error = reporter.error(ModelErrorKind::Unreachable, format!("cannot be reached: {cause}"));
    AttemptError::Transient(error, None)
}

fn error_response(status: u16, body: &str, headers: &HeaderMap) -> ServerError {
    ServerError { retry_after: parse_retry_after(headers), ..ServerError::from_response(status, body) }
}
