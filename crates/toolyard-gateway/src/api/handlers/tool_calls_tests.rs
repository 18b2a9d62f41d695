//! Calls of tools over HTTP: results, truncation, refusals, failures, and the profile of the main endpoint.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use serde_json::json;
use toolyard_core::{
    Audit, AuditRecord, BoxFuture, CallContext, ClaimTime, NameClaim, NameClaims, SourceInfo, SourceKind,
    Tool, ToolSpec,
};
use toolyard_hub::{Budget, HubConfig, Profile, ToolHub};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};

use super::*;
use crate::{GatewayConfig, HttpApi, HttpApiConfig, MainTools};

/// A tool that behaves as its name says.
struct ScriptedTool {
    spec: ToolSpec,
    source: String,
    claim: Option<NameClaim>,
}

impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        self.claim.as_ref()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match &*self.spec.name {
                "fail" => Err(ToolError::failed("no such file\u{202e}\u{1b}[2J")),
                "unreachable" => Err(ToolError::new(ErrorKind::Unavailable, "connection refused")),
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(3_600)).await;
                    Ok(ToolOutput::text("late"))
                }
                "ask" => Ok(ToolOutput { input_required: true, ..ToolOutput::default() }),
                "long" => Ok(ToolOutput::text("word ".repeat(200))),
                "table" => Ok(ToolOutput::json(json!({"rows": vec!["word"; 200]}))),
                _ => {
                    let arguments = request.arguments.to_value();
                    Ok(ToolOutput::json(json!({"source": self.source, "arguments": arguments})))
                }
            }
        })
    }
}

#[derive(Debug, Default)]
struct AuditLog(Mutex<Vec<AuditRecord>>);

impl Audit for AuditLog {
    fn record(&self, record: AuditRecord) {
        self.0.lock().push(record);
    }
}

/// An API over a hub, whose audit log is returned too.
fn api(profile: Profile) -> (HttpApi, MainTools, Arc<AuditLog>) {
    let audit = Arc::new(AuditLog::default());
    let mut config = HubConfig { audit: Some(Arc::clone(&audit) as _), ..HubConfig::default() };
    config.rules.deny = vec!["denied".to_owned()];
    config.retry.max_attempts = 1;
    (config.breaker.initial_open_time, config.breaker.max_open_time) =
        (Duration::from_secs(30), Duration::from_secs(30));
    let hub = Arc::new(ToolHub::new(config));
    let mut claims = NameClaims::default();
    let mut register = |source: &str, names: &[&str]| {
        let tools = names.iter().map(|name| {
            let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
            let mut spec = ToolSpec::new(*name, "Does what its name says");
            spec.input_schema = schema.into();
            if *name == "table" {
                let rows = json!({"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]});
                spec.output_schema = Some(rows.into());
            }
            let claim = (*name == "shared")
                .then(|| claims.claim(&(*name).into(), &source.into(), None, ClaimTime::FirstApproval, 1));
            Arc::new(ScriptedTool { spec, source: source.to_owned(), claim }) as Arc<dyn Tool>
        });
        hub.register(SourceInfo::new(source, SourceKind::Mcp), tools.collect());
    };
    register(
        "one",
        &["echo", "fail", "unreachable", "slow", "ask", "long", "table", "denied", "shared", "dotted.name"],
    );
    register("two", &["echo", "shared", "search_tools"]);
    let gateway = GatewayConfig { main_profile: profile, ..GatewayConfig::new(Arc::clone(&hub)) };
    let main_tools = gateway.main_tools();
    let config =
        HttpApiConfig { hub: Some(hub), main_tools: Some(main_tools.clone()), ..HttpApiConfig::default() };
    (HttpApi::new(config), main_tools, audit)
}

fn call_request(tool: &str, body: &str) -> RouteRequest {
    RouteRequest {
        method: Method::POST,
        path: format!("/api/v1/tools/{tool}/call"),
        query: String::new(),
        headers: HeaderMap::new(),
        identity: Arc::default(),
        body: body.to_owned(),
    }
}

async fn call(api: &HttpApi, tool: &str, body: &str) -> (u16, Value) {
    let response = api.handle(call_request(tool, body)).await;
    let RouteBody::Json(text) = response.body else { panic!("no JSON") };
    (response.status.as_u16(), serde_json::from_slice(&text).unwrap())
}

#[tokio::test]
async fn a_result_has_text_structure_source_and_an_audit_record() {
    let (api, _, audit) = api(Profile::default());
    let (status, result) = call(&api, "echo", r#"{"arguments": {"count": 7}}"#).await;
    assert_eq!(status, 200, "{result}");
    assert_eq!(result["structured"], json!({"source": "one", "arguments": {"count": 7}}));
    assert_eq!(result["output"], r#"{"source":"one","arguments":{"count":7}}"#);
    assert_eq!(
        (&result["is_error"], &result["source"], &result["attempts"]),
        (&json!(false), &json!("one"), &json!(1))
    );
    assert!(result["duration_ms"].is_u64() && result.get("result_id").is_none(), "{result}");
    let (_, result) = call(&api, "echo", r#"{"source": "two"}"#).await;
    assert_eq!(result["source"], "two", "{result}");
    let (_, result) = call(&api, "two.echo", "{}").await;
    assert_eq!(result["source"], "two", "the exposed name: {result}");
    let (_, result) = call(&api, "dotted.name", r#"{"source": "one"}"#).await;
    assert_eq!(result["source"], "one", "{result}");
    let records = audit.0.lock();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record.caller == "http" && record.outcome == "ok"), "{records:?}");
}

#[tokio::test]
async fn a_failure_of_the_tool_is_a_result_without_unsafe_characters() {
    let (api, _, _) = api(Profile::default());
    let (status, result) = call(&api, "fail", "{}").await;
    assert_eq!(
        (status, &result["is_error"], &result["source"]),
        (200, &json!(true), &json!("one")),
        "{result}"
    );
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("no such file"), "{output}");
    assert_eq!(toolyard_core::find_unsafe(output), []);
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_result_have_a_typed_error() {
    let (api, _, audit) = api(Profile { timeout: Duration::from_secs(2), ..Profile::default() });
    for (tool, body, status, code) in [
        ("ecko", "{}", 404, "tool_not_found"),
        ("describe_tool", r#"{"arguments": {"name": "echo"}}"#, 404, "tool_not_found"),
        ("search_tools", r#"{"arguments": {"query": "x"}}"#, 409, "tool_ambiguous"),
        ("ask_agent", r#"{"arguments": {"question": "x"}}"#, 404, "tool_not_found"),
        ("echo", r#"{"source": "three"}"#, 404, "source_not_found"),
        ("echo", r#"{"arguments": {"count": "many"}}"#, 400, "invalid_arguments"),
        ("echo", r#"{"arguments": [1]}"#, 400, "invalid_request"),
        ("echo", r#"{"argument": {}}"#, 400, "invalid_request"),
        ("echo", "", 400, "invalid_request"),
        ("denied", "{}", 403, "call_denied"),
        ("shared", "{}", 409, "tool_ambiguous"),
        ("ask", "{}", 422, "input_required"),
        ("unreachable", "{}", 503, "source_unavailable"),
        // The tool may have had an effect.
        ("slow", "{}", 502, "outcome_unknown"),
    ] {
        let (found, error) = call(&api, tool, body).await;
        assert_eq!((found, error["error"]["code"].as_str()), (status, Some(code)), "{tool} {body}: {error}");
    }
    let (_, unknown) = call(&api, "ecko", "{}").await;
    assert_eq!(unknown["error"]["hint"], "did you mean `echo`?", "{unknown}");
    let (_, ambiguous) = call(&api, "shared", "{}").await;
    assert_eq!(ambiguous["error"]["hint"], "call one of `one.shared`, `two.shared`", "{ambiguous}");
    let outcomes: Vec<String> = audit.0.lock().iter().map(|record| record.outcome.clone()).collect();
    assert!(outcomes.contains(&"refused".to_owned()), "refused calls are recorded: {outcomes:?}");
}

fn keyed_request(key: &str, tool: &str, body: &str) -> RouteRequest {
    let mut request = call_request(tool, body);
    request.headers.insert("idempotency-key", key.parse().unwrap());
    request
}

async fn call_with_key(api: &HttpApi, key: &str, tool: &str, body: &str) -> (u16, Value) {
    let response = api.handle(keyed_request(key, tool, body)).await;
    let RouteBody::Json(text) = response.body else { panic!("no JSON") };
    (response.status.as_u16(), serde_json::from_slice(&text).unwrap())
}

#[tokio::test]
async fn a_call_with_a_key_is_made_once() {
    let (api, _, audit) = api(Profile::default());
    let calls = || audit.0.lock().len();
    let body = r#"{"arguments": {"count": 7}}"#;
    let first = call_with_key(&api, "k", "echo", body).await;
    assert_eq!(first.0, 200, "{first:?}");
    assert_eq!(call_with_key(&api, "k", "echo", body).await, first);
    let (status, reused) = call_with_key(&api, "k", "echo", "{}").await;
    assert_eq!((status, &reused["error"]["code"]), (422, &json!("idempotency_key_reused")), "{reused}");
    assert_eq!(calls(), 1);
    let failed = call_with_key(&api, "failed", "fail", "{}").await;
    assert_eq!(call_with_key(&api, "failed", "fail", "{}").await, failed, "a failure is an answer, too");
    assert_eq!(calls(), 2);
    call(&api, "echo", body).await;
    call_with_key(&api, "", "echo", body).await;
    call_with_key(&api, "other", "echo", body).await;
    assert_eq!(calls(), 5);
    let (status, refused) = call_with_key(&api, &"k".repeat(300), "echo", body).await;
    assert_eq!((status, calls()), (400, 5), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_call_with_an_unknown_outcome_is_not_made_again() {
    let (api, _, audit) = api(Profile { timeout: Duration::from_secs(2), ..Profile::default() });
    let repeated = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        api.handle(keyed_request("k", "slow", "{}")).await
    };
    let (first, repeated) = tokio::join!(call_with_key(&api, "k", "slow", "{}"), repeated);
    assert_eq!((first.0, &first.1["error"]["code"]), (502, &json!("outcome_unknown")), "{first:?}");
    assert_eq!(repeated.status, 409, "the call is running");
    assert!(repeated.headers.iter().any(|(name, value)| name == "x-should-retry" && value == "true"));
    let calls = audit.0.lock().len();
    assert_eq!(call_with_key(&api, "k", "slow", "{}").await, first);
    // A client that disconnects cancels its call.
    let disconnected = tokio::time::timeout(Duration::from_secs(1), call_with_key(&api, "d", "slow", "{}"));
    assert!(disconnected.await.is_err());
    let cancelled = audit.0.lock().len();
    let (status, repeated) = call_with_key(&api, "d", "slow", "{}").await;
    assert_eq!((status, &repeated["error"]["code"]), (502, &json!("outcome_unknown")), "{repeated}");
    assert_eq!(audit.0.lock().len(), cancelled);
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_before_the_tool_was_called_is_made_when_it_is_repeated() {
    let hub = Arc::new(ToolHub::new(HubConfig::default()));
    let tools = ["echo", "slow"].map(|name| {
        let spec = ToolSpec::new(name, "Does what its name says");
        Arc::new(ScriptedTool { spec, source: "one".to_owned(), claim: None }) as Arc<dyn Tool>
    });
    let mut source = SourceInfo::new("one", SourceKind::Mcp);
    source.exclusive = true;
    hub.register(source, Vec::from(tools));
    let main_tools = GatewayConfig::new(hub).main_tools();
    let api = HttpApi::new(HttpApiConfig { main_tools: Some(main_tools), ..HttpApiConfig::default() });
    let cancelled = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::time::timeout(Duration::from_secs(1), call_with_key(&api, "k", "echo", "{}")).await
    };
    tokio::select! {
        _ = call(&api, "slow", "{}") => panic!("the tool is slow"),
        cancelled = cancelled => assert!(cancelled.is_err(), "it waits for the other call"),
    }
    assert_eq!(call_with_key(&api, "k", "echo", "{}").await.0, 200);
}

#[tokio::test]
async fn a_call_that_was_not_made_is_made_when_it_is_repeated() {
    let (api, main_tools, audit) = api(Profile { tools: vec!["echo".into()], ..Profile::default() });
    let (status, refused) = call_with_key(&api, "k", "long", "{}").await;
    assert_eq!(status, 404, "{refused}");
    main_tools.set_profile(Profile { tools: vec!["long".into()], ..Profile::default() });
    let (status, result) = call_with_key(&api, "k", "long", "{}").await;
    assert_eq!(status, 200, "{result}");
    let calls = audit.0.lock().len();
    assert_eq!(call_with_key(&api, "k", "long", "{}").await, (status, result));
    assert_eq!(audit.0.lock().len(), calls);
}

#[tokio::test]
async fn a_stored_answer_is_given_although_the_tool_is_no_longer_offered() {
    let (api, main_tools, audit) = api(Profile { tools: vec!["echo".into()], ..Profile::default() });
    let first = call_with_key(&api, "k", "echo", "{}").await;
    assert_eq!(first.0, 200, "{first:?}");
    main_tools.set_profile(Profile { tools: vec!["long".into()], ..Profile::default() });
    assert_eq!(
        call_with_key(&api, "k", "echo", "{}").await,
        first,
        "an error would mean that nothing was called"
    );
    assert_eq!(audit.0.lock().len(), 1);
    assert_eq!(call_with_key(&api, "other", "echo", "{}").await.0, 404);
}

#[tokio::test]
async fn an_open_circuit_says_when_to_repeat_the_call() {
    let (api, _, _) = api(Profile::default());
    for _ in 0..50 {
        let request = call_request("unreachable", "{}");
        let response = api.handle(request).await;
        let header = |name: &str| {
            let found = response.headers.iter().find(|(header, _)| header == name);
            found.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        let (retry_after, should_retry) = (header("retry-after"), header("x-should-retry"));
        let RouteBody::Json(text) = &response.body else { panic!("no JSON") };
        assert_eq!((response.status.as_u16(), should_retry.as_deref()), (503, Some("true")), "{text:?}");
        let error: Value = serde_json::from_slice(text).unwrap();
        if error["error"]["code"] == "circuit_open" {
            let seconds: u64 = retry_after.unwrap().parse().unwrap();
            assert!(seconds > 2, "the time until the circuit is tried again, not the default: {seconds}");
            return;
        }
    }
    panic!("the circuit never opens");
}

#[tokio::test]
async fn a_long_result_is_truncated_as_the_profile_says_and_kept() {
    let (api, _, _) = api(Profile { budget: Budget::Characters(100), ..Profile::default() });
    let (_, result) = call(&api, "long", "{}").await;
    assert!(result["output"].as_str().unwrap().len() < 300, "{result}");
    let id = result["result_id"].as_str().unwrap();
    assert!(id.starts_with("r_"), "{result}");
    let read = async |offset: usize| {
        let request = RouteRequest {
            method: Method::GET,
            path: format!("/api/v1/results/{id}"),
            query: format!("offset={offset}&limit=70"),
            ..call_request("", "")
        };
        let response = api.handle(request).await;
        let RouteBody::Json(text) = response.body else { panic!("no JSON") };
        serde_json::from_slice::<Value>(&text).unwrap()
    };
    let (mut joined, mut next) = (String::new(), Some(0));
    while let Some(offset) = next {
        let part = read(usize::try_from(offset).unwrap()).await;
        joined.push_str(part["text"].as_str().unwrap());
        next = part["next"].as_u64();
    }
    assert_eq!(joined, "word ".repeat(200), "all parts joined are the whole");
    let unknown = RouteRequest {
        method: Method::GET,
        path: "/api/v1/results/r_none".to_owned(),
        ..call_request("", "")
    };
    assert_eq!(api.handle(unknown).await.status, 404);
}

#[tokio::test]
async fn a_result_says_whether_its_json_was_shortened() {
    let (short, _, _) = api(Profile { budget: Budget::Characters(100), ..Profile::default() });
    let (_, result) = call(&short, "table", "{}").await;
    assert_eq!(result["structured_truncated"], true, "{result}");
    assert!(result["structured"]["rows"].as_array().unwrap().len() < 200, "{result}");
    assert!(result["result_id"].is_string(), "{result}");
    let (whole, _, _) = api(Profile::default());
    let (_, result) = call(&whole, "table", "{}").await;
    assert!(result.get("structured_truncated").is_none(), "{result}");
    assert_eq!(result["structured"]["rows"].as_array().unwrap().len(), 200, "{result}");
}

#[tokio::test]
async fn a_tool_outside_the_main_profile_does_not_exist() {
    let (api, main_tools, _) =
        api(Profile { tools: vec!["echo".into()], servers: vec!["one".into()], ..Profile::default() });
    assert_eq!(call(&api, "echo", "{}").await.0, 200);
    for (tool, body) in [
        ("long", "{}"),
        ("long", r#"{"source": "one"}"#),
        ("one.long", "{}"),
        ("long@one", "{}"),
        ("echo", r#"{"source": "two"}"#),
        ("two.echo", "{}"),
        ("echo@two", "{}"),
        ("call_tool", r#"{"arguments": {"name": "long"}}"#),
    ] {
        let (status, error) = call(&api, tool, body).await;
        assert_eq!(status, 404, "{tool} {body}: {error}");
        assert!(
            !error["error"]["hint"].to_string().contains("long"),
            "a hidden tool is not suggested: {error}"
        );
    }
    main_tools.set_profile(Profile { tools: vec!["long".into()], ..Profile::default() });
    assert_eq!(call(&api, "long", "{}").await.0, 200, "the profile was replaced");
    assert_eq!(call(&api, "echo", "{}").await.0, 404);
}

#[tokio::test]
async fn every_tool_is_listed_with_the_name_by_which_it_is_called() {
    let restricted =
        Profile { tools: vec!["echo".into()], servers: vec!["one".into()], ..Profile::default() };
    for profile in [Profile::default(), restricted] {
        let (api, _, _) = api(profile);
        let list =
            RouteRequest { method: Method::GET, path: "/api/v1/tools".to_owned(), ..call_request("", "") };
        let RouteBody::Json(text) = api.handle(list).await.body else { panic!("no JSON") };
        let list: Value = serde_json::from_slice(&text).unwrap();
        let tools = list["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 13, "{list}");
        for tool in tools {
            let (name, source) = (tool["name"].as_str().unwrap(), tool["source"].as_str().unwrap());
            if ["slow", "unreachable"].contains(&name) {
                continue;
            }
            let (status, result) = match tool["call_as"].as_str() {
                Some(call_as) => call(&api, call_as, "{}").await,
                None => call(&api, name, &json!({ "source": source }).to_string()).await,
            };
            let is_callable = status == 200 || result["error"]["code"] == "input_required";
            assert_eq!(is_callable, tool["call_as"].is_string(), "{tool}: {result}");
            assert!(status != 200 || result["source"] == source, "{tool}: {result}");
        }
    }
}

#[tokio::test]
async fn without_tools_of_a_main_endpoint_nothing_is_called() {
    let api = HttpApi::new(HttpApiConfig::default());
    let (status, error) = call(&api, "echo", "{}").await;
    assert_eq!((status, error["error"]["code"].as_str()), (404, Some("tool_calls_not_offered")), "{error}");
}
