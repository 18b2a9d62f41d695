//! [`SpanEncoder`]: an operation as a span of OTLP, with the names of the OpenTelemetry conventions for MCP and generative AI.
//!
//! Spans are written without intermediate structures: that takes a small part of the instructions that the exporter of the
//! OpenTelemetry SDK takes (docs/design/0023-console-and-telemetry.md).

use std::{
    borrow::Cow,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use hashbrown::HashMap;
use toolyard_core::{
    RawJson, redact, redact_json,
    telemetry::{CallContent, Operation, OperationKind, OperationSpan, Transport},
};

use super::protobuf::{
    field_length, uint_length, write_bytes, write_fixed_32, write_fixed_64, write_header, write_uint,
};

/// Longer content is truncated: receivers have limits.
const MAX_CONTENT_BYTES: usize = 16 << 10;
/// A shorter text matches no format of secrets.
const MIN_SECRET_BYTES: usize = 12;
/// Descriptions that are kept. Clients choose names, so there may be any number.
const MAX_DESCRIPTIONS: usize = 1_024;

/// Fields of `Span`.
const TRACE_ID: u32 = 1;
const SPAN_ID: u32 = 2;
const PARENT_SPAN_ID: u32 = 4;
const NAME: u32 = 5;
const KIND: u32 = 6;
const START_TIME: u32 = 7;
const END_TIME: u32 = 8;
const ATTRIBUTES: u32 = 9;
const STATUS: u32 = 15;
const FLAGS: u32 = 16;
/// Bits of `flags`.
const SAMPLED: u32 = 1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
/// A `Status` whose code is `STATUS_CODE_ERROR`.
const ERROR_STATUS: [u8; 2] = [3 << 3, 2];

/// `SpanKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// Encodes operations as spans.
///
/// Most spans are like many before: the same tool of the same server, called by the same client. What they have in common (name,
/// kind and most attributes) is encoded once and copied.
#[derive(Debug, Default)]
pub(super) struct SpanEncoder {
    descriptions: HashMap<Box<[u8]>, Box<[u8]>>,
    /// Reused for every lookup.
    key: Vec<u8>,
}

impl SpanEncoder {
    /// Writes the message `Span` of an operation. Returns false for an operation without a place in a trace.
    pub(super) fn encode(&mut self, operation: &Operation, output: &mut Vec<u8>) -> bool {
        let Some(OperationSpan { context, parent }) = operation.span else { return false };
        output.reserve(1 << 10);
        write_bytes(output, TRACE_ID, &context.trace_id.get().to_be_bytes());
        write_bytes(output, SPAN_ID, &context.span_id.get().to_be_bytes());
        if let Some(parent) = parent {
            write_bytes(output, PARENT_SPAN_ID, &parent.span_id.get().to_be_bytes());
        }
        let start = nanoseconds(operation.started_at);
        let duration = u64::try_from(operation.duration.as_nanos()).unwrap_or(u64::MAX);
        write_fixed_64(output, START_TIME, start);
        write_fixed_64(output, END_TIME, start.saturating_add(duration));
        self.write_description(&operation.kind, output);
        write_details(&operation.kind, &mut Attributes(output));
        if let Some(error) = &operation.error_type {
            let mut attributes = Attributes(output);
            attributes.add("error.type", &**error);
            let is_rpc = matches!(
                operation.kind,
                OperationKind::ServerRequest { .. } | OperationKind::ClientRequest { .. }
            );
            // The code of a JSON-RPC error.
            if is_rpc && error.parse::<i64>().is_ok() {
                attributes.add("rpc.response.status_code", &**error);
            }
            write_bytes(output, STATUS, &ERROR_STATUS);
        }
        let sampled = if context.is_sampled { SAMPLED } else { 0 };
        let is_server = span_kind(&operation.kind) == SpanKind::Server;
        let remote = if parent.is_some() && is_server { IS_REMOTE } else { 0 };
        write_fixed_32(output, FLAGS, sampled | HAS_IS_REMOTE | remote);
        true
    }

    /// Writes what the span has in common with others: its name, kind and most attributes.
    fn write_description(&mut self, kind: &OperationKind, output: &mut Vec<u8>) {
        self.key.clear();
        write_key(kind, &mut self.key);
        if let Some(description) = self.descriptions.get(self.key.as_slice()) {
            output.extend_from_slice(description);
            return;
        }
        let mut description = Vec::new();
        describe(kind, &mut Attributes(&mut description));
        write_uint(&mut description, KIND, span_kind(kind) as u64);
        output.extend_from_slice(&description);
        if self.descriptions.len() >= MAX_DESCRIPTIONS {
            self.descriptions.clear();
        }
        self.descriptions.insert(self.key.as_slice().into(), description.into());
    }
}

fn span_kind(kind: &OperationKind) -> SpanKind {
    match kind {
        OperationKind::ServerRequest { .. } | OperationKind::HttpRequest { .. } => SpanKind::Server,
        OperationKind::ClientRequest { .. } | OperationKind::ModelCall { .. } => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}

/// Writes what [`describe`] depends on.
fn write_key(kind: &OperationKind, key: &mut Vec<u8>) {
    let mut add = |text: Option<&str>| {
        // Distinguishes an absent text from an empty one, and where one ends.
        key.push(if text.is_some() { 1 } else { 2 });
        key.extend_from_slice(text.unwrap_or_default().as_bytes());
        key.push(0);
    };
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
            add(Some(if *transport == Transport::Http { "server http" } else { "server pipe" }));
            add(Some(method));
            add(Some(revision));
            [target, resource, caller, client].into_iter().for_each(|text| add(text.as_deref()));
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
            add(Some(if *transport == Transport::Http { "client http" } else { "client pipe" }));
            add(Some(method));
            add(target.as_deref());
            add(resource.as_deref());
            add(Some(revision));
            add(Some(server.as_str()));
            if let Some((address, port)) = address {
                add(Some(address));
                key.extend_from_slice(&port.to_le_bytes());
            }
        }
        OperationKind::ToolCall { tool, source, .. } => {
            add(Some("call"));
            add(Some(tool));
            add(source.as_ref().map(toolyard_core::SourceId::as_str));
        }
        OperationKind::HttpRequest { method, route, .. } => {
            add(Some("http"));
            add(Some(method));
            add(route.as_deref());
        }
        OperationKind::AgentRun { agent, .. } => [Some("run"), Some(&**agent)].into_iter().for_each(add),
        OperationKind::Planning { agent } => [Some("plan"), Some(&**agent)].into_iter().for_each(add),
        OperationKind::Step { tool, step, .. } => {
            add(Some("step"));
            add(tool.as_deref());
            add(Some(step));
        }
        OperationKind::ModelCall { provider, model, .. } => {
            add(Some("model"));
            add(Some(provider));
            add(Some(model));
        }
        _ => add(None),
    }
}

/// Writes name and attributes, except for those of [`write_details`].
fn describe(kind: &OperationKind, span: &mut Attributes<'_>) {
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
            span.add("toolyard.server", server.as_str());
            if let Some((address, port)) = address {
                span.add("server.address", &**address);
                span.add("server.port", u64::from(*port));
            }
        }
        OperationKind::ToolCall { tool, source, .. } => {
            let tool = redact(tool);
            span.set_name("execute_tool", Some(&tool));
            span.add("gen_ai.operation.name", "execute_tool");
            span.add("gen_ai.tool.name", &*tool);
            if let Some(source) = source {
                span.add("toolyard.source", source.as_str());
            }
        }
        OperationKind::HttpRequest { method, route, .. } => {
            let name = if method == "_OTHER" { "HTTP" } else { method };
            span.set_name(name, route.as_deref());
            span.add("http.request.method", &**method);
            // The gateway does not terminate TLS.
            span.add("url.scheme", "http");
            if let Some(route) = route {
                span.add("http.route", &**route);
            }
        }
        OperationKind::AgentRun { agent, .. } => describe_agent("invoke_agent", agent, span),
        OperationKind::Planning { agent } => describe_agent("plan", agent, span),
        OperationKind::Step { tool, step, .. } => {
            // A model chooses both.
            let step = redact(step);
            span.set_name("step", Some(&step));
            span.add("toolyard.step.id", &*step);
            if let Some(tool) = tool {
                span.add("gen_ai.tool.name", &*redact(tool));
            }
        }
        OperationKind::ModelCall { provider, model, .. } => {
            span.set_name("chat", Some(model));
            span.add("gen_ai.operation.name", "chat");
            span.add("gen_ai.provider.name", &**provider);
            span.add("gen_ai.request.model", &**model);
        }
        _ => span.set_name("unknown", None),
    }
}

fn describe_sender(caller: Option<&str>, client: Option<&str>, span: &mut Attributes<'_>) {
    for (key, name) in [("toolyard.caller", caller), ("toolyard.client", client)] {
        if let Some(name) = name {
            span.add(key, &*redact(name));
        }
    }
}

/// Writes the attributes that differ from one span to the next.
fn write_details(kind: &OperationKind, span: &mut Attributes<'_>) {
    match kind {
        OperationKind::ServerRequest { request_id: Some(id), .. } => {
            span.add("jsonrpc.request.id", &*redacted_id(id));
        }
        OperationKind::ClientRequest { request_id: Some(id), .. } => {
            span.add("jsonrpc.request.id", &*id.to_string());
        }
        OperationKind::ToolCall { attempts, content, .. } => {
            span.add("toolyard.attempts", u64::from(*attempts));
            if let Some(CallContent { arguments, result }) = content.as_deref() {
                let arguments = arguments.clone().and_then(|arguments| RawJson::parse(arguments).ok());
                if let Some(arguments) = arguments {
                    span.add("gen_ai.tool.call.arguments", &*truncated(redact_json(&arguments).0.get()));
                }
                span.add("gen_ai.tool.call.result", &*truncated(&redact(result)));
            }
        }
        OperationKind::HttpRequest { path, status, caller, .. } => {
            span.add("url.path", &*redact(path));
            if let Some(caller) = caller {
                span.add("toolyard.caller", &*redact(caller));
            }
            if let Some(status) = status {
                span.add("http.response.status_code", u64::from(*status));
            }
        }
        OperationKind::AgentRun { run, conversation, .. } => {
            span.add("toolyard.run.id", run.as_str());
            if let Some(conversation) = conversation {
                span.add("gen_ai.conversation.id", &*redact(conversation));
            }
        }
        OperationKind::ModelCall { max_tokens, finish_reason, usage, cost, .. } => {
            if let Some(limit) = max_tokens {
                span.add("gen_ai.request.max_tokens", u64::from(*limit));
            }
            if let Some(reason) = finish_reason {
                span.add("gen_ai.response.finish_reasons", Value::TextList(reason));
            }
            span.add("gen_ai.usage.input_tokens", usage.input);
            span.add("gen_ai.usage.output_tokens", usage.output);
            if let Some(cost) = cost {
                span.add("toolyard.cost", Value::Number(*cost));
            }
        }
        _ => {}
    }
}

fn describe_agent(operation: &str, agent: &str, span: &mut Attributes<'_>) {
    span.set_name(operation, Some(agent));
    span.add("gen_ai.operation.name", operation);
    span.add("gen_ai.agent.name", agent);
}

/// A request of MCP, in either direction.
struct Request<'a> {
    method: &'a str,
    target: &'a Option<Arc<str>>,
    resource: &'a Option<Arc<str>>,
    revision: &'a str,
    transport: Transport,
}

fn describe_request(request: &Request<'_>, span: &mut Attributes<'_>) {
    let Request { method, target, resource, revision, transport } = request;
    let target = target.as_deref().map(redact);
    span.set_name(method, target.as_deref());
    match (*method, target) {
        ("tools/call", tool) => {
            span.add("gen_ai.operation.name", "execute_tool");
            if let Some(tool) = tool {
                span.add("gen_ai.tool.name", &*tool);
            }
        }
        ("prompts/get", Some(prompt)) => span.add("gen_ai.prompt.name", &*prompt),
        _ => {}
    }
    span.add("mcp.method.name", *method);
    if !revision.is_empty() {
        span.add("mcp.protocol.version", *revision);
    }
    if let Some(uri) = resource {
        span.add("mcp.resource.uri", &*redact(uri));
    }
    match transport {
        Transport::Http => {
            span.add("network.transport", "tcp");
            span.add("network.protocol.name", "http");
        }
        _ => span.add("network.transport", "pipe"),
    }
}

/// Writes the name and attributes of a span.
struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    /// Writes the name of the span: the operation, and what it is about.
    fn set_name(&mut self, operation: &str, subject: Option<&str>) {
        match subject {
            Some(subject) => write_bytes(self.0, NAME, [operation, " ", subject].concat().as_bytes()),
            None => write_bytes(self.0, NAME, operation.as_bytes()),
        }
    }

    fn add<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        attribute(self.0, ATTRIBUTES, name, value.into());
    }
}

/// The value of an attribute, `AnyValue`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Text(&'a str),
    /// A list with this text.
    TextList(&'a str),
    Integer(u64),
    Number(f64),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        // `int_value` is signed.
        Self::Integer(number.min(i64::MAX.unsigned_abs()))
    }
}

/// Writes an attribute, `KeyValue`.
pub(super) fn attribute(output: &mut Vec<u8>, field: u32, name: &str, value: Value<'_>) {
    const KEY: u32 = 1;
    const VALUE: u32 = 2;
    const STRING_VALUE: u32 = 1;
    const INT_VALUE: u32 = 3;
    const DOUBLE_VALUE: u32 = 4;
    const ARRAY_VALUE: u32 = 5;
    const ARRAY_VALUES: u32 = 1;
    let value_length = match value {
        Value::Text(text) => field_length(STRING_VALUE, text.len()),
        Value::TextList(text) => {
            let values = field_length(ARRAY_VALUES, field_length(STRING_VALUE, text.len()));
            field_length(ARRAY_VALUE, values)
        }
        Value::Integer(number) => uint_length(INT_VALUE, number),
        Value::Number(_) => 9,
    };
    let length = field_length(KEY, name.len()) + field_length(VALUE, value_length);
    output.reserve(field_length(field, length));
    write_header(output, field, length);
    write_bytes(output, KEY, name.as_bytes());
    write_header(output, VALUE, value_length);
    match value {
        Value::Text(text) => write_bytes(output, STRING_VALUE, text.as_bytes()),
        Value::TextList(text) => {
            let length = field_length(STRING_VALUE, text.len());
            write_header(output, ARRAY_VALUE, field_length(ARRAY_VALUES, length));
            write_header(output, ARRAY_VALUES, length);
            write_bytes(output, STRING_VALUE, text.as_bytes());
        }
        Value::Integer(number) => write_uint(output, INT_VALUE, number),
        Value::Number(number) => write_fixed_64(output, DOUBLE_VALUE, number.to_bits()),
    }
}

/// The id of a request, which clients choose. A number is no secret.
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
