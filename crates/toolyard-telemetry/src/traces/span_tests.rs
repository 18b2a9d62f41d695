//! Tests of the names, kinds and attributes of spans, and of the body of an export.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use toolyard_core::telemetry::{SpanContext, TokenUsage};

use super::*;
use crate::traces::export_request::{SpanOrigin, rejected_spans};

fn map(kind: OperationKind, error: Option<&'static str>) -> Span {
    let parent = SpanContext::root();
    let context = parent.child();
    let operation = Operation {
        kind,
        span: Some(OperationSpan { context, parent: Some(parent) }),
        started_at: UNIX_EPOCH + Duration::from_secs(1),
        duration: Duration::from_millis(250),
        error_type: error.map(Cow::Borrowed),
    };
    let span = span_of(&operation).unwrap();
    assert_eq!(span.trace_id, parent.trace_id.get().to_be_bytes());
    assert_eq!(span.span_id, context.span_id.get().to_be_bytes());
    assert_eq!(span.parent_span_id, parent.span_id.get().to_be_bytes());
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (1_000_000_000, 1_250_000_000));
    let is_error = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
    assert_eq!(is_error, error.is_some());
    span
}

fn value(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn attribute_of(span: &Span, name: &str) -> String {
    span.attributes.iter().find(|attribute| attribute.key == name).map(value).unwrap_or_default()
}

/// The attributes as lines.
fn attributes(span: &Span) -> Vec<String> {
    span.attributes.iter().map(|attribute| format!("{}={}", attribute.key, value(attribute))).collect()
}

fn server_request(method: &'static str, target: Option<&str>, resource: Option<&str>) -> OperationKind {
    OperationKind::ServerRequest {
        method: method.into(),
        target: target.map(Into::into),
        resource: resource.map(Into::into),
        revision: "2026-07-28",
        request_id: Some("7".to_owned()),
        transport: Transport::Stdio,
        caller: Some("ci".into()),
        client: Some("editor".into()),
    }
}

#[test]
fn a_request_of_a_client_is_a_server_span() {
    let span = map(server_request("tools/call", Some("read_file"), None), Some("tool_error"));
    assert_eq!((span.name.as_str(), span.kind()), ("tools/call read_file", SpanKind::Server));
    assert_eq!(
        attributes(&span),
        [
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=read_file",
            "mcp.method.name=tools/call",
            "mcp.protocol.version=2026-07-28",
            "network.transport=pipe",
            "toolyard.caller=ci",
            "toolyard.client=editor",
            "jsonrpc.request.id=7",
            "error.type=tool_error",
        ]
    );
    let list = map(server_request("tools/list", None, None), Some("-32602"));
    assert_eq!(&*list.name, "tools/list");
    assert_eq!(attribute_of(&list, "rpc.response.status_code"), "-32602");
    let prompt = map(server_request("prompts/get", Some("greet"), None), None);
    assert_eq!(
        (&*prompt.name, &*attribute_of(&prompt, "gen_ai.prompt.name")),
        ("prompts/get greet", "greet")
    );
    let resource = map(server_request("resources/read", None, Some("file:///a")), None);
    assert_eq!(
        (&*resource.name, &*attribute_of(&resource, "mcp.resource.uri")),
        ("resources/read", "file:///a")
    );
}

#[test]
fn a_request_to_a_server_is_a_client_span() {
    let span = map(
        OperationKind::ClientRequest {
            method: "tools/call".into(),
            target: Some("add".into()),
            resource: None,
            revision: "2025-11-25",
            server: "ledger".into(),
            request_id: Some(3),
            transport: Transport::Http,
            address: Some(("example.org".into(), 443)),
        },
        None,
    );
    assert_eq!((span.name.as_str(), span.kind()), ("tools/call add", SpanKind::Client));
    for expected in [
        "network.transport=tcp",
        "network.protocol.name=http",
        "jsonrpc.request.id=3",
        "toolyard.server=ledger",
        "server.address=example.org",
        "server.port=443",
    ] {
        assert!(attributes(&span).iter().any(|line| line == expected), "{expected}: {span:?}");
    }
}

#[test]
fn agents_models_and_tools_have_the_names_of_the_conventions() {
    let named = |kind| {
        let span = map(kind, None);
        (span.name.clone(), span.kind(), attribute_of(&span, "gen_ai.operation.name"))
    };
    let expect = |name: &str, kind, operation: &str| (name.to_owned(), kind, operation.to_owned());
    let run = OperationKind::AgentRun { agent: "main".into(), run: "r1".into(), conversation: None };
    assert_eq!(named(run), expect("invoke_agent main", SpanKind::Internal, "invoke_agent"));
    let planning = OperationKind::Planning { agent: "main".into() };
    assert_eq!(named(planning), expect("plan main", SpanKind::Internal, "plan"));
    let step = OperationKind::Step { tool: Some("add".into()), is_known_tool: true, step: "s1".into() };
    assert_eq!(named(step), expect("step s1", SpanKind::Internal, ""));
    let call = OperationKind::ToolCall {
        tool: "add".into(),
        source: None,
        attempts: 1,
        call: Some("call_a_1".to_owned()),
        content: None,
    };
    assert_eq!(attribute_of(&map(call.clone(), None), "toolyard.call.id"), "call_a_1");
    assert_eq!(named(call), expect("execute_tool add", SpanKind::Internal, "execute_tool"));
    let model = OperationKind::ModelCall {
        provider: "openai".into(),
        model: "gpt".into(),
        usage: TokenUsage { input: 10, output: 3 },
        max_tokens: Some(64),
        finish_reason: Some("stop".into()),
        cost: Some(0.5),
    };
    assert_eq!(named(model.clone()), expect("chat gpt", SpanKind::Client, "chat"));
    let model = map(model, Some("timeout"));
    assert_eq!(attribute_of(&model, "gen_ai.usage.input_tokens"), "10");
    assert_eq!(attribute_of(&model, "toolyard.cost"), "0.5");
    assert!(attribute_of(&model, "gen_ai.response.finish_reasons").contains("\"stop\""), "{model:?}");
    assert_eq!(attribute_of(&model, "rpc.response.status_code"), "", "only JSON-RPC has codes");
    let http = OperationKind::HttpRequest {
        method: "GET".into(),
        route: Some("/api/v1/runs/{id}".into()),
        path: "/api/v1/runs/7".into(),
        caller: Some("ci".into()),
        status: Some(503),
    };
    let http = map(http, Some("503"));
    assert_eq!(
        (&*http.name, &*attribute_of(&http, "http.response.status_code")),
        ("GET /api/v1/runs/{id}", "503")
    );
    assert_eq!(attribute_of(&http, "toolyard.caller"), "ci");
}

#[test]
fn secrets_are_redacted_wherever_a_client_writes() {
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let content = CallContent {
        arguments: Some(format!(r#"{{"token":"{TOKEN}","x":1}}"#)),
        result: format!("Bearer {TOKEN} {}", "é".repeat(20_000)),
    };
    let call = OperationKind::ToolCall {
        tool: "add".into(),
        source: None,
        attempts: 1,
        call: Some(TOKEN.to_owned()),
        content: Some(Box::new(content)),
    };
    // In a part of this JSON text, the value would not be recognized as a secret.
    let long =
        format!(r#"{{"headers":[{{"name":"password","value":"ghp_0123"}}],"x":"{}"}}"#, "y".repeat(70_000));
    let cut = CallContent::new(&long, "");
    let cut_call = OperationKind::ToolCall {
        tool: "add".into(),
        source: None,
        attempts: 1,
        call: None,
        content: Some(Box::new(cut)),
    };
    let uri = format!("https://example.org/?token={TOKEN}");
    let named =
        OperationKind::ToolCall { tool: TOKEN.into(), source: None, attempts: 1, call: None, content: None };
    let step = OperationKind::Step { tool: Some(TOKEN.into()), is_known_tool: true, step: TOKEN.into() };
    let mut identified = server_request("tools/list", None, None);
    if let OperationKind::ServerRequest { request_id, .. } = &mut identified {
        *request_id = Some(TOKEN.to_owned());
    }
    let resource = server_request("resources/read", Some(TOKEN), Some(&uri));
    for span in [call, cut_call, resource, named, step, identified].map(|kind| map(kind, None)) {
        assert!(!format!("{span:?}").contains("ghp_0123"), "{span:?}");
        assert!(attribute_of(&span, "gen_ai.tool.call.result").len() < 20_000);
    }
}

#[test]
fn an_operation_outside_of_traces_is_no_span() {
    let operation = Operation {
        kind: OperationKind::Planning { agent: "a".into() },
        span: None,
        started_at: SystemTime::now(),
        duration: Duration::ZERO,
        error_type: None,
    };
    assert_eq!(span_of(&operation), None);
}

#[test]
fn an_export_has_the_resource_and_each_span_once() {
    let planning = |agent: &str| Operation {
        kind: OperationKind::Planning { agent: agent.into() },
        span: Some(OperationSpan { context: SpanContext::root(), parent: None }),
        started_at: SystemTime::now(),
        duration: Duration::ZERO,
        error_type: None,
    };
    let spans = ["first", "second"].map(|agent| span_of(&planning(agent)).unwrap()).to_vec();
    let origin = SpanOrigin::new(&[("service.name".to_owned(), "gateway".to_owned())]);
    let export = ExportTraceServiceRequest::decode(origin.export(spans).as_slice()).unwrap();
    let resource = export.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(
        (resource.attributes[0].key.as_str(), &*value(&resource.attributes[0])),
        ("service.name", "gateway")
    );
    let scope = &export.resource_spans[0].scope_spans[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "toolyard");
    let names: Vec<_> = scope.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["plan first", "plan second"]);
    assert!(scope.spans[0].parent_span_id.is_empty(), "a root");
}

#[test]
fn only_the_parent_of_a_server_span_is_remote() {
    let server = map(server_request("tools/list", None, None), None);
    assert_eq!(server.flags, SAMPLED | HAS_IS_REMOTE | IS_REMOTE);
    assert_eq!(map(OperationKind::Planning { agent: "a".into() }, None).flags, SAMPLED | HAS_IS_REMOTE);
}

#[test]
fn refused_spans_are_read_from_the_response() {
    let partial = ExportTracePartialSuccess { rejected_spans: 300, error_message: "too old".to_owned() };
    let response = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    assert_eq!(rejected_spans(&response), (300, "too old".to_owned()));
    assert_eq!(rejected_spans(&ExportTraceServiceResponse::default().encode_to_vec()), (0, String::new()));
    assert_eq!(rejected_spans(b"<html>"), (0, String::new()));
}
