//! Traces of the program at an OTLP receiver: one tree from the client or the run down to the upstream server.

mod receiver;

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use receiver::{ReceivedSpan, Receiver};
use serde_json::{Value, json};

use crate::{
    client::{HttpGateway, StdioGateway, modern_params, send},
    model_server::ModelServer,
    test_home::TestHome,
};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";

fn traceparent() -> String {
    format!("00-{TRACE_ID}-{CLIENT_SPAN}-01")
}

/// A home with a scripted model, an upstream server of one revision, and a receiver of traces.
struct Fixture {
    home: TestHome,
    model: ModelServer,
    receiver: Receiver,
}

impl Fixture {
    fn new(revision: &str) -> Self {
        let (home, model, receiver) = (TestHome::new(), ModelServer::start(), Receiver::start());
        home.write("upstream.py", include_str!("upstream.py"));
        let path = |name: &str| home.path(name).to_str().unwrap().to_owned();
        let settings = format!(
            "[models.local]\nurl = \"{}\"\nmodel = \"scripted\"\ntool_calling = \"schema\"\n\
             [models.local.price]\ninput = 1.0\noutput = 1.0\n\
             [servers.ledger]\ncommand = \"python3\"\nargs = [{:?}, \"{revision}\", {:?}]\ntrusted = true\n\
             [telemetry]\notlp_endpoint = \"{}\"\n",
            model.address(),
            path("upstream.py"),
            path("upstream.txt"),
            receiver.endpoint(),
        );
        home.write("config/toolyard/toolyard.toml", &settings);
        model.script_plan(
            "sum it",
            &json!([
                {"id": "total", "tool_type": "add", "arguments": {"a": 1}, "description": "add the numbers"},
            ]),
        );
        model.script_answer("sum it", "The sum is 3.");
        // The tools of the server are known from now on.
        let mut listing = home.command(&["servers", "test", "ledger"]);
        assert!(listing.env("OTEL_SDK_DISABLED", "true").output().unwrap().status.success());
        Self { home, model, receiver }
    }

    /// The `traceparent` of the only upstream request of this method.
    fn upstream_traceparent(&self, method: &str) -> String {
        let text = std::fs::read_to_string(self.home.path("upstream.txt")).unwrap();
        let requests: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut found = requests.iter().filter(|request| request["method"] == method);
        let (first, second) = (found.next().unwrap(), found.next());
        assert_eq!(second, None, "{text}");
        first["meta"]["traceparent"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned()
    }

    /// The spans of a run: plan, model calls, step, tool call and upstream request, below `invoke_agent`.
    fn assert_run(&self, run: &ReceivedSpan, revision: &str) {
        let receiver = &self.receiver;
        assert_eq!((run.kind, run.is_error), (SpanKind::Internal, false));
        let plan = receiver.child(run, "plan assistant");
        let chat = receiver.child(&plan, "chat scripted");
        assert_eq!(chat.kind, SpanKind::Client);
        assert_ne!(chat.attributes["gen_ai.usage.input_tokens"], "0");
        assert!(chat.attributes.contains_key("toolyard.cost"), "{chat:?}");
        receiver.child(run, "chat scripted");
        let step = receiver.child(run, "step total");
        let call = receiver.child(&step, "execute_tool add");
        assert_eq!(call.attributes["toolyard.source"], "ledger");
        let request = receiver.child(&call, "tools/call add");
        assert_eq!(request.kind, SpanKind::Client);
        assert_eq!(request.attributes["mcp.protocol.version"], revision);
        assert_eq!(request.attributes["network.transport"], "pipe");
        let upstream = self.upstream_traceparent("tools/call");
        assert_eq!(upstream, format!("00-{}-{}-01", request.trace_id, request.span_id));
        for span in receiver.spans() {
            let has_parent = receiver.spans().iter().any(|other| other.span_id == span.parent);
            assert!(has_parent || span.parent.is_empty() || span.parent == CLIENT_SPAN, "{span:?}");
        }
    }
}

/// A modern tool call within the trace of a client.
async fn call_in_trace(gateway: &HttpGateway, params: Value) -> Value {
    let mut params = modern_params(params);
    params["_meta"]["traceparent"] = json!(traceparent());
    send(gateway.build_request("", "tools/call", &params)).await.body
}

#[test]
fn a_run_of_the_command_line_is_one_trace_in_both_revisions() {
    for revision in REVISIONS {
        let fixture = Fixture::new(revision);
        let output = fixture.home.run(&["ask", "sum it"]);
        assert!(output.contains("The sum is N"), "{output}");
        let run = fixture.receiver.span("invoke_agent assistant", |_| true);
        assert_eq!(run.parent, "", "the run is the root");
        fixture.assert_run(&run, revision);
        let is_of_run = |span: &ReceivedSpan| span.trace_id == run.trace_id;
        assert!(fixture.receiver.spans().iter().all(is_of_run), "the start of the server belongs to the run");
        let shown = fixture.home.command(&["runs", "show", "last", "--json"]).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(shown["trace_id"], run.trace_id.as_str());
        assert_eq!(fixture.receiver.resource()["service.name"], "toolyard");
        assert!(fixture.model.requests().len() >= 2);
    }
}

#[tokio::test]
async fn the_trace_of_an_mcp_client_goes_on_through_an_agent_to_the_upstream_server() {
    for revision in REVISIONS {
        let fixture = Fixture::new(revision);
        let gateway = HttpGateway::start(&fixture.home, &[]);
        let params = json!({"name": "ask_agent", "arguments": {"question": "sum it"}});
        let answer = call_in_trace(&gateway, params).await;
        assert_eq!(answer["result"]["content"][0]["text"], "The sum is 3.", "{answer}");
        gateway.stop().await;
        let request = fixture.receiver.span("tools/call ask_agent", |_| true);
        assert_eq!((request.trace_id.as_str(), request.parent.as_str()), (TRACE_ID, CLIENT_SPAN));
        assert_eq!(request.kind, SpanKind::Server);
        let run = fixture.receiver.child(&request, "invoke_agent assistant");
        fixture.assert_run(&run, revision);
    }
}

#[tokio::test]
async fn a_run_over_http_belongs_to_the_trace_of_its_request() {
    let fixture = Fixture::new("2026-07-28");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let request = gateway.http.post(gateway.url.replace("/mcp", "/v1/chat/completions"));
    let body = json!({"model": "assistant", "messages": [{"role": "user", "content": "sum it"}]});
    let request = request.bearer_auth(gateway.token.as_ref().unwrap()).header("traceparent", traceparent());
    let response = request.json(&body).send().await.unwrap();
    assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    gateway.stop().await;
    let request = fixture.receiver.span("POST /v1/chat/completions", |_| true);
    assert_eq!((request.trace_id.as_str(), request.parent.as_str()), (TRACE_ID, CLIENT_SPAN));
    assert_eq!(request.attributes["http.response.status_code"], "200");
    let run = fixture.receiver.child(&request, "invoke_agent assistant");
    fixture.assert_run(&run, "2026-07-28");
}

#[tokio::test]
async fn a_tool_call_over_http_belongs_to_the_trace_of_its_request() {
    let fixture = Fixture::new("2026-07-28");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let request = gateway.http.post(gateway.url.replace("/mcp", "/api/v1/tools/add/call"));
    let request = request.bearer_auth(gateway.token.as_ref().unwrap()).header("traceparent", traceparent());
    let response = request.json(&json!({"arguments": {"a": 1}})).send().await.unwrap();
    assert!(response.status().is_success(), "{}", response.text().await.unwrap());
    gateway.stop().await;
    let request = fixture.receiver.span("POST /api/v1/tools/{name}/call", |_| true);
    assert_eq!((request.trace_id.as_str(), request.parent.as_str()), (TRACE_ID, CLIENT_SPAN));
    let call = fixture.receiver.child(&request, "execute_tool add");
    fixture.receiver.child(&call, "tools/call add");
}

#[test]
fn an_error_of_a_tool_is_tool_error_on_every_span_of_the_call() {
    for revision in REVISIONS {
        let fixture = Fixture::new(revision);
        let mut gateway = StdioGateway::new(&fixture.home, &[]);
        let mut params = modern_params(json!({"name": "fail", "arguments": {}}));
        params["_meta"]["traceparent"] = json!(traceparent());
        let answer = gateway.send_request("tools/call", params);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let unknown = gateway.send_request("tools/call", modern_params(json!({"name": "nothing"})));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        assert!(gateway.close());
        let receiver = &fixture.receiver;
        let server = receiver.span("tools/call fail", |span| span.kind == SpanKind::Server);
        assert_eq!((server.trace_id.as_str(), server.parent.as_str()), (TRACE_ID, CLIENT_SPAN));
        let call = receiver.child(&server, "execute_tool fail");
        let client = receiver.child(&call, "tools/call fail");
        for span in [&server, &call, &client] {
            assert_eq!((span.is_error, span.attributes["error.type"].as_str()), (true, "tool_error"));
        }
        let unknown = receiver.span("tools/call nothing", |_| true);
        assert_eq!(unknown.attributes["rpc.response.status_code"], "-32602");
        assert_eq!(unknown.parent, "");
    }
}

#[test]
fn headers_are_sent_and_nothing_is_exported_if_the_sdk_is_disabled() {
    let fixture = Fixture::new("2025-11-25");
    let mut command = fixture.home.command(&["call", "add", r#"{"a":1}"#]);
    command
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20of-a-test")
        .env("OTEL_SERVICE_NAME", "by-variable");
    assert!(command.output().unwrap().status.success());
    assert_eq!(fixture.receiver.authorization(), "Bearer of-a-test");
    assert_eq!(fixture.receiver.resource()["service.name"], "by-variable");
    let count = fixture.receiver.spans().len();
    let mut command = fixture.home.command(&["call", "add", r#"{"a":1}"#]);
    assert!(command.env("OTEL_SDK_DISABLED", "true").output().unwrap().status.success());
    assert_eq!(fixture.receiver.spans().len(), count);
}

#[test]
fn a_receiver_that_is_down_delays_nothing_and_is_reported() {
    let fixture = Fixture::new("2025-11-25");
    let mut command = fixture.home.command(&["call", "add", r#"{"a":1}"#]);
    let started = std::time::Instant::now();
    let output = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").output().unwrap();
    assert!(output.status.success());
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("not exported"), "{errors}");
}

#[tokio::test]
async fn the_json_log_has_one_line_per_request_with_the_ids_of_its_trace() {
    let fixture = Fixture::new("2025-11-25");
    let mut command = fixture.home.command(&["serve", "--http", "127.0.0.1:0", "--log-format", "json"]);
    command.env("TOOLYARD_LOG", "warn,toolyard::requests=info").env("OTEL_SDK_DISABLED", "true");
    let gateway = HttpGateway::spawn(&fixture.home, command);
    call_in_trace(&gateway, json!({"name": "add", "arguments": {"a": 1}})).await;
    gateway.send_request("", "tools/list", json!({})).await;
    assert_eq!(gateway.get("/api/v1/servers", gateway.token.as_deref()).await.0, 200);
    let log = gateway.stop().await;
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let requests: Vec<&Value> = lines.iter().filter(|line| line["target"] == "toolyard::requests").collect();
    assert_eq!(requests.len(), 3, "{log}");
    assert_eq!(requests[2]["fields"]["status"], json!(200), "a number");
    let fields = &requests[0]["fields"];
    assert_eq!(requests[0]["level"], "info");
    assert_eq!(
        (&fields["method"], &fields["target"], &fields["outcome"]),
        (&json!("tools/call"), &json!("add"), &json!("ok"))
    );
    assert_eq!(fields["trace_id"], TRACE_ID, "the ids of the client, because no span is recorded here");
    assert!(fields["duration_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(requests[1]["fields"]["trace_id"].as_str().unwrap().len(), 32, "a trace of its own");
    assert_eq!(fixture.upstream_traceparent("tools/call"), traceparent());
}
