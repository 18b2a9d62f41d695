//! Requests that are dropped, repeated or too late.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use axum::body::Body;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use toolyard_agent::{AGENT_RUN_KIND, Plan, RunEnd, RunEvent, RunRequest, Step, StepEnd};
use toolyard_core::{
    ApprovalKind, CallerIdentity, ContentHash, ErrorKind, Lease, RawJson, RunId, ServiceCall, StepIntent,
    ToolCallRequest,
};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteResponse};
use toolyard_model::{ModelMessage, Role};
use tower::ServiceExt as _;

use super::{openai::handlers::resolve_suspended_notices, *};
use crate::agents::{ask_agent::AskAgent, run_text::suspended_notice, testing::TestAgents};
use crate::{HttpApi, OperatorAccess, api::error_code::ErrorCode};

fn api(agents: &TestAgents) -> HttpApi {
    HttpApi::of_agents(agents.service())
}

fn post(path: &str, headers: &[(&'static str, &str)], body: &Value) -> RouteRequest {
    let headers = headers
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    RouteRequest {
        method: Method::POST,
        path: path.to_owned(),
        query: String::new(),
        identity: Arc::default(),
        headers: headers.collect(),
        body: body.to_string(),
    }
}

/// Starts a run whose question is the idempotency key.
fn start_request(key: &str) -> RouteRequest {
    post("/runs", &[("idempotency-key", key)], &json!({ "question": key }))
}

fn parse(response: RouteResponse) -> (u16, Value) {
    match response.body {
        RouteBody::Json(bytes) => (response.status.as_u16(), serde_json::from_slice(&bytes).unwrap()),
        RouteBody::Events { .. } | RouteBody::Empty => panic!("no JSON"),
    }
}

/// The started runs with this question.
async fn started_runs(agents: &TestAgents, question: &str) -> Vec<RunId> {
    let mut found = Vec::new();
    let runs = agents.log().runs(1_000).await.unwrap();
    for run in runs.into_iter().filter(|run| run.kind == AGENT_RUN_KIND) {
        let is_match = run.detail.to_value()["question"] == question;
        if is_match && !agents.log().events(&run.id, 0).await.unwrap().is_empty() {
            found.push(run.id);
        }
    }
    found
}

/// Polls a future at most this many times, then drops it. Returns its output if it completes.
async fn drop_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Repeats a request until its run is started.
async fn start_until_accepted(api: &HttpApi, key: &str) -> (u16, Value) {
    for _ in 0..500 {
        let (status, response) = parse(api.handle(start_request(key)).await);
        if status == 202 {
            return (status, response);
        }
        assert_eq!(response["error"]["code"], "already_started", "{response}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the run of {key} is never started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_dropped_at_any_point_and_repeated_starts_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let api = api(&agents);
    for polls in 1..100 {
        let key = format!("dropped-{polls}");
        let response = drop_after(polls, api.handle(start_request(&key))).await;
        let (_, repeated) = start_until_accepted(&api, &key).await;
        let runs = started_runs(&agents, &key).await;
        assert_eq!(runs.len(), 1, "dropped after {polls} polls");
        assert_eq!(repeated["run"], json!(runs[0]), "dropped after {polls} polls");
        if response.is_some() {
            return;
        }
    }
    panic!("the request never completes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_gateway_recognizes_an_idempotency_key() {
    let folder = tempfile::tempdir().unwrap();
    let first = TestAgents::in_folder(&folder).await;
    let (_, first_response) = start_until_accepted(&api(&first), "once").await;
    drop(first);
    let second = TestAgents::in_folder(&folder).await;
    let api = api(&second);
    let (status, repeated) = parse(api.handle(start_request("once")).await);
    assert_eq!((status, &repeated["run"]), (202, &first_response["run"]));
    assert_eq!(started_runs(&second, "once").await.len(), 1);
    let other = post("/runs", &[("idempotency-key", "once")], &json!({"question": "another"}));
    let (_, error) = parse(api.handle(other).await);
    assert_eq!(error["error"]["code"], "idempotency_key_reused", "{error}");
    let retry = post("/runs", &[("x-stainless-retry-count", "1")], &json!({"question": "once"}));
    let (_, error) = parse(api.handle(retry).await);
    assert_eq!(error["error"]["code"], "already_started", "{error}");
    let request = post("/runs", &[("idempotency-key", "once")], &json!({"question": "b"}));
    assert_eq!(parse(api.handle(as_caller("other", request)).await).0, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_events_does_not_occupy_its_idempotency_key() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let (_, first) = start_until_accepted(&api(&agents), "once").await;
    let detail = agents.log().run(&RunId::from(first["run"].as_str().unwrap())).await.unwrap().detail;
    let detail = detail.get().replace("once", "twice");
    // As if a process had died between creating the run and logging its first event.
    agents.log().create_run(AGENT_RUN_KIND, &RawJson::parse(detail).unwrap()).await.unwrap();
    let (status, repeated) = parse(api(&agents).handle(start_request("once")).await);
    assert_eq!((status, &repeated["run"]), (202, &first["run"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_shuts_down_starts_no_runs() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let service = agents.service();
    let (api, ask_agent) = (HttpApi::of_agents(service.clone()), AskAgent::new(service.clone()));
    service.stop_accepting();
    let completion = json!({"model": "assistant", "messages": [{"role": "user", "content": "hello"}]});
    for request in [start_request("late"), post("/v1/chat/completions", &[], &completion)] {
        let (status, error) = parse(api.handle(request).await);
        assert_eq!((status, error["error"]["code"].as_str()), (503, Some("shutting_down")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("did not start the run"), "{error}");
    }
    let request = ToolCallRequest::new("ask_agent", json!({"question": "late"}));
    let call = ServiceCall { request, caller: None, caller_name: "client".into() };
    let error = ask_agent.call(&call).await.unwrap_err();
    assert!(error.to_string().contains("did not start the run"), "{error}");
    assert!(agents.log().runs(10).await.unwrap().is_empty());
}

/// A run of this kind of request with a step that its process started before it died.
async fn run_with_unknown_step(agents: &TestAgents, request: RunRequest) -> RunId {
    let agent = agents.service().0.agent("assistant").unwrap();
    let run = agent.create_run(RunRequest { agent: "assistant".to_owned(), ..request }).await.unwrap();
    let lease = agents.log().claim(&run, "dead", Duration::from_millis(1)).await.unwrap();
    let hash = ContentHash::of("");
    let intent = StepIntent {
        step: "pay".to_owned(),
        tool: "pay".to_owned(),
        source: None,
        definition: hash,
        arguments: hash,
        redacted_arguments: r#"{"euros":3}"#.to_owned(),
        repeatable: false,
    };
    agents.log().begin(&lease, &intent).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_is_listed_and_resolved_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let authority = Some(Box::new(agents.service().0.agent("assistant").unwrap().authority()));
    let run = run_with_unknown_step(&agents, RunRequest { authority, ..RunRequest::default() }).await;
    let api = api(&agents);
    for path in ["/api/v1/unknown-steps".to_owned(), format!("/runs/{run}")] {
        let request = RouteRequest { method: Method::GET, ..post(&path, &[], &json!({})) };
        let (_, found) = parse(api.handle(request).await);
        let steps = found.get("unknown_steps").or(found.get("steps")).unwrap();
        assert_eq!((&steps[0]["run"], &steps[0]["step"]), (&json!(run), &json!("pay")), "{found}");
        let arguments = (&steps[0]["arguments"], &steps[0]["arguments_text"]);
        assert_eq!(arguments, (&json!({"euros": 3}), &Value::Null), "{found}");
    }
    let resolve = async |run: &RunId, step: &str, outcome: &str| {
        let body = json!({"run": run, "step": step, "outcome": outcome});
        parse(api.handle(post("/api/v1/unknown-steps", &[], &body)).await)
    };
    // To say that a call did not happen permits it, as an approval does.
    let (status, error) = resolve(&run, "pay", "not_done").await;
    assert_eq!((status, error["error"]["code"].as_str()), (403, Some("approval_not_permitted")), "{error}");
    assert_eq!(resolve(&run, "other", "done").await.0, 404);
    assert_eq!(resolve(&RunId::from("01"), "pay", "done").await.0, 404);
    assert_eq!(resolve(&run, "pay", "perhaps").await.0, 400);
    let (status, resolved) = resolve(&run, "pay", "done").await;
    assert_eq!((status, &resolved["resumed"]), (202, &json!(true)), "{resolved}");
    assert_eq!(resolve(&run, "pay", "done").await.0, 404, "only the first resolution counts");
    assert!(agents.log().unknown_steps().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_listed_with_their_conversation_and_filtered_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let agent = agents.service().0.agent("assistant").unwrap();
    for name in ["taxes", "travel", "taxes"] {
        let id = ConversationId { owner: "secret".to_owned(), name: name.to_owned() };
        let (question, conversation) = (name.to_owned(), Some(Box::new(id)));
        agent.create_run(RunRequest { question, conversation, ..RunRequest::default() }).await.unwrap();
    }
    agent.create_run(RunRequest { question: "none".to_owned(), ..RunRequest::default() }).await.unwrap();
    let api = api(&agents);
    let list = async |query: &str| {
        let request = post("/runs", &[], &json!({}));
        let request = RouteRequest { method: Method::GET, query: query.to_owned(), ..request };
        let (status, list) = parse(api.handle(request).await);
        assert_eq!(status, 200, "{list}");
        assert!(!list.to_string().contains("secret"), "the owner is not shown: {list}");
        let runs = list["runs"].as_array().unwrap().clone();
        runs.into_iter().map(|run| run["conversation"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(list("conversation=taxes").await, [json!("taxes"), json!("taxes")]);
    assert_eq!(list("conversation=other").await, Vec::<Value>::new());
    let mut all = list("").await;
    all.sort_by_key(ToString::to_string);
    assert_eq!(all, [json!("taxes"), json!("taxes"), json!("travel"), Value::Null]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_run_of_a_command_is_left_to_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let run = run_with_unknown_step(&agents, RunRequest::default()).await;
    let body = json!({"run": run, "step": "pay", "outcome": "done"});
    let (status, resolved) = parse(api(&agents).handle(post("/api/v1/unknown-steps", &[], &body)).await);
    assert_eq!((status, &resolved["resumed"]), (202, &json!(false)), "{resolved}");
    assert_eq!(agents.log().events(&run, 0).await.unwrap().len(), 1, "nobody drove it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_resumes_a_run_only_under_the_rules_it_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let mut stricter = agents.in_process("stricter");
    stricter.parts.rules.deny.push("pay".to_owned());
    let authority = Some(Box::new(agents.service().0.agent("assistant").unwrap().authority()));
    for (other, is_resumed) in [(&stricter, false), (&agents, true)] {
        for decision in ["approve", "resolve"] {
            let request = RunRequest { authority: authority.clone(), ..RunRequest::default() };
            let run = run_with_unknown_step(&agents, request).await;
            let approvals = &agents.parts.approvals;
            let approval = approvals.request_approval(&run, Some("pay"), ApprovalKind::ToolCall, "pay").await;
            let request = match decision {
                "approve" => {
                    post(&format!("/api/v1/approvals/{}", approval.unwrap()), &[], &json!({"allow": false}))
                }
                _ => {
                    let body = json!({"run": run, "step": "pay", "outcome": "done"});
                    post("/api/v1/unknown-steps", &[], &body)
                }
            };
            let (status, decided) = parse(api(other).handle(request).await);
            assert_eq!((status, &decided["resumed"]), (202, &json!(is_resumed)), "{decision}: {decided}");
            if !is_resumed {
                let events = agents.log().events(&run, 0).await.unwrap();
                assert_eq!(events.len(), 1, "{decision}: recorded, and nobody drives the run");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pending_approval_names_its_step_without_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let (log, api) = (agents.log(), api(&agents));
    let step = Step { id: "write".to_owned(), tool_type: "write_note".to_owned(), ..Step::default() };
    let planned =
        RunEvent::Planned { plan: Plan { steps: vec![step] }, tools: std::collections::BTreeMap::new() };
    let kind = Some(ErrorKind::InvalidArguments);
    let outcome = StepEnd::Failed { message: "no".to_owned(), hint: None, kind };
    let failed = RunEvent::StepEnded { step: "write".to_owned(), outcome, milliseconds: 1 };
    // New arguments are a second attempt.
    let repaired = RunEvent::StepRepaired {
        step: "write".to_owned(),
        arguments: serde_json::Map::new(),
        notes: Vec::new(),
    };
    let suspended = RunEvent::ended(RunEnd::Suspended { waiting_for: vec!["1".to_owned()] });
    let requested = RunEvent::Requested { request: RunRequest::default() };
    let events = [requested, planned, failed, repaired, suspended];
    let events: Vec<RawJson> = events.iter().map(|event| RawJson::from_serialize(event).unwrap()).collect();
    let run = log.create_run(AGENT_RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "another", Duration::from_millis(1)).await.unwrap();
    log.append_all(&lease, 0, &events).await.unwrap();
    let approvals = &agents.parts.approvals;
    approvals.request_approval(&run, Some("write#2"), ApprovalKind::ToolCall, "write").await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (_, shown) = parse(api.handle(get(&format!("/runs/{run}"))).await);
    let pending = &shown["pending_approvals"][0];
    assert_eq!(pending["step"], "write", "{shown}");
    let decide = async |approval: i64| {
        let path = format!("/api/v1/approvals/{approval}");
        parse(api.handle(post(&path, &[], &json!({"allow": false}))).await)
    };
    let approval = pending["approval"].as_i64().unwrap();
    assert_eq!(decide(approval + 1).await.0, 404);
    let (status, decided) = decide(approval).await;
    assert_eq!(status, 202, "{decided}");
    assert_eq!(decide(approval).await.0, 404, "it is decided");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_lists_are_read_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let api = api(&agents);
    let run = answered_run(&agents, "yes").await;
    for step in ["a", "b", "c"] {
        let approvals = &agents.parts.approvals;
        approvals.request_approval(&run, Some(step), ApprovalKind::ToolCall, step).await.unwrap();
    }
    for _ in 0..3 {
        run_with_unknown_step(&agents, RunRequest::default()).await;
    }
    let get = async |path: &str, query: String| {
        let request = RouteRequest { method: Method::GET, query, ..post(path, &[], &json!({})) };
        parse(api.handle(request).await)
    };
    for (path, list, id, count) in [
        (format!("/api/v1/runs/{run}/log"), "events", "number", 2),
        ("/api/v1/approvals".to_owned(), "approvals", "approval", 3),
        ("/api/v1/unknown-steps".to_owned(), "steps", "run", 3),
    ] {
        let (_, whole) = get(&path, String::new()).await;
        assert_eq!(
            (whole[list].as_array().map(Vec::len), &whole["next"]),
            (Some(count), &json!(null)),
            "{whole}"
        );
        let (mut found, mut query) = (Vec::new(), "limit=1".to_owned());
        loop {
            let (status, page) = get(&path, query).await;
            assert_eq!((status, page[list].as_array().map(Vec::len)), (200, Some(1)), "{page}");
            found.push(page[list][0][id].clone());
            let Some(next) = page["next"].as_str() else { break };
            query = format!("limit=1&after={next}");
        }
        let expected: Vec<Value> =
            whole[list].as_array().unwrap().iter().map(|entry| entry[id].clone()).collect();
        assert_eq!(found, expected, "{path}");
        assert_eq!(get(&path, "limit=501".to_owned()).await.0, 400, "{path}");
    }
    let (status, rest) = get(&format!("/api/v1/runs/{run}/log"), "after=1".to_owned()).await;
    assert_eq!((status, &rest["events"]), (200, &json!([])), "nothing follows: {rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_resumed_unless_it_is_over_waits_or_belongs_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let (log, api) = (agents.log(), api(&agents));
    let resume = async |run: &RunId| {
        parse(api.handle(post(&format!("/api/v1/runs/{run}/resume"), &[], &json!({}))).await)
    };
    let agent = agents.service().0.agent("assistant").unwrap();
    let authority = Some(Box::new(agent.authority()));
    let create = async |authority| {
        agent
            .create_run(RunRequest { agent: "assistant".to_owned(), authority, ..RunRequest::default() })
            .await
            .unwrap()
    };
    let code = |error: &Value| error["error"]["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(resume(&RunId::from("01")).await.0, 404);
    let (status, error) = resume(&create(None).await).await;
    assert_eq!((status, code(&error)), (409, "run_not_resumable".to_owned()), "of a command: {error}");
    assert!(error["error"]["hint"].is_null(), "a model may read it: {error}");
    let mut request = http::Request::post(format!("/api/v1/runs/{}/resume", create(None).await))
        .body(Body::empty())
        .unwrap();
    request.extensions_mut().insert(OperatorAccess);
    let response = api.router().oneshot(request).await.unwrap();
    let error = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let error: Value = serde_json::from_slice(&error).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().contains("started by a command of the operator"),
        "{error}"
    );
    assert!(error["error"]["hint"].as_str().unwrap().contains("toolyard runs resume"), "{error}");

    let leased = create(authority.clone()).await;
    log.claim(&leased, "another", Duration::from_secs(60)).await.unwrap();
    let (status, error) = resume(&leased).await;
    assert_eq!((status, code(&error)), (409, "run_active".to_owned()), "{error}");

    let waiting = create(authority.clone()).await;
    let lease = log.claim(&waiting, "another", Duration::from_millis(1)).await.unwrap();
    let end = RunEnd::Suspended { waiting_for: vec!["1".to_owned()] };
    log.append(&lease, 1, &RawJson::from_serialize(&RunEvent::ended(end)).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (status, error) = resume(&waiting).await;
    assert_eq!((status, code(&error)), (409, "run_waits".to_owned()), "{error}");
    assert_eq!(log.events(&waiting, 0).await.unwrap().len(), 2, "nobody drove it");

    let interrupted = create(authority).await;
    log.claim(&interrupted, "dead", Duration::from_millis(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (status, started) = resume(&interrupted).await;
    assert_eq!((status, &started["state"]), (202, &json!("running")), "{started}");
    let is_over =
        async || matches!(log.run(&interrupted).await.unwrap().state, toolyard_core::RunState::Done);
    for _ in 0..500 {
        if is_over().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_over().await, "it is driven to its end");
    let (status, error) = resume(&interrupted).await;
    assert_eq!((status, code(&error)), (409, "run_finished".to_owned()), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawn_run_does_not_occupy_its_idempotency_key() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let log = agents.log();
    let (_, first) = start_until_accepted(&api(&agents), "once").await;
    let first = RunId::from(first["run"].as_str().unwrap());
    let detail = log.run(&first).await.unwrap().detail;
    // The same request, whose creator died or gave up, in another process.
    let requested = log.events(&first, 0).await.unwrap().remove(0).event;
    let other = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&other).await;
    let (log, api) = (agents.log(), api(&agents));
    let run = log.create_run(AGENT_RUN_KIND, &detail).await.unwrap();
    let lease = log.claim(&run, "first-creates", Duration::from_secs(60)).await.unwrap();
    log.append(&lease, 0, &requested).await.unwrap();
    let response = api.handle(start_request("once")).await;
    let retry_after = response.headers.iter().any(|(name, _)| name.as_str() == "retry-after");
    let (status, error) = parse(response);
    assert_eq!((status, retry_after), (409, true), "the first request may still be accepted: {error}");
    log.release(&lease, toolyard_core::RunState::Cancelled).await.unwrap();
    let (status, started) = parse(api.handle(start_request("once")).await);
    assert_eq!(status, 202, "{started}");
    assert_ne!(started["run"], json!(run));
}

async fn answered_run(agents: &TestAgents, answer: &str) -> RunId {
    let log = agents.log();
    let run = log.create_run(AGENT_RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease: Lease = log.claim(&run, "other", Duration::from_secs(5)).await.unwrap();
    let end = RunEnd::Answered { answer: answer.to_owned(), sources: Vec::new(), truncated: false };
    let events = [RunEvent::Requested { request: RunRequest::default() }, RunEvent::ended(end)];
    let events: Vec<RawJson> = events.iter().map(|event| RawJson::from_serialize(event).unwrap()).collect();
    log.append_all(&lease, 0, &events).await.unwrap();
    run
}

#[tokio::test]
async fn notices_of_the_latest_suspended_runs_are_replaced_by_their_answers_once() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let mut history = Vec::new();
    for number in 0..25 {
        let run = answered_run(&agents, &format!("answer {number}")).await;
        history.push(ModelMessage::user(format!("question {number}")));
        history.push(ModelMessage::assistant(suspended_notice(&run, &[])));
        history.push(ModelMessage::assistant(suspended_notice(&run, &[])));
    }
    let (runs, identity) = (agents.service().0, CallerIdentity::anonymous());
    let resolved = resolve_suspended_notices(&runs, &identity, history).await;
    let answers: Vec<&str> = resolved
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text.as_str())
        .collect();
    let latest: Vec<String> = (5..25).map(|number| format!("answer {number}")).collect();
    assert_eq!(answers, latest);
    assert_eq!(resolved.iter().filter(|message| message.role == Role::User).count(), 25);
}

#[tokio::test]
async fn unknown_paths_and_methods_get_errors_in_the_form_of_the_api() {
    let api = api(&TestAgents::in_memory());
    let request = |method: Method, path: &str| RouteRequest { method, ..post(path, &[], &json!({})) };
    for (method, path, status, code) in [
        (Method::GET, "/runs/1/nothing", 404, "route_not_found"),
        (Method::GET, "/api/nothing", 404, "route_not_found"),
        (Method::GET, "/v1/chat/completions", 405, "method_not_allowed"),
        (Method::DELETE, "/api/v1/runs/1/cancel", 405, "method_not_allowed"),
        (Method::GET, "/runs/%ff", 400, "invalid_request"),
        (Method::GET, "/runs/1/", 404, "run_not_found"),
        (Method::GET, "/api/v1/runs/1", 404, "run_not_found"),
    ] {
        let response = api.handle(request(method, path)).await;
        let content_types = response.headers.iter().filter(|(name, _)| name == "content-type").count();
        let (found, error) = parse(response);
        assert_eq!((found, error["error"]["code"].as_str()), (status, Some(code)), "{path}: {error}");
        assert_eq!(content_types, 1, "{path}");
    }
}

#[tokio::test]
async fn an_invalid_parameter_in_the_path_is_named_without_words_of_the_library() {
    let api = api(&TestAgents::in_memory());
    for (path, message) in [
        ("/api/v1/approvals/null", "`null` is not a valid value of `approval` in the path"),
        ("/api/v1/approvals/%ff", "the path cannot be read"),
    ] {
        let (status, error) = parse(api.handle(post(path, &[], &json!({"allow": true}))).await);
        assert_eq!((status, &error["error"]["message"]), (400, &json!(message)), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_or_mistyped_field_of_a_body_is_named() {
    let api = api(&TestAgents::in_memory());
    for (path, body, param) in [
        ("/runs", json!({"question": "now", "agnet": "clerk"}), json!("agnet")),
        ("/runs", json!({"question": 7}), json!("question")),
        ("/runs", json!({}), Value::Null),
        ("/runs", json!([7]), Value::Null),
        ("/runs", json!({"question": "now", "history": [{"content": "x"}]}), json!("history[0]")),
        (
            "/runs",
            json!({"question": "now", "history": [{"role": "user", "content": "x", "name": "y"}]}),
            json!("history[0].name"),
        ),
        ("/api/v1/approvals/1", json!({"allow": "yes"}), json!("allow")),
        (
            "/v1/chat/completions",
            json!({"messages": [{"content": "x", "role": 7}]}),
            json!("messages[0].role"),
        ),
    ] {
        let (status, error) = parse(api.handle(post(path, &[], &body)).await);
        assert_eq!((status, &error["error"]["param"]), (400, &param), "{body}: {error}");
    }
}

#[test]
fn responses_have_no_hidden_text() {
    let hidden = "a\u{202e}\u{1b}[2J\u{e0041}b";
    let value = json!({"question": hidden, "end": {"answer": [hidden]}});
    let (_, value) = parse(error::json_response(StatusCode::OK, &value));
    assert_eq!(value, json!({"question": "ab", "end": {"answer": ["ab"]}}));
    let (_, value) = parse(ApiError::failed(ErrorCode::RunFailed, hidden).into());
    assert_eq!(value["error"]["message"], "ab");
}

#[tokio::test]
async fn a_mounted_router_serves_requests_and_limits_their_bodies() {
    let router = HttpApi::of_agents(TestAgents::in_memory().service()).router();
    let application = axum::Router::new().nest("/toolyard", router);
    let send = async |body: String| {
        let request = http::Request::post("/toolyard/runs").body(Body::from(body)).unwrap();
        let response = application.clone().oneshot(request).await.unwrap();
        assert!(response.headers().contains_key("x-request-id"));
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, started) = send(json!({"question": "now"}).to_string()).await;
    assert_eq!(status, 202, "{started}");
    let (status, error) = send(json!({"question": "x".repeat(5 << 20)}).to_string()).await;
    assert_eq!((status, error["error"]["code"].as_str()), (413, Some("request_too_large")), "{error}");
    let (status, _) = send("\u{0}".to_owned()).await;
    assert_eq!(status, 400);
}

fn as_caller(subject: &str, mut request: RouteRequest) -> RouteRequest {
    request.identity = Arc::new(CallerIdentity::principal("https://issuer", subject));
    request
}

fn get(path: &str) -> RouteRequest {
    RouteRequest { method: Method::GET, ..post(path, &[], &Value::Null) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_sees_its_own_runs_only() {
    let folder = tempfile::tempdir().unwrap();
    let agents = TestAgents::in_folder(&folder).await;
    let api = api(&agents);
    let start = || post("/runs", &[("idempotency-key", "k")], &json!({"question": "same"}));
    let (status, started) = parse(api.handle(as_caller("alice", start())).await);
    assert_eq!(status, 202, "{started}");
    let run = started["run"].as_str().unwrap();
    let (_, repeated) = parse(api.handle(as_caller("alice", start())).await);
    assert_eq!(repeated["run"], run, "the same caller repeats its request");
    let (status, of_bob) = parse(api.handle(as_caller("bob", start())).await);
    assert_eq!(status, 202, "{of_bob}");
    assert_ne!(of_bob["run"], run, "another caller starts a run of its own");
    let listed = async |request: RouteRequest| {
        let (status, list) = parse(api.handle(request).await);
        assert_eq!(status, 200, "{list}");
        list["runs"].as_array().unwrap().iter().map(|listed| listed["run"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(as_caller("alice", get("/runs"))).await, [json!(run)]);
    assert_eq!(listed(as_caller("bob", get("/runs"))).await, [of_bob["run"].clone()]);
    assert_eq!(listed(get("/runs")).await.len(), 2, "the operator sees all");
    for path in ["", "/events", "/log"] {
        let (status, error) = parse(api.handle(as_caller("bob", get(&format!("/runs/{run}{path}")))).await);
        assert_eq!((status, &error["error"]["code"]), (404, &json!("run_not_found")), "{path}");
    }
    for (path, body) in [
        ("/api/v1/unknown-steps".to_owned(), json!({"run": run, "step": "x", "outcome": "done"})),
        (format!("/runs/{run}/resume"), json!({})),
        (format!("/runs/{run}/cancel"), json!({})),
    ] {
        let (status, error) = parse(api.handle(as_caller("bob", post(&path, &[], &body))).await);
        assert_eq!((status, &error["error"]["code"]), (404, &json!("run_not_found")), "{path}: {error}");
    }
    let (status, shown) = parse(api.handle(as_caller("alice", get(&format!("/runs/{run}")))).await);
    assert_eq!(status, 200, "{shown}");
    let (status, refused) = parse(api.handle(as_caller("alice", get("/api/v1/audit"))).await);
    assert_eq!(status, 403, "{refused}");
}
