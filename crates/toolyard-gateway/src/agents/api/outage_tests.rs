//! Requests whose model fails: which error the client gets, and whether it may repeat the request.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderValue, Method};
use serde_json::{Value, json};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};
use toolyard_model::{ModelError, ModelErrorKind, ModelReply, ScriptedModel, ToolCalling};

use crate::{HttpApi, agents::testing::TestAgents};

/// An agent whose model fails in this way the first time, and answers then.
fn failing_once(kind: ModelErrorKind) -> HttpApi {
    let requests = AtomicUsize::new(0);
    let model =
        ScriptedModel::new(ToolCalling::Schema, move |_| match requests.fetch_add(1, Ordering::Relaxed) {
            0 => Err(ModelError::new("scripted", kind, "fails").with_hint("see the operator")),
            _ => Ok(ModelReply { text: r#"{"answer": "done"}"#.to_owned(), ..ModelReply::default() }),
        });
    let mut agents = TestAgents::in_memory();
    agents.parts.model = Arc::new(model);
    HttpApi::of_agents(agents.service())
}

struct Reply {
    status: u16,
    should_retry: Option<String>,
    body: Value,
}

/// Asks as an OpenAI client does, which counts how often it repeats a request.
async fn ask(api: &HttpApi, path: &str, retry_count: usize, key: Option<&'static str>) -> Reply {
    let body = json!({"model": "assistant", "messages": [{"role": "user", "content": "x"}], "input": "x"});
    let mut headers = http::HeaderMap::new();
    headers.insert("x-stainless-retry-count", HeaderValue::from(retry_count));
    if let Some(key) = key {
        headers.insert("idempotency-key", HeaderValue::from_static(key));
    }
    let request = RouteRequest {
        method: Method::POST,
        path: path.to_owned(),
        query: String::new(),
        identity: Arc::default(),
        headers,
        body: body.to_string(),
    };
    let response = api.handle(request).await;
    let should_retry = response.headers.iter().find(|(name, _)| name.as_str() == "x-should-retry");
    let should_retry = should_retry.map(|(_, value)| value.to_str().unwrap().to_owned());
    let RouteBody::Json(body) = response.body else { panic!("no JSON") };
    Reply { status: response.status.as_u16(), should_retry, body: serde_json::from_slice(&body).unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_models_are_told_apart() {
    for (kind, status, code, error_type, should_retry) in [
        (ModelErrorKind::Unreachable, 503, "model_unavailable", "server_error", "true"),
        (ModelErrorKind::Timeout, 503, "model_unavailable", "server_error", "true"),
        (ModelErrorKind::Busy, 503, "model_unavailable", "server_error", "true"),
        (ModelErrorKind::ContextOverflow, 400, "context_length_exceeded", "invalid_request_error", "false"),
        (ModelErrorKind::Unauthorized, 422, "run_failed", "server_error", "false"),
        (ModelErrorKind::Rejected, 422, "run_failed", "server_error", "false"),
    ] {
        for path in ["/v1/chat/completions", "/v1/responses"] {
            let Reply { status: actual, should_retry: retry, body } =
                ask(&failing_once(kind), path, 0, None).await;
            let error = &body["error"];
            assert_eq!((actual, error["code"].as_str()), (status, Some(code)), "{kind:?}: {body}");
            assert_eq!((error["type"].as_str(), retry.as_deref()), (Some(error_type), Some(should_retry)));
            assert!(!body.to_string().contains("see the operator"), "{body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_executed_again_if_its_client_was_invited_to_repeat_it() {
    for (kind, status) in [(ModelErrorKind::Busy, 200), (ModelErrorKind::Rejected, 422)] {
        for key in [None, Some("key")] {
            let api = failing_once(kind);
            ask(&api, "/v1/responses", 0, key).await;
            let repeated = ask(&api, "/v1/responses", 1, key).await;
            assert_eq!(repeated.status, status, "{kind:?} {key:?}: {}", repeated.body);
        }
    }
}
