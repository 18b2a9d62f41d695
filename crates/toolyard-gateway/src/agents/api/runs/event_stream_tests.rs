//! Runs over HTTP as their clients see them: state, events and history.

use std::sync::Arc;

use futures_util::StreamExt as _;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use toolyard_agent::{AGENT_RUN_KIND, RunEnd, RunEvent, RunRequest};
use toolyard_core::{RawJson, RunId, RunState};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest, RouteResponse};
use toolyard_model::{ModelMessage, Role, ScriptedModel, ToolCalling};

use super::{events::run_event_schema, state::ApiRunState};
use crate::{HttpApi, agents::testing::TestAgents};

fn request(method: Method, path: &str, body: &Value) -> RouteRequest {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    RouteRequest {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        identity: Arc::default(),
        headers: http::HeaderMap::new(),
        body: body.to_string(),
    }
}

fn get(path: &str) -> RouteRequest {
    request(Method::GET, path, &json!({}))
}

fn json_of(response: RouteResponse) -> Value {
    match response.body {
        RouteBody::Json(bytes) => serde_json::from_slice(&bytes).unwrap(),
        RouteBody::Events { .. } | RouteBody::Empty => panic!("no JSON"),
    }
}

/// The `id:`, `event:` and `data:` of each event until the stream ends.
async fn events_of(response: RouteResponse) -> Vec<(Option<i64>, String, Value)> {
    let RouteBody::Events { stream, .. } = response.body else { panic!("no stream: {}", response.status) };
    let chunks: Vec<bytes::Bytes> = stream.collect().await;
    let text = String::from_utf8(chunks.concat()).unwrap();
    let parse = |event: &str| {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let data = serde_json::from_str(field("data:").unwrap()).unwrap();
        (field("id:").map(|id| id.parse().unwrap()), field("event:").unwrap().to_owned(), data)
    };
    text.split_terminator("\n\n").map(parse).collect()
}

/// An agent that reasons out one step and answers from it.
fn reasoning_agents() -> (TestAgents, Arc<ScriptedModel>) {
    let replies = [
        r#"{"steps": [{"id": "think", "description": "think hard", "tool_type": "none"}]}"#,
        "thought",
        "The answer.",
    ];
    let model = Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, replies));
    let mut agents = TestAgents::in_memory();
    agents.parts.model = Arc::clone(&model) as _;
    (agents, model)
}

async fn start(api: &HttpApi, body: &Value) -> String {
    let started = json_of(api.handle(request(Method::POST, "/runs", body)).await);
    assert_eq!(started["state"], "running", "{started}");
    started["run"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_run_has_flat_events_under_the_published_schema() {
    let (agents, _) = reasoning_agents();
    let api = HttpApi::of_agents(agents.service());
    let run = start(&api, &json!({"question": "why?"})).await;
    let events = events_of(api.handle(get(&format!("/runs/{run}/events"))).await).await;
    let schema = json_of(api.handle(get("/api/v1/events.schema.json")).await);
    assert_eq!(&schema, run_event_schema().as_value());
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (id, name, data) in &events {
        assert!(validator.is_valid(data), "{data}");
        assert_eq!(
            (&json!(name), data.get("number").and_then(Value::as_i64)),
            (&data["type"], *id),
            "{data}"
        );
        assert_eq!(data["run"], json!(run));
    }
    let names: Vec<&str> = events.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"run_created"), Some(&"run_ended")), "{names:?}");
    for expected in ["planned", "step_started", "step_ended", "model_replied"] {
        assert!(names.contains(&expected), "{names:?}");
    }
    let (_, _, last) = events.last().unwrap();
    assert_eq!((&last["state"], &last["answer"]), (&json!("answered"), &json!("The answer.")), "{last}");

    let shown = json_of(api.handle(get(&format!("/runs/{run}"))).await);
    let expected = json!(["answered", "The answer.", "why?", "assistant"]);
    assert_eq!(json!([shown["state"], shown["answer"], shown["question"], shown["agent"]]), expected);
    assert_eq!(shown["plan"]["steps"][0]["id"], "think", "{shown}");
    assert_eq!(shown["last_event"], last["number"], "{shown}");
    let path = format!("/runs/{run}/log?after={}", shown["last_event"]);
    assert_eq!(json_of(api.handle(get(&path)).await)["events"], json!([]), "nothing follows the last event");
    assert!(shown["usage"]["input_tokens"].is_u64() && shown["sources"].is_array(), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_continues_after_a_number() {
    let (agents, _) = reasoning_agents();
    let api = HttpApi::of_agents(agents.service());
    let run = start(&api, &json!({"question": "why?"})).await;
    let path = format!("/runs/{run}/events");
    let all = events_of(api.handle(get(&path)).await).await;
    let last = all.last().unwrap().0.unwrap();
    let first_of = async |request: RouteRequest| events_of(api.handle(request).await).await.remove(0).0;
    assert_eq!(first_of(get(&format!("{path}?after=2"))).await, Some(3));
    assert_eq!(api.handle(get(&format!("{path}?other=1&after=2"))).await.status, 400);
    let mut reconnecting = get(&format!("{path}?after=0"));
    reconnecting.headers.insert("last-event-id", HeaderValue::from_static("3"));
    assert_eq!(first_of(reconnecting).await, Some(4), "the header is newer than the parameter");
    assert_eq!(api.handle(get(&format!("{path}?after={last}"))).await.status, 204);
    for invalid in ["x", "", "1.5", "99999999999999999999"] {
        let response = api.handle(get(&format!("{path}?after={invalid}"))).await;
        assert_eq!(response.status, 400, "{invalid}");
        let error = json_of(response);
        assert_eq!(error["error"]["code"], "invalid_request", "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_told_the_history_in_either_form() {
    let (agents, model) = reasoning_agents();
    let api = HttpApi::of_agents(agents.service());
    let history = json!([
        {"role": "user", "content": "first"},
        {"role": "assistant", "text": "second"},
        {"role": "user", "content": [{"type": "text", "text": "third"}]},
    ]);
    let run = start(&api, &json!({"question": "why?", "history": history})).await;
    events_of(api.handle(get(&format!("/runs/{run}/events"))).await).await;
    let prompt = model.requests().remove(0).messages;
    for (role, text) in [(Role::User, "first"), (Role::Assistant, "second"), (Role::User, "third")] {
        assert!(prompt.contains(&ModelMessage::new(role, text)), "{prompt:?}");
    }
    for invalid in [
        json!([{"role": "user", "content": "a", "text": "b"}]),
        json!([{"role": "root", "content": "a"}]),
        json!([{"role": "user", "content": [{"type": "image_url"}]}]),
    ] {
        let body = json!({"question": "why?", "history": invalid});
        assert_eq!(api.handle(request(Method::POST, "/runs", &body)).await.status, 400, "{body}");
    }
}

/// What `GET /runs/ID` shows of a run with this end.
async fn shown_end(end: RunEnd) -> Value {
    let agents = TestAgents::in_memory();
    let log = agents.log();
    let run: RunId = log.create_run(AGENT_RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease = log.claim(&run, "other", std::time::Duration::from_secs(5)).await.unwrap();
    let events = [RunEvent::Requested { request: RunRequest::default() }, RunEvent::ended(end)];
    let events: Vec<RawJson> = events.iter().map(|event| RawJson::from_serialize(event).unwrap()).collect();
    log.append_all(&lease, 0, &events).await.unwrap();
    json_of(HttpApi::of_agents(agents.service()).handle(get(&format!("/runs/{run}"))).await)
}

#[tokio::test]
async fn the_state_of_a_run_is_one_word() {
    let (message, hint) = ("no model".to_owned(), Some("start it".to_owned()));
    let failed = RunEnd::Failed { message, hint, model_error: None };
    let shown = shown_end(failed).await;
    let expected = json!(["failed", "no model", "start it", null]);
    assert_eq!(json!([shown["state"], shown["message"], shown["hint"], shown["answer"]]), expected);
    assert_eq!(shown_end(RunEnd::Suspended { waiting_for: Vec::new() }).await["state"], "suspended");
    assert_eq!(shown_end(RunEnd::Planned).await["state"], "planned");
    for (record, state) in [
        (RunState::Open, ApiRunState::Running),
        (RunState::Failed, ApiRunState::Failed),
        (RunState::Cancelled, ApiRunState::Cancelled),
    ] {
        assert_eq!(ApiRunState::new(record, None), state);
    }
}
