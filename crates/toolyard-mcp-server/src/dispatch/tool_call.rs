//! `tools/call`: calls a tool and encodes its output or error.

use std::{borrow::Cow, sync::Arc};

use http::StatusCode;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallInputResponses, ContentBlock, ErrorKind, RawJson, RawToolError, RevisionFamily,
    ServiceCall, ToolCallRequest, ToolError, ToolOutput,
};
use toolyard_mcp::{JsonObject, error_code};

use crate::{
    dispatch::{
        incoming_request::IncomingRequest,
        outcome::{Outcome, invalid_request_state, missing_capability},
    },
    interaction::{request_channel::RequestChannel, request_task::RequestTask},
    json_fields::{each_field, text_field},
    server::McpServer,
    session::{
        peer::Peer,
        request_state::{RequestFingerprint, RequestState},
        session_id::SessionScope,
    },
};

/// URIs of stored results begin with this.
const RESULTS: &str = "toolyard://results/";

impl McpServer {
    /// Starts a tool call, or resumes a suspended one.
    pub(crate) fn call_tool(self: &Arc<Self>, mut incoming: IncomingRequest) -> Result<RequestTask, Outcome> {
        if incoming.params.name.is_none() {
            return Err(Outcome::error(error_code::INVALID_PARAMS, "params.name is missing"));
        }
        let (mut source, mut state) = (None, None);
        if let Some(sealed) =
            incoming.params.request_state.take().filter(|_| incoming.peer.family() == RevisionFamily::Modern)
        {
            match self.open_state(&incoming, &sealed) {
                Some(RequestState::Suspended { instance, number }) => {
                    return self.resume(&incoming, instance, number);
                }
                Some(RequestState::Upstream { source: asking, state: reminder }) => {
                    (source, state) = (Some(asking), reminder);
                }
                None => return Err(invalid_request_state()),
            }
        }
        let mut channel = self.open_channel(&incoming);
        let responses = incoming.params.input_responses.take();
        if responses.is_some() || source.is_some() {
            let responses = responses.unwrap_or_else(RawJson::empty_object);
            channel.provide_responses(&responses);
            channel.input_responses = Some(CallInputResponses { responses, state });
        }
        let channel = Arc::new(channel);
        let name = incoming.params.name.take().unwrap_or_default();
        let arguments = incoming.params.arguments.take().unwrap_or_else(RawJson::empty_object);
        let mut request = ToolCallRequest::new(name, arguments);
        request.source = source;
        let caller_name = Arc::clone(&incoming.peer.caller_name);
        let call = ServiceCall { request, caller: Some(Arc::clone(&channel) as _), caller_name };
        let (server, calling) = (Arc::clone(self), Arc::clone(&channel));
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            match incoming.endpoint.services.tools.call(&call).await {
                Ok(output) if output.input_required => {
                    server.forward_input_requests(&incoming.scope(), &calling, &call.request, output)
                }
                Ok(output) => output_outcome(output, &calling.peer),
                Err(error) => error_outcome(&error, &calling),
            }
        });
        Ok(RequestTask::new(channel, future))
    }

    /// Forwards the input requests of an upstream server, with its state sealed together with its source.
    fn forward_input_requests(
        &self,
        scope: &SessionScope<'_>,
        channel: &RequestChannel,
        request: &ToolCallRequest,
        output: ToolOutput,
    ) -> Outcome {
        let Some(raw) = output.raw else {
            return Outcome::error(
                error_code::INTERNAL_ERROR,
                "the tool requested input without input requests",
            );
        };
        if let Some(missing) = missing_capability_for(&raw, channel) {
            return missing_capability(missing);
        }
        let request = RequestFingerprint {
            method: "tools/call".to_owned(),
            target: request.tool_name.clone(),
            arguments: Some(request.arguments.clone()),
        };
        let source = output.meta.source.map(|source| source.to_string()).unwrap_or_default();
        let state = text_field(raw.get(), "requestState").map(Cow::into_owned);
        let sealed =
            RequestState::Upstream { source, state }.seal(&self.config.session_keys, scope, &request);
        let Some(sealed) = sealed else {
            return Outcome::error(error_code::INTERNAL_ERROR, "failed to seal requestState");
        };
        Outcome::result(with_state(&raw, &sealed))
    }
}

/// Replaces `requestState` in a result; the other fields stay unchanged.
fn with_state(raw: &RawJson, state: &str) -> String {
    let mut result = JsonObject::new();
    // Fields before a syntax error count.
    let _ = each_field(raw.get(), |key, value| {
        if key != "requestState" {
            result = std::mem::take(&mut result).with_raw(key, &raw.part(value));
        }
        Ok(())
    });
    let text = result.with_text("requestState", state).to_string();
    let mut bytes = text.into_bytes();
    toolyard_core::text::join_json_lines(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// The capability that an input request of the result needs and the client lacks.
fn missing_capability_for(raw: &RawJson, channel: &RequestChannel) -> Option<&'static str> {
    let mut missing = None;
    // Fields before a syntax error count.
    let _ = each_field(raw.get(), |key, value| {
        if key == "inputRequests" {
            each_field(value.get(), |_, request| {
                let method = text_field(request.get(), "method").unwrap_or_default();
                let mut params = None;
                each_field(request.get(), |key, value| {
                    if key == "params" {
                        params = Some(raw.part(value));
                    }
                    Ok(())
                })?;
                missing = missing
                    .or_else(|| channel.peer.capabilities.missing_capability_for(&method, params.as_ref()));
                Ok(())
            })?;
        }
        Ok(())
    });
    missing
}

/// The response to a successful call.
fn output_outcome(output: ToolOutput, peer: &Peer) -> Outcome {
    let family = peer.family();
    let is_plain = output.structured.as_ref().is_none_or(|structured| structured.get().starts_with('{'));
    match output.raw {
        // Before 2026-07-28, structured content is always an object.
        Some(raw) if is_plain || family == RevisionFamily::Modern => return Outcome::raw_result(raw, family),
        _ => {}
    }
    let mut result = JsonObject::new();
    if family == RevisionFamily::Modern {
        result = result.with_text("resultType", "complete");
    }
    let mut content = output.content;
    let reference = output.meta.truncation.as_ref().and_then(|omitted| omitted.reference.as_ref());
    if let Some(reference) = reference.filter(|_| peer.supports("2025-06-18")) {
        let uri = format!("{RESULTS}{reference}");
        content.push(ContentBlock::ResourceLink { uri, name: format!("the whole result {reference}") });
    }
    result = result.with_value("content", &json!(content));
    if let Some(structured) = &output.structured {
        result = match is_plain {
            true => result.with_raw("structuredContent", structured),
            false => {
                result.with_object("structuredContent", &JsonObject::new().with_raw("result", structured))
            }
        };
    }
    Outcome::result(result.to_string())
}

/// The response to a protocol error of an upstream server.
fn protocol_error_outcome(raw: &RawJson, family: RevisionFamily) -> Outcome {
    let mut code = None;
    // Fields before a syntax error count.
    let _ = each_field(raw.get(), |key, value| {
        if key == "code" {
            code = value.number::<i64>();
        }
        Ok(())
    });
    let is_missing = family == RevisionFamily::Modern && code == Some(error_code::MISSING_CAPABILITY);
    let status = if is_missing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Outcome::RawError { raw: raw.clone(), status }
}

/// The response to a failed call.
fn error_outcome(error: &ToolError, channel: &RequestChannel) -> Outcome {
    let peer = &channel.peer;
    if let Some(missing) = channel.missing_capability().filter(|_| peer.family() == RevisionFamily::Modern) {
        return missing_capability(missing);
    }
    match error.raw() {
        Some(RawToolError::ToolResult(raw)) => return Outcome::raw_result(raw.clone(), peer.family()),
        Some(RawToolError::Protocol(raw)) => return protocol_error_outcome(raw, peer.family()),
        None => {}
    }
    let hint = error.hint();
    match error.kind() {
        ErrorKind::UnknownTool | ErrorKind::UnknownSource => {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            Outcome::error(error_code::INVALID_PARAMS, format!("{error}{hint}"))
        }
        ErrorKind::InvalidArguments if !peer.supports("2025-11-25") => {
            Outcome::error(error_code::INVALID_PARAMS, error.to_string())
        }
        _ => {
            let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            let text = json!([{"type": "text", "text": format!("{error}{hint}")}]);
            let kind =
                if peer.family() == RevisionFamily::Modern { r#""resultType":"complete","# } else { "" };
            Outcome::result(format!(r#"{{{kind}"content":{text},"isError":true}}"#))
        }
    }
}
