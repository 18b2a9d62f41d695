//! Progress, log messages and input requests of a call reach its caller, in both revision families and over all transports.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolyard_core::{
    CallInputResponses, Caller, ErrorKind, RawJson, RawToolError, RevisionFamily, ToolError, ToolOutput,
};

use super::test_caller::{TestCaller, response_to};
use crate::{
    support::case::{ServerCase, ServerKind, Transport, case, case_with_family},
    support::test_manager::{TestManager, call_for},
    support::test_server::TestServer,
};

const LONG_RUNNING_TOOL: &str = "trigger-long-running-operation";

/// A server behind a gateway.
struct ConnectedServer(
    TestManager,
    #[expect(dead_code, reason = "dropping it ends the server process")] TestServer,
);

impl ConnectedServer {
    async fn open(case: ServerCase, call_timeout: Option<Duration>) -> Self {
        let test_server = TestServer::open(case).await;
        let mut config = test_server.config();
        config.call_timeout = call_timeout;
        let manager = TestManager::new(config, test_server.path()).await;
        assert_eq!(manager.session().await.revision_family(), case.family);
        Self(manager, test_server)
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Value,
        caller: &Arc<TestCaller>,
    ) -> Result<ToolOutput, ToolError> {
        call_for(self.0.tool(tool), arguments, Arc::clone(caller) as Arc<dyn Caller>).await
    }
}

/// Every transport and revision family of the servers that send input requests.
fn cases() -> Vec<ServerCase> {
    let mut cases: Vec<ServerCase> = [Transport::Stdio, Transport::Http, Transport::Sse]
        .map(|transport| case(ServerKind::Everything, transport))
        .into();
    for transport in [Transport::Stdio, Transport::Http] {
        cases.extend([
            case(ServerKind::BothFamilies, transport),
            case_with_family(ServerKind::BothFamilies, transport, RevisionFamily::Legacy),
        ]);
    }
    cases
}

#[tokio::test]
async fn progress_reaches_the_caller_before_the_result() {
    for case in cases() {
        let server = ConnectedServer::open(case, Some(Duration::from_secs(2))).await;
        let (one, other) = (TestCaller::with_session(1).shared(), TestCaller::with_session(2).shared());
        let (tool, arguments) = match case.kind {
            ServerKind::Everything => (LONG_RUNNING_TOOL, json!({"duration": 3, "steps": 6})),
            _ => ("count", json!({"steps": 6, "pause": 0.5})),
        };
        let (first, second) = tokio::join!(
            server.call(tool, arguments.clone(), &one),
            server.call(tool, arguments.clone(), &other),
        );
        assert!(first.is_ok() && second.is_ok(), "{case:?} {first:?} {second:?}");
        for caller in [one, other] {
            assert_eq!(caller.progress_values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{case:?}");
        }
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn an_input_request_reaches_the_caller_and_pauses_the_timeout() {
    for case in cases() {
        let call_timeout = Duration::from_secs(2);
        let server = ConnectedServer::open(case, Some(call_timeout)).await;
        let caller = TestCaller::with_session(1).with_delay(call_timeout * 2).shared();
        let tool = if case.kind == ServerKind::Everything { "trigger-elicitation-request" } else { "greet" };
        server.0.wait_until(|| server.0.names().iter().any(|name| name == tool)).await;
        let text = server.call(tool, json!({}), &caller).await.unwrap().to_text();
        assert!(text.contains("Ada"), "{case:?} {text}");
        assert_eq!(caller.methods(), ["elicitation/create"], "{case:?}");
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn sampling_and_roots_requests_reach_the_caller() {
    for case in cases() {
        let server = ConnectedServer::open(case, None).await;
        let caller = TestCaller::with_session(1).shared();
        let (sampling_tool, roots_tool) = match case.kind {
            ServerKind::Everything => ("trigger-sampling-request", "get-roots-list"),
            _ => ("think", "look"),
        };
        server.0.wait_until(|| server.0.names().iter().any(|name| name == roots_tool)).await;
        let prompt = if case.kind == ServerKind::Everything { json!({"prompt": "x"}) } else { json!({}) };
        let text = server.call(sampling_tool, prompt, &caller).await.unwrap().to_text();
        assert!(text.contains("sampled words"), "{case:?} {text}");
        // The official server requests roots after the handshake, when there may be no caller, and not again.
        let text = server.call(roots_tool, json!({}), &caller).await.unwrap().to_text();
        if case.kind == ServerKind::BothFamilies {
            assert!(text.contains("file:///tmp/a-root"), "{case:?} {text}");
        }
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn an_unsupported_input_request_is_rejected_with_a_reason() {
    for case in cases() {
        let server = ConnectedServer::open(case, None).await;
        let caller = TestCaller::with_session(1).with_capabilities(json!({"sampling": {}})).shared();
        let tool = if case.kind == ServerKind::Everything { "trigger-elicitation-request" } else { "greet" };
        server.0.wait_until(|| server.0.names().iter().any(|name| name == tool)).await;
        let refused = server.call(tool, json!({}), &caller).await.unwrap_err();
        assert_eq!(caller.methods(), Vec::<String>::new());
        // A modern server knows the capabilities and rejects the call itself.
        if case.family == RevisionFamily::Legacy {
            let text = "the client does not support elicitation/create";
            assert!(refused.message().contains(text), "{case:?} {refused}");
        } else {
            assert!(refused.message().contains("-32021"), "{case:?} {refused}");
        }
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn an_input_request_reaches_the_session_whose_call_raised_it() {
    for case in cases() {
        let server = ConnectedServer::open(case, None).await;
        let (tool, long, arguments) = match case.kind {
            ServerKind::Everything => {
                ("trigger-elicitation-request", LONG_RUNNING_TOOL, json!({"duration": 4, "steps": 4}))
            }
            _ => ("greet", "count", json!({"steps": 4, "pause": 1})),
        };
        server.0.wait_until(|| server.0.names().iter().any(|name| name == tool)).await;
        let (one, other) = (TestCaller::with_session(1).shared(), TestCaller::with_session(2).shared());
        let eliciting = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            server.call(tool, json!({}), &one).await
        };
        let long_arguments = arguments.clone();
        let (long_call, elicited) = tokio::join!(server.call(long, arguments, &other), eliciting);
        long_call.unwrap();
        assert_eq!(other.methods(), Vec::<String>::new(), "{case:?}");
        assert!(elicited.unwrap().to_text().contains("Ada"), "{case:?}");
        assert_eq!(one.methods(), ["elicitation/create"], "{case:?}");
        // Both at once, and right after a call of the other was cancelled.
        let three = TestCaller::with_session(3).shared();
        let cancelled =
            tokio::time::timeout(Duration::from_millis(300), server.call(long, long_arguments, &three));
        assert!(cancelled.await.is_err());
        let both = tokio::join!(server.call(tool, json!({}), &one), server.call(tool, json!({}), &other));
        assert!(
            both.0.unwrap().to_text().contains("Ada") && both.1.unwrap().to_text().contains("Ada"),
            "{case:?}"
        );
        assert_eq!(
            (one.methods().len(), other.methods().len(), three.methods().len()),
            (2, 1, 0),
            "{case:?}"
        );
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn simultaneous_input_requests_are_sent_together_or_returned_to_the_caller() {
    for transport in [Transport::Stdio, Transport::Http] {
        let server = ConnectedServer::open(case(ServerKind::BothFamilies, transport), None).await;
        let caller = TestCaller::with_session(1).shared();
        let text = server.call("find", json!({}), &caller).await.unwrap().to_text();
        assert_eq!(text, "Ada is in London");
        assert_eq!(caller.requests.lock().iter().map(Vec::len).collect::<Vec<_>>(), [2]);

        let first = TestCaller::with_session(1).accepting_input_required(None).shared();
        let output = server.call("find", json!({}), &first).await.unwrap();
        assert!(output.input_required && first.methods().is_empty());
        let result = output.raw.unwrap().to_value();
        let requests = result["inputRequests"].as_object().unwrap();
        assert_eq!(requests.len(), 2);
        let responses: serde_json::Map<String, Value> =
            requests.iter().map(|(key, request)| (key.clone(), response_to_json(request))).collect();
        let input_responses = CallInputResponses {
            responses: RawJson::from_value(&Value::Object(responses)),
            state: result["requestState"].as_str().map(str::to_owned),
        };
        let second = TestCaller::with_session(1).accepting_input_required(Some(input_responses)).shared();
        let output = server.call("find", json!({}), &second).await.unwrap();
        assert_eq!(output.to_text(), "Ada is in London");
        server.0.manager.close().await;
    }
}

fn response_to_json(request: &Value) -> Value {
    response_to(&toolyard_core::CallInputRequest {
        key: String::new(),
        source: "real".into(),
        kind: toolyard_mcp::input_method::input_kind(request["method"].as_str().unwrap()).unwrap(),
        params: Some(RawJson::from_value(&request["params"])),
    })
}

#[tokio::test]
async fn log_messages_of_a_call_reach_its_caller() {
    for transport in [Transport::Stdio, Transport::Http] {
        for case in [
            case(ServerKind::BothFamilies, transport),
            case_with_family(ServerKind::BothFamilies, transport, RevisionFamily::Legacy),
        ] {
            let server = ConnectedServer::open(case, None).await;
            let caller = TestCaller::with_session(1).shared();
            server.call("say", json!({"words": "mind the gap"}), &caller).await.unwrap();
            let logged = caller.logged.lock().clone();
            assert_eq!(logged.len(), 1, "{case:?} {logged:?}");
            assert_eq!(
                (&logged[0]["level"], &logged[0]["data"]),
                (&json!("warning"), &json!("mind the gap"))
            );
            server.0.manager.close().await;
        }
    }
    let server = ConnectedServer::open(case(ServerKind::Everything, Transport::Stdio), None).await;
    let caller = TestCaller::with_session(1).shared();
    server.call("toggle-simulated-logging", json!({}), &caller).await.unwrap();
    server.call(LONG_RUNNING_TOOL, json!({"duration": 6, "steps": 1}), &caller).await.unwrap();
    assert!(!caller.logged.lock().is_empty());
    server.0.manager.close().await;
}

#[tokio::test]
async fn errors_are_passed_on_unchanged() {
    for case in [
        case(ServerKind::BothFamilies, Transport::Http),
        case_with_family(ServerKind::BothFamilies, Transport::Stdio, RevisionFamily::Legacy),
    ] {
        let server = ConnectedServer::open(case, None).await;
        let caller = TestCaller::with_session(1).shared();
        let failed = server.call("fail", json!({}), &caller).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Failed);
        let Some(RawToolError::ToolResult(raw)) = failed.raw() else { panic!("{failed:?}") };
        assert_eq!(raw.to_value()["isError"], true);
        assert!(raw.to_value()["content"][0]["text"].as_str().unwrap().contains("it does not work"));
        let refused = server.call("refuse", json!({}), &caller).await.unwrap_err();
        let Some(RawToolError::Protocol(raw)) = refused.raw() else { panic!("{refused:?}") };
        assert_eq!(
            raw.to_value(),
            json!({"code": -32055, "message": "never", "data": {"reason": "because"}})
        );
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn the_trace_context_and_the_metadata_of_a_caller_are_propagated() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for case in [
        case(ServerKind::BothFamilies, Transport::Stdio),
        case_with_family(ServerKind::BothFamilies, Transport::Http, RevisionFamily::Legacy),
    ] {
        let server = ConnectedServer::open(case, None).await;
        let caller = TestCaller::with_session(1)
            .with_trace("traceparent", PARENT)
            .with_trace("baggage", "a=b")
            .with_trace("secret", "x")
            .with_meta(json!({"com.example/tenant": {"id": 7}, "progressToken": "x", "toolyard/key": "x"}));
        let output = server.call("meta", json!({}), &caller.shared()).await.unwrap();
        let text: Value = serde_json::from_str(&output.to_text()).unwrap();
        let expected = json!({"traceparent": PARENT, "baggage": "a=b", "com.example/tenant": {"id": 7}});
        assert_eq!(text, json!({"meta": expected}), "{case:?}");
        server.0.manager.close().await;
    }
}

#[tokio::test]
async fn a_dropped_call_drops_its_input_requests() {
    let server = ConnectedServer::open(
        case_with_family(ServerKind::BothFamilies, Transport::Stdio, RevisionFamily::Legacy),
        None,
    )
    .await;
    let caller = TestCaller::with_session(1).with_delay(Duration::from_secs(60)).shared();
    let dropped =
        tokio::time::timeout(Duration::from_secs(2), server.call("greet", json!({}), &caller)).await;
    assert!(dropped.is_err());
    assert_eq!(caller.methods(), ["elicitation/create"]);
    let deadline = Instant::now() + Duration::from_secs(5);
    while Arc::strong_count(&caller) > 1 {
        assert!(Instant::now() < deadline, "the caller is still referenced");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.0.manager.close().await;
}
