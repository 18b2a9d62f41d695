//! Tests of the names, kinds and attributes of spans.

use std::time::{Duration, SystemTime};

use toolyard_core::{
    RawJson,
    telemetry::{SpanContext, TokenUsage},
};

use super::*;

fn map(kind: OperationKind, error: Option<&'static str>) -> SpanData {
    let parent = SpanContext::root();
    let span = OperationSpan { context: parent.child(), parent: Some(parent) };
    let operation = Operation {
        kind,
        span: Some(span),
        started_at: SystemTime::UNIX_EPOCH,
        duration: Duration::from_millis(250),
        error_type: error.map(Cow::Borrowed),
    };
    let mapped = SpanMapper::default().map(operation).unwrap();
    assert_eq!(mapped.span_context.trace_id().to_bytes(), parent.trace_id.get().to_be_bytes());
    assert_eq!(mapped.parent_span_id.to_bytes(), parent.span_id.get().to_be_bytes());
    assert_ne!(mapped.span_context.span_id(), mapped.parent_span_id);
    assert_eq!(mapped.end_time, SystemTime::UNIX_EPOCH + Duration::from_millis(250));
    assert_eq!(matches!(mapped.status, Status::Error { .. }), error.is_some());
    mapped
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// The attributes as lines.
fn attributes(span: &SpanData) -> Vec<String> {
    span.attributes.iter().map(|attribute| format!("{}={}", attribute.key, attribute.value)).collect()
}

fn server_request(method: &'static str, target: Option<&str>, resource: Option<&str>) -> OperationKind {
    OperationKind::ServerRequest {
        method: method.into(),
        target: target.map(Into::into),
        resource: resource.map(Into::into),
        revision: "2026-07-28",
        request_id: Some("7".to_owned()),
        transport: Transport::Stdio,
        caller: "editor".into(),
    }
}

#[test]
fn a_request_of_a_client_is_a_server_span() {
    let span = map(server_request("tools/call", Some("read_file"), None), Some("tool_error"));
    assert_eq!((&*span.name, span.span_kind.clone()), ("tools/call read_file", SpanKind::Server));
    assert_eq!(
        attributes(&span),
        [
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=read_file",
            "mcp.method.name=tools/call",
            "mcp.protocol.version=2026-07-28",
            "network.transport=pipe",
            "jsonrpc.request.id=7",
            "toolyard.caller=editor",
            "error.type=tool_error",
        ]
    );
    let list = map(server_request("tools/list", None, None), Some("-32602"));
    assert_eq!(&*list.name, "tools/list");
    assert_eq!(attribute(&list, "rpc.response.status_code"), "-32602");
    let prompt = map(server_request("prompts/get", Some("greet"), None), None);
    assert_eq!((&*prompt.name, &*attribute(&prompt, "gen_ai.prompt.name")), ("prompts/get greet", "greet"));
    let resource = map(server_request("resources/read", None, Some("file:///a")), None);
    assert_eq!(
        (&*resource.name, &*attribute(&resource, "mcp.resource.uri")),
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
            request_id: 3,
            transport: Transport::Http,
            address: Some(("example.org".into(), 443)),
        },
        None,
    );
    assert_eq!((&*span.name, span.span_kind.clone()), ("tools/call add", SpanKind::Client));
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
        (span.name.to_string(), span.span_kind.clone(), attribute(&span, "gen_ai.operation.name"))
    };
    let expect = |name: &str, kind, operation: &str| (name.to_owned(), kind, operation.to_owned());
    let run = OperationKind::AgentRun { agent: "main".into(), run: "r1".into() };
    assert_eq!(named(run), expect("invoke_agent main", SpanKind::Internal, "invoke_agent"));
    let planning = OperationKind::Planning { agent: "main".into() };
    assert_eq!(named(planning), expect("plan main", SpanKind::Internal, "plan"));
    let step = OperationKind::Step { tool: Some("add".into()), step: "s1".into() };
    assert_eq!(named(step), expect("step s1", SpanKind::Internal, ""));
    let call = OperationKind::ToolCall { tool: "add".into(), source: None, attempts: 1, content: None };
    assert_eq!(named(call), expect("execute_tool add", SpanKind::Internal, "execute_tool"));
    let model = OperationKind::ModelCall {
        provider: "openai".into(),
        model: "gpt".into(),
        usage: TokenUsage { input: 10, output: 3 },
        cost_usd: Some(0.5),
    };
    assert_eq!(named(model.clone()), expect("chat gpt", SpanKind::Client, "chat"));
    let model = map(model, Some("timeout"));
    assert_eq!(attribute(&model, "gen_ai.usage.input_tokens"), "10");
    assert_eq!(attribute(&model, "toolyard.cost"), "0.5");
    assert_eq!(attribute(&model, "rpc.response.status_code"), "", "only JSON-RPC has codes");
    let http =
        OperationKind::HttpRequest { method: "GET".into(), route: "/api/v1/runs/{id}".into(), status: 503 };
    let http = map(http, Some("503"));
    assert_eq!(
        (&*http.name, &*attribute(&http, "http.response.status_code")),
        ("GET /api/v1/runs/{id}", "503")
    );
}

#[test]
fn secrets_are_redacted_wherever_a_client_writes() {
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let content = CallContent {
        arguments: RawJson::parse(format!(r#"{{"token":"{TOKEN}","x":1}}"#)).unwrap(),
        result: format!("Bearer {TOKEN} {}", "é".repeat(20_000)),
    };
    let call = OperationKind::ToolCall {
        tool: "add".into(),
        source: None,
        attempts: 1,
        content: Some(Box::new(content)),
    };
    let uri = format!("https://example.org/?token={TOKEN}");
    for span in [map(call, None), map(server_request("resources/read", Some(TOKEN), Some(&uri)), None)] {
        assert!(!format!("{span:?}").contains("ghp_0123"), "{span:?}");
        assert!(attribute(&span, "gen_ai.tool.call.result").len() < 20_000);
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
    assert!(SpanMapper::default().map(operation).is_none());
}
