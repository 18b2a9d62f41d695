//! An operation as a span of OTLP, with the names of the OpenTelemetry conventions for MCP and generative AI.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value},
    trace::v1::{Span, Status, span::SpanKind, status::StatusCode},
};
use toolyard_core::{
    RawJson, redact, redact_json,
    telemetry::{CallContent, Operation, OperationKind, OperationSpan, Transport},
};

/// Longer content is truncated: receivers have limits.
const MAX_CONTENT_BYTES: usize = 16 << 10;
/// A shorter text matches no format of secrets.
const MIN_SECRET_BYTES: usize = 12;

/// Bits of the field `flags`.
const SAMPLED: u32 = 1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The span of an operation. `None` for an operation without a place in a trace.
pub(super) fn span_of(operation: &Operation) -> Option<Span> {
    let OperationSpan { context, parent } = operation.span?;
    let start = nanoseconds(operation.started_at);
    let duration = u64::try_from(operation.duration.as_nanos()).unwrap_or(u64::MAX);
    let kind = span_kind(&operation.kind);
    let sampled = if context.is_sampled { SAMPLED } else { 0 };
    let remote = if parent.is_some() && kind == SpanKind::Server { IS_REMOTE } else { 0 };
    let mut span = Span {
        trace_id: context.trace_id.get().to_be_bytes().to_vec(),
        span_id: context.span_id.get().to_be_bytes().to_vec(),
        parent_span_id: parent.map(|parent| parent.span_id.get().to_be_bytes().to_vec()).unwrap_or_default(),
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(duration),
        kind: kind.into(),
        flags: sampled | HAS_IS_REMOTE | remote,
        ..Span::default()
    };
    describe(&operation.kind, &mut span);
    add_details(&operation.kind, &mut span);
    if let Some(error) = &operation.error_type {
        add(&mut span, "error.type", error);
        let is_rpc = matches!(
            operation.kind,
            OperationKind::ServerRequest { .. } | OperationKind::ClientRequest { .. }
        );
        // The code of a JSON-RPC error.
        if is_rpc && error.parse::<i64>().is_ok() {
            add(&mut span, "rpc.response.status_code", error);
        }
        span.status = Some(Status { code: StatusCode::Error.into(), ..Status::default() });
    }
    Some(span)
}

fn span_kind(kind: &OperationKind) -> SpanKind {
    match kind {
        OperationKind::ServerRequest { .. } | OperationKind::HttpRequest { .. } => SpanKind::Server,
        OperationKind::ClientRequest { .. } | OperationKind::ModelCall { .. } => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}

/// Sets the name, and the attributes that most spans of the same tool, request or agent have in common.
fn describe(kind: &OperationKind, span: &mut Span) {
    match kind {
        OperationKind::ServerRequest {
            method,
            target,
            resource,
            revision,
            transport,
            caller,
            client,
            ..
        } => {
            describe_request(&Request { method, target, resource, revision, transport: *transport }, span);
            describe_sender(caller.as_deref(), client.as_deref(), span);
        }
        OperationKind::ClientRequest {
            method,
            target,
            resource,
            revision,
            server,
            transport,
            address,
            ..
        } => {
            describe_request(&Request { method, target, resource, revision, transport: *transport }, span);
            add(span, "toolyard.server", server.as_str());
            if let Some((address, port)) = address {
                add(span, "server.address", address);
                add_integer(span, "server.port", *port);
            }
        }
        OperationKind::ToolCall { tool, source, .. } => {
            let tool = redact(tool);
            set_name(span, "execute_tool", Some(&tool));
            add(span, "gen_ai.operation.name", "execute_tool");
            add(span, "gen_ai.tool.name", &tool);
            if let Some(source) = source {
                add(span, "toolyard.source", source.as_str());
            }
        }
        OperationKind::HttpRequest { method, route, .. } => {
            let name = if method == "_OTHER" { "HTTP" } else { method };
            set_name(span, name, route.as_deref());
            add(span, "http.request.method", method);
            // The gateway does not terminate TLS.
            add(span, "url.scheme", "http");
            if let Some(route) = route {
                add(span, "http.route", route);
            }
        }
        OperationKind::AgentRun { agent, .. } => describe_agent("invoke_agent", agent, span),
        OperationKind::Planning { agent } => describe_agent("plan", agent, span),
        OperationKind::Step { tool, step, .. } => {
            // A model chooses both.
            let step = redact(step);
            set_name(span, "step", Some(&step));
            add(span, "toolyard.step.id", &step);
            if let Some(tool) = tool {
                add(span, "gen_ai.tool.name", &redact(tool));
            }
        }
        OperationKind::ModelCall { provider, model, .. } => {
            set_name(span, "chat", Some(model));
            add(span, "gen_ai.operation.name", "chat");
            add(span, "gen_ai.provider.name", provider);
            add(span, "gen_ai.request.model", model);
        }
        _ => set_name(span, "unknown", None),
    }
}

fn describe_sender(caller: Option<&str>, client: Option<&str>, span: &mut Span) {
    for (key, name) in [("toolyard.caller", caller), ("toolyard.client", client)] {
        if let Some(name) = name {
            add(span, key, &redact(name));
        }
    }
}

/// Adds the attributes that differ from one span to the next.
fn add_details(kind: &OperationKind, span: &mut Span) {
    match kind {
        OperationKind::ServerRequest { request_id: Some(id), .. } => {
            add(span, "jsonrpc.request.id", &redacted_id(id));
        }
        OperationKind::ClientRequest { request_id: Some(id), .. } => {
            add(span, "jsonrpc.request.id", &id.to_string());
        }
        OperationKind::ToolCall { attempts, call, content, .. } => {
            add_integer(span, "toolyard.attempts", *attempts);
            if let Some(call) = call {
                add(span, "toolyard.call.id", &redacted_id(call));
            }
            if let Some(CallContent { arguments, result }) = content.as_deref() {
                let arguments = arguments.clone().and_then(|arguments| RawJson::parse(arguments).ok());
                if let Some(arguments) = arguments {
                    add(span, "gen_ai.tool.call.arguments", &truncated(redact_json(&arguments).0.get()));
                }
                add(span, "gen_ai.tool.call.result", &truncated(&redact(result)));
            }
        }
        OperationKind::HttpRequest { path, status, caller, .. } => {
            add(span, "url.path", &redact(path));
            if let Some(caller) = caller {
                add(span, "toolyard.caller", &redact(caller));
            }
            if let Some(status) = status {
                add_integer(span, "http.response.status_code", *status);
            }
        }
        OperationKind::AgentRun { run, conversation, .. } => {
            add(span, "toolyard.run.id", run.as_str());
            if let Some(conversation) = conversation {
                add(span, "gen_ai.conversation.id", &redact(conversation));
            }
        }
        OperationKind::ModelCall { max_tokens, finish_reason, usage, cost, .. } => {
            if let Some(limit) = max_tokens {
                add_integer(span, "gen_ai.request.max_tokens", *limit);
            }
            if let Some(reason) = finish_reason {
                span.attributes.push(attribute("gen_ai.response.finish_reasons", text_list(reason)));
            }
            add_integer(span, "gen_ai.usage.input_tokens", token_count(usage.input));
            add_integer(span, "gen_ai.usage.output_tokens", token_count(usage.output));
            if let Some(cost) = cost {
                span.attributes.push(attribute("toolyard.cost", any_value::Value::DoubleValue(*cost)));
            }
        }
        _ => {}
    }
}

fn describe_agent(operation: &str, agent: &str, span: &mut Span) {
    set_name(span, operation, Some(agent));
    add(span, "gen_ai.operation.name", operation);
    add(span, "gen_ai.agent.name", agent);
}

/// A request of MCP, in either direction.
struct Request<'a> {
    method: &'a str,
    target: &'a Option<Arc<str>>,
    resource: &'a Option<Arc<str>>,
    revision: &'a str,
    transport: Transport,
}

fn describe_request(request: &Request<'_>, span: &mut Span) {
    let Request { method, target, resource, revision, transport } = request;
    let target = target.as_deref().map(redact);
    set_name(span, method, target.as_deref());
    match (*method, target) {
        ("tools/call", tool) => {
            add(span, "gen_ai.operation.name", "execute_tool");
            if let Some(tool) = tool {
                add(span, "gen_ai.tool.name", &tool);
            }
        }
        ("prompts/get", Some(prompt)) => add(span, "gen_ai.prompt.name", &prompt),
        _ => {}
    }
    add(span, "mcp.method.name", method);
    if !revision.is_empty() {
        add(span, "mcp.protocol.version", revision);
    }
    if let Some(uri) = resource {
        add(span, "mcp.resource.uri", &redact(uri));
    }
    match transport {
        Transport::Http => {
            add(span, "network.transport", "tcp");
            add(span, "network.protocol.name", "http");
        }
        _ => add(span, "network.transport", "pipe"),
    }
}

/// Sets the name of the span: the operation, and what it is about.
fn set_name(span: &mut Span, operation: &str, subject: Option<&str>) {
    span.name = match subject {
        Some(subject) => [operation, " ", subject].concat(),
        None => operation.to_owned(),
    };
}

fn add(span: &mut Span, name: &str, text: &str) {
    span.attributes.push(text_attribute(name, text));
}

fn add_integer(span: &mut Span, name: &str, number: impl Into<i64>) {
    span.attributes.push(attribute(name, any_value::Value::IntValue(number.into())));
}

pub(super) fn text_attribute(name: &str, text: &str) -> KeyValue {
    attribute(name, any_value::Value::StringValue(text.to_owned()))
}

fn attribute(name: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// A list with this text.
fn text_list(text: &str) -> any_value::Value {
    let values = vec![AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) }];
    any_value::Value::ArrayValue(ArrayValue { values })
}

/// Integers of OTLP are signed.
fn token_count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// The id of a request or call, which clients choose. A number is no secret.
fn redacted_id(id: &str) -> Cow<'_, str> {
    if id.len() < MIN_SECRET_BYTES { Cow::Borrowed(id) } else { redact(id) }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn truncated(text: &str) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(MAX_CONTENT_BYTES)) {
        Some(start) if start.len() < text.len() => format!("{start}…").into(),
        _ => text.into(),
    }
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
