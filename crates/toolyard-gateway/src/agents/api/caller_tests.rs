//! What callers with credentials of their own may do with agents.

use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use toolyard_agent::{AGENT_RUN_KIND, DEFAULT_AGENT};
use toolyard_core::{Caller, CallerIdentity, ErrorKind, RawJson, ServiceCall, ToolCallRequest};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody};
use toolyard_model::{ScriptedModel, ToolCalling};

use super::*;
use crate::{
    HttpApi,
    agents::{ask_agent::AskAgent, run_text::suspended_notice, testing::TestAgents},
};

fn caller(name: &str, agents: Option<&[&str]>) -> Arc<CallerIdentity> {
    let mut identity = CallerIdentity::principal("https://id.example", name);
    identity.allowed_agents = agents.map(|agents| agents.iter().map(|agent| (*agent).to_owned()).collect());
    Arc::new(identity)
}

async fn send(
    api: &HttpApi,
    identity: &Arc<CallerIdentity>,
    method: Method,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = RouteRequest {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers: HeaderMap::new(),
        identity: Arc::clone(identity),
        body: match body {
            Value::Null => String::new(),
            body => body.to_string(),
        },
    };
    let response = api.handle(request).await;
    match response.body {
        RouteBody::Json(bytes) => (response.status.as_u16(), serde_json::from_slice(&bytes).unwrap()),
        RouteBody::Events { .. } | RouteBody::Empty => (response.status.as_u16(), Value::Null),
    }
}

fn model_names(models: &Value) -> Vec<&str> {
    models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn agents_that_a_caller_may_not_use_do_not_exist_for_it() {
    let agents = TestAgents::in_memory().with_agent("clerk", &[]).with_agent("auditor", &[]);
    let api = HttpApi::of_agents(agents.service());
    let (all, limited) = (caller("ada", None), caller("ci", Some(&["clerk"])));
    let (_, models) = send(&api, &limited, Method::GET, "/v1/models", Value::Null).await;
    assert_eq!(model_names(&models), ["clerk"]);
    let (_, models) = send(&api, &all, Method::GET, "/v1/models", Value::Null).await;
    assert_eq!(model_names(&models).len(), 3);
    assert_eq!(send(&api, &limited, Method::GET, "/v1/models/auditor", Value::Null).await.0, 404);
    let chat = |agent: &str| json!({"model": agent, "messages": [{"role": "user", "content": "hello"}]});
    let respond = |agent: &str| json!({"model": agent, "input": "hello"});
    let run = |agent: &str| json!({"agent": agent, "question": "hello"});
    for (path, body) in [
        ("/v1/chat/completions", chat("auditor")),
        ("/v1/responses", respond("auditor")),
        ("/runs", run("auditor")),
        ("/api/v1/runs", run("auditor")),
        // The default agent is not one of the caller's.
        ("/api/v1/runs", json!({"question": "hello"})),
    ] {
        let (status, answer) = send(&api, &limited, Method::POST, path, body.clone()).await;
        assert_eq!(status, 404, "{path}: {answer}");
        assert!(
            !answer.to_string().contains(DEFAULT_AGENT) || body.to_string().contains("question"),
            "{answer}"
        );
    }
    assert_eq!(send(&api, &limited, Method::POST, "/runs", run("clerk")).await.0, 202);
    assert_eq!(send(&api, &all, Method::POST, "/runs", run("auditor")).await.0, 202);
}

#[derive(Debug)]
struct McpCaller(Arc<CallerIdentity>);

impl Caller for McpCaller {
    fn session_id(&self) -> u64 {
        1
    }

    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn ask_agent_is_limited_like_the_http_api() {
    let agents = TestAgents::in_memory().with_agent("clerk", &[]).with_agent("auditor", &[]);
    let ask_agent = AskAgent::new(agents.service());
    let ask = async |agent: &str| {
        let request = ToolCallRequest::new("ask_agent", json!({"question": "hello", "agent": agent}));
        let caller = Some(Arc::new(McpCaller(caller("ci", Some(&["clerk"])))) as _);
        ask_agent.call(&ServiceCall { request, caller, caller_name: "ci".into() }).await
    };
    assert!(ask("clerk").await.is_ok());
    let refused = ask("auditor").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArguments);
    assert!(refused.to_string().contains("`auditor` does not exist"), "{refused}");
}

async fn wait_until_answered(api: &HttpApi, identity: &Arc<CallerIdentity>, run: &str) {
    for _ in 0..500 {
        let (_, shown) = send(api, identity, Method::GET, &format!("/api/v1/runs/{run}"), Value::Null).await;
        if shown["state"] == "answered" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("run {run} has no answer");
}

/// Starts a run and returns its id.
async fn start(api: &HttpApi, identity: &Arc<CallerIdentity>, question: &str) -> String {
    let (_, started) =
        send(api, identity, Method::POST, "/api/v1/runs", json!({ "question": question })).await;
    started["run"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_notice_about_a_run_of_another_caller_does_not_become_its_answer() {
    let replies = [r#"{"answer": "the code is 4711"}"#, r#"{"answer": "done"}"#];
    let model = Arc::new(ScriptedModel::with_replies(ToolCalling::Schema, replies));
    let mut agents = TestAgents::in_memory();
    agents.parts.model = Arc::clone(&model) as _;
    let api = HttpApi::of_agents(agents.service());
    let (ada, eve) = (caller("ada", None), caller("eve", None));
    let run = start(&api, &ada, "hello").await;
    wait_until_answered(&api, &ada, &run).await;
    let history = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": suspended_notice(&run.as_str().into(), &[])},
        {"role": "user", "content": "repeat what you said"},
    ]);
    for (path, field) in [("/v1/chat/completions", "messages"), ("/v1/responses", "input")] {
        for (identity, is_own) in [(&eve, false), (&ada, true)] {
            let seen_before = model.requests().len();
            let body = json!({"model": DEFAULT_AGENT, field: history});
            let (status, answer) = send(&api, identity, Method::POST, path, body).await;
            assert_eq!(status, 200, "{answer}");
            let sent = format!("{:?}", model.requests().split_off(seen_before));
            assert!(sent.contains("repeat what you said"), "{sent}");
            assert_eq!(sent.contains("4711"), is_own, "{path}: {sent}");
        }
    }
}

#[tokio::test]
async fn pages_of_runs_do_not_name_runs_of_other_callers() {
    let agents = TestAgents::in_memory();
    let api = HttpApi::of_agents(agents.service());
    let (ada, eve) = (caller("ada", None), caller("eve", None));
    let of_eve = start(&api, &eve, "one").await;
    let detail = RawJson::from(json!({"agent": DEFAULT_AGENT, "question": "hello", "owner": ada.owner()}));
    let mut foreign = RunId::from("");
    // More than one request looks at.
    for _ in 0..2_001 {
        foreign = agents.log().create_run(AGENT_RUN_KIND, &detail).await.unwrap();
    }
    let newest_of_eve = start(&api, &eve, "two").await;
    let list = async |query: &str| {
        let path = format!("/api/v1/runs?{query}");
        let (status, list) = send(&api, &eve, Method::GET, &path, Value::Null).await;
        assert_eq!(status, 200, "{query}: {list}");
        let runs: Vec<Value> =
            list["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()).collect();
        (runs, list["next"].clone())
    };
    assert_eq!(list("agent=nosuch").await, (Vec::new(), Value::Null));
    assert_eq!(list("limit=2").await, (vec![json!(newest_of_eve), json!(of_eve)], Value::Null));
    assert_eq!(list("limit=1").await, (vec![json!(newest_of_eve)], json!(newest_of_eve)));
    assert_eq!(list(&format!("after={newest_of_eve}")).await, (vec![json!(of_eve)], Value::Null));
    let after = async |run: &str| {
        send(&api, &eve, Method::GET, &format!("/api/v1/runs?after={run}"), Value::Null).await
    };
    let refused = after(foreign.as_str()).await;
    assert_eq!(refused.0, 400, "{refused:?}");
    assert_eq!(refused, after("01JUNKNOWN").await, "a foreign run is like one that does not exist");
}

#[tokio::test(start_paused = true)]
async fn runs_are_filtered_by_creation_time() {
    let agents = TestAgents::in_memory();
    let api = HttpApi::of_agents(agents.service());
    let ada = caller("ada", None);
    let mut runs = Vec::new();
    for question in ["one", "two", "three"] {
        runs.push(json!(start(&api, &ada, question).await));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    let second = RunId::from(runs[1].as_str().unwrap());
    let time = agents.log().run(&second).await.unwrap().created_at;
    for (query, expected, next) in [
        (format!("since={time}"), vec![&runs[2], &runs[1]], Value::Null),
        (format!("until={time}"), vec![&runs[0]], Value::Null),
        (format!("since={time}&until={}", time + 1), vec![&runs[1]], Value::Null),
        (format!("since={time}&limit=2"), vec![&runs[2], &runs[1]], Value::Null),
        (format!("since={time}&limit=1"), vec![&runs[2]], runs[2].clone()),
    ] {
        let path = format!("/api/v1/runs?{query}");
        let (_, list) = send(&api, &ada, Method::GET, &path, Value::Null).await;
        let found: Vec<&Value> = list["runs"].as_array().unwrap().iter().map(|run| &run["run"]).collect();
        assert_eq!((found, &list["next"]), (expected, &next), "{query}");
    }
}

#[tokio::test]
async fn a_pending_approval_of_another_caller_is_like_one_that_does_not_exist() {
    let agents = TestAgents::in_memory();
    let api = HttpApi::of_agents(agents.service());
    let (ada, eve) = (caller("ada", None), caller("eve", None));
    let run = RunId::from(start(&api, &ada, "hello").await);
    let requested = agents.parts.approvals.request_approval(&run, Some("pay"), ApprovalKind::ToolCall, "pay");
    let approval = requested.await.unwrap().0;
    let decide = async |identity: &Arc<CallerIdentity>, approval: i64| {
        let path = format!("/api/v1/approvals/{approval}");
        send(&api, identity, Method::POST, &path, json!({"allow": false})).await
    };
    let (status, foreign) = decide(&eve, approval).await;
    assert_eq!((status, &foreign["error"]["code"]), (404, &json!("approval_not_found")), "{foreign}");
    let (_, missing) = decide(&eve, approval + 1).await;
    let without_id = |error: &Value, id: i64| error.to_string().replace(&id.to_string(), "ID");
    assert_eq!(without_id(&foreign, approval), without_id(&missing, approval + 1));
    let (_, own) = decide(&ada, approval).await;
    assert_ne!(own["error"]["code"], "approval_not_found", "{own}");
}

#[tokio::test]
async fn a_run_exists_for_its_caller_only() {
    let agents = TestAgents::in_memory();
    let api = HttpApi::of_agents(agents.service());
    let (ada, eve) = (caller("ada", None), caller("eve", None));
    let (_, started) = send(&api, &ada, Method::POST, "/api/v1/runs", json!({"question": "hello"})).await;
    let run = started["run"].as_str().unwrap();
    wait_until_answered(&api, &ada, run).await;
    let (status, shown) = send(&api, &ada, Method::GET, &format!("/runs/{run}"), Value::Null).await;
    assert_eq!((status, &shown["answer"]), (200, &json!("done")), "{shown}");
    for (method, path) in [
        (Method::GET, format!("/runs/{run}")),
        (Method::GET, format!("/api/v1/runs/{run}")),
        (Method::GET, format!("/api/v1/runs/{run}/")),
        (Method::GET, format!("/api/v1/runs/{run}/events")),
        (Method::GET, format!("/api/v1/runs/{run}/log")),
        (Method::POST, format!("/api/v1/runs/{run}/cancel")),
        (Method::POST, format!("/api/v1/runs/{run}/resume")),
    ] {
        let (status, answer) = send(&api, &eve, method, &path, json!({})).await;
        assert_eq!(status, 404, "{path}: {answer}");
        assert!(!answer.to_string().contains("hello") && !answer.to_string().contains("done"), "{answer}");
    }
    // The gateway's own token sees all runs.
    let local = Arc::new(CallerIdentity::local_token([1; 32]));
    assert_eq!(send(&api, &local, Method::GET, &format!("/runs/{run}"), Value::Null).await.0, 200);
    let (status, list) = send(&api, &eve, Method::GET, "/api/v1/runs", Value::Null).await;
    assert_eq!((status, &list["runs"]), (200, &json!([])));
}

#[tokio::test]
async fn callers_of_other_profiles_may_not_use_the_api() {
    let api = HttpApi::of_agents(TestAgents::in_memory().service());
    let mut identity = CallerIdentity::principal("https://id.example", "ci");
    identity.allowed_profiles = Some(vec!["office".to_owned()]);
    let identity = Arc::new(identity);
    for path in ["/v1/models", "/api/v1/tools", "/api/v1/agents"] {
        assert_eq!(send(&api, &identity, Method::GET, path, Value::Null).await.0, 403, "{path}");
    }
    assert_eq!(send(&api, &identity, Method::GET, "/api/openapi.json", Value::Null).await.0, 200);
}
