//! `tools/call`: calls a tool and encodes its output or error.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::StatusCode;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallInputResponses, ContentBlock, ErrorKind, RawJson, RawToolError, RevisionFamily,
    ServiceCall, ToolCallRequest, ToolError, ToolOutput, sanitize, text::sanitize_json,
};
use toolyard_mcp::{FieldEdit, JsonObject, edit_fields, error_code, raw_field};

use crate::{
    dispatch::{
        incoming_request::IncomingRequest,
        outcome::{Outcome, RequiredFields, invalid_request_state, missing_capability_error},
        params::Meta,
        sign_in::is_accepted,
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
const RESULT_URI_PREFIX: &str = "toolyard://results/";
/// In `_meta` of a result whose structured content was shortened.
const STRUCTURED_TRUNCATED_META: &str = "toolyard/structuredTruncated";
/// The `_meta` key for what a program needs to know about an error of Toolyard.
const ERROR_META: &str = "toolyard/error";

/// How long a repeated call waits for the sign-in that it needs.
const MAX_SIGN_IN_WAIT: Duration = Duration::from_secs(60);

/// A call that is repeated after a request to sign in.
struct SignInRetry {
    is_accepted: bool,
    id: String,
}

impl McpServer {
    /// Starts a tool call, or resumes a suspended one.
    pub(crate) fn call_tool(self: &Arc<Self>, mut incoming: IncomingRequest) -> Result<RequestTask, Outcome> {
        if incoming.params.name.is_none() {
            return Err(Outcome::invalid_params("params.name is missing"));
        }
        let (mut source, mut state, mut sign_in) = (None, None, None);
        if let Some(sealed) =
            incoming.params.request_state.take().filter(|_| incoming.peer.family() == RevisionFamily::Modern)
        {
            match self.open_state(&incoming, &sealed) {
                Some(RequestState::Suspended { process_instance, call_id }) => {
                    return self.resume(&incoming, &sealed, process_instance, call_id);
                }
                Some(RequestState::Upstream { source: upstream, state: upstream_state }) => {
                    (source, state) = (Some(upstream), upstream_state);
                }
                Some(RequestState::SignIn { source: signed_in, id }) => {
                    // The responses are about our own request, not one of the source.
                    let responses = incoming.params.input_responses.take();
                    sign_in = Some(SignInRetry { is_accepted: is_accepted(responses.as_ref()), id });
                    source = Some(signed_in);
                }
                None => return Err(invalid_request_state()),
            }
        }
        let mut channel = self.open_channel(&incoming);
        channel.request_meta = incoming.params.meta.as_ref().and_then(Meta::forwarded_fields);
        let responses = incoming.params.input_responses.take();
        if sign_in.is_none() && (responses.is_some() || source.is_some()) {
            let responses = responses.unwrap_or_else(RawJson::empty_object);
            channel.provide_responses(&responses);
            channel.input_responses = Some(CallInputResponses { responses, state });
        }
        let channel = Arc::new(channel);
        let name = incoming.params.name.take().unwrap_or_default();
        let arguments = incoming.params.arguments.take().unwrap_or_else(RawJson::empty_object);
        let mut request = ToolCallRequest::new(name, arguments);
        request.source = source;
        let caller_name = incoming.caller_name();
        let call = ServiceCall { request, caller: Some(Arc::clone(&channel) as _), caller_name };
        let (server, call_channel) = (Arc::clone(self), Arc::clone(&channel));
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            if let Some(sign_in) = sign_in.as_ref().filter(|sign_in| sign_in.is_accepted) {
                // Clients repeat the call when the page is open; the person needs longer.
                let waiting = server.elicitations.wait(&sign_in.id);
                let _ = tokio::time::timeout(MAX_SIGN_IN_WAIT, waiting).await;
            }
            let may_ask = sign_in.as_ref().is_none_or(|sign_in| sign_in.is_accepted);
            let outcome = match incoming.endpoint.services.tools.call(&call).await {
                Ok(output) if output.input_required => {
                    server.forward_input_requests(&incoming.scope(), &call_channel, &call.request, output)
                }
                Ok(output) => output_outcome(output, &call_channel.peer),
                Err(error) => {
                    let asked = may_ask.then(|| {
                        server.sign_in_outcome(&incoming.scope(), &call_channel, &call.request, &error)
                    });
                    asked.flatten().unwrap_or_else(|| error_outcome(&error, &call_channel))
                }
            };
            outcome.sanitized().await
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
            return Outcome::internal_error("the tool requested input without input requests");
        };
        if let Some(missing) = missing_capability_for(&raw, channel) {
            return missing_capability_error(missing);
        }
        let fingerprint = RequestFingerprint {
            method: "tools/call".to_owned(),
            target: request.tool_name.clone(),
            arguments: Some(request.arguments.clone()),
        };
        let source = output.meta.source.map(|source| source.to_string()).unwrap_or_default();
        let state = text_field(raw.get(), "requestState").map(Cow::into_owned);
        let sealed =
            RequestState::Upstream { source, state }.seal(&self.config.session_keys, scope, &fingerprint);
        let Some(sealed) = sealed else {
            return Outcome::internal_error("failed to seal requestState");
        };
        Outcome::result(with_state(&sanitize_json(&raw).0, &sealed))
    }
}

/// Replaces `requestState` in a result; the other fields stay unchanged.
fn with_state(raw: &RawJson, state: &str) -> String {
    let others =
        edit_fields(raw, |key, _| if key == "requestState" { FieldEdit::Remove } else { FieldEdit::Keep });
    let mut bytes = others.with_text("requestState", state).to_string().into_bytes();
    toolyard_core::text::join_json_lines(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// The capability that an input request of the result needs and the client lacks.
fn missing_capability_for(raw: &RawJson, channel: &RequestChannel) -> Option<&'static str> {
    let requests = raw_field(raw, "inputRequests")?;
    let mut missing = None;
    // Fields before a syntax error count.
    let _ = each_field(requests.get(), |_, request| {
        let method = text_field(request.get(), "method").unwrap_or_default();
        let params = raw_field(&requests.part(request), "params");
        missing =
            missing.or_else(|| channel.peer.capabilities.missing_capability_for(&method, params.as_ref()));
        Ok(())
    });
    missing
}

fn output_outcome(output: ToolOutput, peer: &Peer) -> Outcome {
    let family = peer.family();
    let is_none_or_object =
        output.structured.as_ref().is_none_or(|structured| structured.get().starts_with('{'));
    match output.raw {
        // Before 2026-07-28, structured content is always an object.
        Some(raw) if is_none_or_object || family == RevisionFamily::Modern => {
            return Outcome::raw_result(raw, family);
        }
        _ => {}
    }
    let mut result = JsonObject::new();
    if family == RevisionFamily::Modern {
        result = result.with_text("resultType", "complete");
    }
    let mut content = output.content;
    let reference = output.meta.truncation.as_ref().and_then(|truncation| truncation.reference.as_ref());
    if let Some(reference) = reference.filter(|_| peer.supports("2025-06-18")) {
        let uri = format!("{RESULT_URI_PREFIX}{reference}");
        content.push(ContentBlock::ResourceLink { uri, name: format!("the whole result {reference}") });
    }
    result = result.with_value("content", &json!(content));
    if let Some(structured) = &output.structured {
        result = match is_none_or_object {
            true => result.with_raw("structuredContent", structured),
            false => {
                result.with_object("structuredContent", &JsonObject::new().with_raw("result", structured))
            }
        };
    }
    if output.meta.structured_truncated {
        result = result.with_value("_meta", &json!({ STRUCTURED_TRUNCATED_META: true }));
    }
    Outcome::RawResult { raw: result.to_raw(), required: RequiredFields::None }
}

fn protocol_error_outcome(raw: &RawJson, family: RevisionFamily) -> Outcome {
    let code = raw_field(raw, "code").and_then(|code| code.get().parse().ok());
    let is_missing_capability =
        family == RevisionFamily::Modern && code == Some(error_code::MISSING_CAPABILITY);
    let status = if is_missing_capability { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Outcome::RawError { raw: raw.clone(), status }
}

fn error_outcome(error: &ToolError, channel: &RequestChannel) -> Outcome {
    let peer = &channel.peer;
    if let Some(missing) = channel.missing_capability().filter(|_| peer.family() == RevisionFamily::Modern) {
        return missing_capability_error(missing);
    }
    match error.raw() {
        Some(RawToolError::ToolResult(raw)) => {
            channel.is_tool_error.store(true, Ordering::Relaxed);
            return Outcome::raw_result(raw.clone(), peer.family());
        }
        Some(RawToolError::Protocol(raw)) => return protocol_error_outcome(raw, peer.family()),
        None => {}
    }
    if error.kind() == ErrorKind::Quarantined {
        // Clients cannot approve it, so the operator has to learn that somebody wants it.
        let trace_id = channel.span.map(|span| format!("{:032x}", span.trace_id));
        tracing::warn!(%error, hint = error.hint(), trace_id, "call refused");
    }
    let hint = error.caller_hint();
    match error.kind() {
        ErrorKind::UnknownTool | ErrorKind::UnknownSource => {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            Outcome::invalid_params(format!("{error}{hint}"))
        }
        ErrorKind::InvalidArguments if !peer.supports("2025-11-25") => {
            Outcome::invalid_params(error.to_string())
        }
        _ => {
            channel.is_tool_error.store(true, Ordering::Relaxed);
            let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            let text = json!([{"type": "text", "text": sanitize(&format!("{error}{hint}")).0}]);
            let result_type =
                if peer.family() == RevisionFamily::Modern { r#""resultType":"complete","# } else { "" };
            let meta = match (error.kind(), error.retry_after()) {
                (ErrorKind::QuotaExceeded, Some(delay)) => retry_meta(error, delay),
                _ => String::new(),
            };
            Outcome::result(format!(r#"{{{result_type}"content":{text},{meta}"isError":true}}"#))
        }
    }
}

/// What a program needs to repeat a refused call at the right time: the field `_meta`, followed by a comma.
fn retry_meta(error: &ToolError, delay: Duration) -> String {
    let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    let error = json!({"kind": error.kind(), "retryable": error.retryable(), "retry_after_ms": milliseconds});
    format!(r#""_meta":{},"#, json!({ ERROR_META: error }))
}
