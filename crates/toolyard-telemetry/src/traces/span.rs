//! An operation as a span, by the OpenTelemetry conventions for MCP and generative AI.

use std::{borrow::Cow, sync::Arc};

use opentelemetry::{
    InstrumentationScope, Key, KeyValue, Value,
    trace::{SpanContext as OtelContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use toolyard_core::{
    redact, redact_json,
    telemetry::{CallContent, Operation, OperationKind, OperationSpan, Transport},
};

/// Longer content is truncated: receivers have limits.
const MAX_CONTENT_BYTES: usize = 16 << 10;

/// Turns operations into spans.
#[derive(Debug)]
pub(super) struct SpanMapper {
    scope: InstrumentationScope,
}

impl Default for SpanMapper {
    fn default() -> Self {
        let scope = InstrumentationScope::builder("toolyard").with_version(env!("CARGO_PKG_VERSION"));
        Self { scope: scope.build() }
    }
}

impl SpanMapper {
    /// None for an operation without a place in a trace.
    pub(super) fn map(&self, operation: Operation) -> Option<SpanData> {
        let Operation { kind, span, started_at, duration, error_type } = operation;
        let OperationSpan { context, parent } = span?;
        let mut described = describe(kind);
        if let Some(error) = &error_type {
            described.add("error.type", error.clone());
            // The code of a JSON-RPC error.
            if described.is_rpc && error.parse::<i64>().is_ok() {
                described.add("rpc.response.status_code", error.clone());
            }
        }
        let flags = if context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        Some(SpanData {
            span_context: OtelContext::new(
                TraceId::from_bytes(context.trace_id.get().to_be_bytes()),
                SpanId::from_bytes(context.span_id.get().to_be_bytes()),
                flags,
                false,
                TraceState::NONE,
            ),
            parent_span_id: parent
                .map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.span_id.get().to_be_bytes())),
            parent_span_is_remote: parent.is_some() && described.kind == SpanKind::Server,
            span_kind: described.kind,
            name: described.name.into(),
            start_time: started_at,
            end_time: started_at.checked_add(duration).unwrap_or(started_at),
            attributes: described.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if error_type.is_some() { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.scope.clone(),
        })
    }
}

/// Name, kind and attributes of a span.
struct Description {
    name: String,
    kind: SpanKind,
    attributes: Vec<KeyValue>,
    is_rpc: bool,
}

impl Description {
    fn new(operation: &str, subject: Option<&str>, kind: SpanKind) -> Self {
        let name = match subject {
            Some(subject) => [operation, " ", subject].concat(),
            None => operation.to_owned(),
        };
        Self { name, kind, attributes: Vec::with_capacity(12), is_rpc: false }
    }

    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(Key::from_static_str(name), value));
    }

    fn add_number(&mut self, name: &'static str, value: u64) {
        self.add(name, i64::try_from(value).unwrap_or(i64::MAX));
    }
}

fn describe(kind: OperationKind) -> Description {
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
            let request = Request { method, target, resource, revision, transport };
            let mut span = request.describe(SpanKind::Server);
            if let Some(id) = request_id {
                span.add("jsonrpc.request.id", id);
            }
            if !caller.is_empty() {
                span.add("toolyard.caller", redacted(caller));
            }
            span
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
            let mut span =
                Request { method, target, resource, revision, transport }.describe(SpanKind::Client);
            span.add("jsonrpc.request.id", request_id.to_string());
            span.add("toolyard.server", server.to_string());
            if let Some((address, port)) = address {
                span.add("server.address", address);
                span.add("server.port", i64::from(port));
            }
            span
        }
        OperationKind::ToolCall { tool, source, attempts, content } => {
            let mut span = Description::new("execute_tool", Some(&tool), SpanKind::Internal);
            span.add("gen_ai.operation.name", "execute_tool");
            span.add("gen_ai.tool.name", tool);
            span.add("toolyard.attempts", i64::from(attempts));
            if let Some(source) = source {
                span.add("toolyard.source", source.to_string());
            }
            if let Some(content) = content {
                let CallContent { arguments, result } = *content;
                span.add("gen_ai.tool.call.arguments", truncated(redact_json(&arguments).0.get()));
                span.add("gen_ai.tool.call.result", truncated(&redact(&result)));
            }
            span
        }
        kind => describe_agent_operation(kind),
    }
}

/// Operations of agents, and requests to the HTTP API.
fn describe_agent_operation(kind: OperationKind) -> Description {
    match kind {
        OperationKind::HttpRequest { method, route, status } => {
            let mut span = Description::new(&method, Some(&route), SpanKind::Server);
            span.add("http.request.method", method);
            span.add("http.route", route);
            if status != 0 {
                span.add("http.response.status_code", i64::from(status));
            }
            span
        }
        OperationKind::AgentRun { agent, run } => {
            let mut span = agent_span("invoke_agent", agent);
            span.add("toolyard.run.id", run.to_string());
            span
        }
        OperationKind::Planning { agent } => agent_span("plan", agent),
        OperationKind::Step { tool, step } => {
            let mut span = Description::new("step", Some(&step), SpanKind::Internal);
            span.add("toolyard.step.id", step);
            if let Some(tool) = tool {
                span.add("gen_ai.tool.name", tool);
            }
            span
        }
        OperationKind::ModelCall { provider, model, usage, cost_usd } => {
            let mut span = Description::new("chat", Some(&model), SpanKind::Client);
            span.add("gen_ai.operation.name", "chat");
            span.add("gen_ai.provider.name", provider);
            span.add("gen_ai.request.model", model);
            span.add_number("gen_ai.usage.input_tokens", usage.input);
            span.add_number("gen_ai.usage.output_tokens", usage.output);
            if let Some(cost) = cost_usd {
                span.add("toolyard.cost", cost);
            }
            span
        }
        _ => Description::new("unknown", None, SpanKind::Internal),
    }
}

fn agent_span(operation: &'static str, agent: Arc<str>) -> Description {
    let mut span = Description::new(operation, Some(&agent), SpanKind::Internal);
    span.add("gen_ai.operation.name", operation);
    span.add("gen_ai.agent.name", agent);
    span
}

/// A request of MCP, in either direction.
struct Request {
    method: Cow<'static, str>,
    target: Option<Arc<str>>,
    resource: Option<Arc<str>>,
    revision: &'static str,
    transport: Transport,
}

impl Request {
    fn describe(self, kind: SpanKind) -> Description {
        let Self { method, target, resource, revision, transport } = self;
        let target = target.map(redacted);
        let mut span = Description::new(&method, target.as_deref(), kind);
        span.is_rpc = true;
        match (&*method, target) {
            ("tools/call", tool) => {
                span.add("gen_ai.operation.name", "execute_tool");
                tool.into_iter().for_each(|tool| span.add("gen_ai.tool.name", tool));
            }
            ("prompts/get", Some(prompt)) => span.add("gen_ai.prompt.name", prompt),
            _ => {}
        }
        span.add("mcp.method.name", method);
        if !revision.is_empty() {
            span.add("mcp.protocol.version", revision);
        }
        if let Some(uri) = resource {
            span.add("mcp.resource.uri", redacted(uri));
        }
        match transport {
            Transport::Http => {
                span.add("network.transport", "tcp");
                span.add("network.protocol.name", "http");
            }
            _ => span.add("network.transport", "pipe"),
        }
        span
    }
}

/// The text without known secrets: clients choose it.
fn redacted(text: Arc<str>) -> Arc<str> {
    match redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted.into(),
    }
}

fn truncated(text: &str) -> String {
    match text.get(..text.floor_char_boundary(MAX_CONTENT_BYTES)) {
        Some(start) if start.len() < text.len() => format!("{start}…"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
