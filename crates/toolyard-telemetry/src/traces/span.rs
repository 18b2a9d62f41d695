//! [`SpanEncoder`]: an operation as a span of OTLP, with the names of the OpenTelemetry conventions for MCP and generative AI.
//!
//! Spans are written without intermediate structures: that takes a small part of the instructions that the exporter of the
//! OpenTelemetry SDK takes (docs/design/0023-console-and-telemetry.md).

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use toolyard_core::{
    redact, redact_json,
    telemetry::{CallContent, Operation, OperationKind, OperationSpan, Transport},
};

use super::protobuf::{
    field_length, uint_length, write_bytes, write_fixed_32, write_fixed_64, write_header, write_uint,
};

/// Longer content is truncated: receivers have limits.
const MAX_CONTENT_BYTES: usize = 16 << 10;
/// A shorter text matches no format of secrets.
const MIN_SECRET_BYTES: usize = 12;
/// Names whose redacted form is remembered. Clients choose names, so there may be any number.
const MAX_REMEMBERED_NAMES: usize = 1_024;

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
#[derive(Debug, Default)]
pub(super) struct SpanEncoder {
    names: RedactedNames,
    /// Reused for every name.
    name: String,
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
        let kind = self.describe(&operation.kind, Attributes(output));
        write_bytes(output, NAME, self.name.as_bytes());
        write_uint(output, KIND, kind as u64);
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
        let remote = if parent.is_some() && kind == SpanKind::Server { IS_REMOTE } else { 0 };
        write_fixed_32(output, FLAGS, sampled | HAS_IS_REMOTE | remote);
        true
    }

    fn set_name(&mut self, operation: &str, subject: Option<&str>) {
        self.name.clear();
        self.name.push_str(operation);
        if let Some(subject) = subject {
            self.name.push(' ');
            self.name.push_str(subject);
        }
    }

    /// Sets the name, writes the attributes and returns the kind.
    fn describe(&mut self, kind: &OperationKind, mut span: Attributes<'_>) -> SpanKind {
        match kind {
            OperationKind::ServerRequest {
                method,
                target,
                resource,
                revision,
                request_id,
                transport,
                caller,
            } => {
                let request = Request {
                    method,
                    target,
                    resource,
                    revision,
                    transport: *transport,
                    kind: SpanKind::Server,
                };
                self.describe_request(&request, &mut span);
                if let Some(id) = request_id {
                    span.add("jsonrpc.request.id", &*redacted_id(id));
                }
                if let Some(caller) = caller {
                    span.add("toolyard.caller", &*self.names.redact(caller));
                }
                request.kind
            }
            OperationKind::ClientRequest {
                method,
                target,
                resource,
                revision,
                server,
                request_id,
                transport,
                address,
            } => {
                let request = Request {
                    method,
                    target,
                    resource,
                    revision,
                    transport: *transport,
                    kind: SpanKind::Client,
                };
                self.describe_request(&request, &mut span);
                span.add("jsonrpc.request.id", &*request_id.to_string());
                span.add("toolyard.server", server.as_str());
                if let Some((address, port)) = address {
                    span.add("server.address", &**address);
                    span.add("server.port", u64::from(*port));
                }
                request.kind
            }
            kind => self.describe_internal_operation(kind, span),
        }
    }

    /// Calls in the hub, operations of agents, and requests to the HTTP API.
    fn describe_internal_operation(&mut self, kind: &OperationKind, mut span: Attributes<'_>) -> SpanKind {
        match kind {
            OperationKind::ToolCall { tool, source, attempts, content } => {
                let tool = self.names.redact(tool);
                self.set_name("execute_tool", Some(&tool));
                span.add("gen_ai.operation.name", "execute_tool");
                span.add("gen_ai.tool.name", &*tool);
                span.add("toolyard.attempts", u64::from(*attempts));
                if let Some(source) = source {
                    span.add("toolyard.source", source.as_str());
                }
                if let Some(CallContent { arguments, result }) = content.as_deref() {
                    span.add("gen_ai.tool.call.arguments", &*truncated(redact_json(arguments).0.get()));
                    span.add("gen_ai.tool.call.result", &*truncated(&redact(result)));
                }
                SpanKind::Internal
            }
            OperationKind::HttpRequest { method, route, status } => {
                self.set_name(method, Some(route));
                span.add("http.request.method", &**method);
                span.add("http.route", &**route);
                if *status != 0 {
                    span.add("http.response.status_code", u64::from(*status));
                }
                SpanKind::Server
            }
            OperationKind::AgentRun { agent, run } => {
                self.describe_agent("invoke_agent", agent, &mut span);
                span.add("toolyard.run.id", run.as_str());
                SpanKind::Internal
            }
            OperationKind::Planning { agent } => {
                self.describe_agent("plan", agent, &mut span);
                SpanKind::Internal
            }
            OperationKind::Step { tool, step } => {
                // A model chooses both.
                let step = self.names.redact(step);
                self.set_name("step", Some(&step));
                span.add("toolyard.step.id", &*step);
                if let Some(tool) = tool {
                    span.add("gen_ai.tool.name", &*self.names.redact(tool));
                }
                SpanKind::Internal
            }
            OperationKind::ModelCall { provider, model, usage, cost_usd } => {
                self.set_name("chat", Some(model));
                span.add("gen_ai.operation.name", "chat");
                span.add("gen_ai.provider.name", &**provider);
                span.add("gen_ai.request.model", &**model);
                span.add("gen_ai.usage.input_tokens", usage.input);
                span.add("gen_ai.usage.output_tokens", usage.output);
                if let Some(cost) = cost_usd {
                    span.add("toolyard.cost", Value::Number(*cost));
                }
                SpanKind::Client
            }
            _ => {
                self.set_name("unknown", None);
                SpanKind::Internal
            }
        }
    }

    fn describe_agent(&mut self, operation: &str, agent: &str, span: &mut Attributes<'_>) {
        self.set_name(operation, Some(agent));
        span.add("gen_ai.operation.name", operation);
        span.add("gen_ai.agent.name", agent);
    }

    fn describe_request(&mut self, request: &Request<'_>, span: &mut Attributes<'_>) {
        let Request { method, target, resource, revision, transport, kind: _ } = request;
        let target = target.as_ref().map(|target| self.names.redact(target));
        self.set_name(method, target.as_deref());
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
            span.add("mcp.resource.uri", &*self.names.redact(uri));
        }
        match transport {
            Transport::Http => {
                span.add("network.transport", "tcp");
                span.add("network.protocol.name", "http");
            }
            _ => span.add("network.transport", "pipe"),
        }
    }
}

/// A request of MCP, in either direction.
struct Request<'a> {
    method: &'a str,
    target: &'a Option<Arc<str>>,
    resource: &'a Option<Arc<str>>,
    revision: &'a str,
    transport: Transport,
    kind: SpanKind,
}

/// Writes the attributes of a span.
struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    fn add<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        attribute(self.0, ATTRIBUTES, name, value.into());
    }
}

/// The value of an attribute, `AnyValue`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Text(&'a str),
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
    let value_length = match value {
        Value::Text(text) => field_length(STRING_VALUE, text.len()),
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

/// Names without known secrets. Clients choose names; most calls use the same few, for which the search is done once.
#[derive(Debug, Default)]
struct RedactedNames(HashMap<Arc<str>, Arc<str>>);

impl RedactedNames {
    fn redact(&mut self, name: &Arc<str>) -> Arc<str> {
        if let Some(redacted) = self.0.get(name) {
            return Arc::clone(redacted);
        }
        let redacted = match redact(name) {
            Cow::Borrowed(_) => Arc::clone(name),
            Cow::Owned(redacted) => redacted.into(),
        };
        if self.0.len() >= MAX_REMEMBERED_NAMES {
            self.0.clear();
        }
        self.0.insert(Arc::clone(name), Arc::clone(&redacted));
        redacted
    }
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
