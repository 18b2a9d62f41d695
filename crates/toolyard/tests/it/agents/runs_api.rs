//! The HTTP API for runs: start, stream, approve, cancel.

use std::time::Duration;

use serde_json::{Value, json};

use super::Fixture;
use crate::client::HttpGateway;

pub(crate) struct RunsApi(pub(crate) HttpGateway);

impl RunsApi {
    pub(crate) fn url(&self, path: &str) -> String {
        self.0.url.replace("/mcp", path)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let request = self.0.http.get(self.url(path)).bearer_auth(self.0.token.as_ref().unwrap());
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.0.http.post(self.url(path)).bearer_auth(self.0.token.as_ref().unwrap()).json(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Number and name of all events of a run after this one, until the run ends.
    pub(crate) async fn events(&self, run: &str, after: Option<i64>) -> Vec<(Option<i64>, String)> {
        let mut request = self
            .0
            .http
            .get(self.url(&format!("/runs/{run}/events")))
            .bearer_auth(self.0.token.as_ref().unwrap());
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after.to_string());
        }
        let text = request.timeout(Duration::from_secs(20)).send().await.unwrap().text().await.unwrap();
        text.split("\n\n").filter(|event| event.contains("data:")).map(parse_event).collect()
    }

    /// The status of a run as soon as it meets a condition; panics after ten seconds.
    pub(crate) async fn wait_for(&self, run: &str, condition: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..500 {
            let (_, run_status) = self.get(&format!("/runs/{run}")).await;
            if condition(&run_status) {
                return run_status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the run did not reach the expected state: {:?}", self.get(&format!("/runs/{run}")).await);
    }
}

fn parse_event(text: &str) -> (Option<i64>, String) {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    (field("id:").map(|id| id.parse().unwrap()), field("event:").unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_run_is_started_streamed_and_approved() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[serve]\nremote_approval = true\n");
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (status, created) = runs.post("/runs", &json!({"question": "note it"})).await;
    assert_eq!(status, 202, "{created}");
    let run = created["run"].as_str().unwrap();
    let run_status = runs.wait_for(run, |run_status| run_status["state"] == "suspended").await;
    assert_eq!(
        (run_status["agent"].as_str(), run_status["pending_approvals"][0]["step"].as_str()),
        (Some("assistant"), Some("write")),
        "{run_status}"
    );
    let approval_path = format!("/api/v1/approvals/{}", run_status["pending_approvals"][0]["approval"]);
    let listening = runs.events(run, None);
    let approving = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        runs.post(&approval_path, &json!({"allow": true})).await
    };
    let (events, (status, answer)) = tokio::join!(listening, approving);
    assert_eq!(status, 202, "{answer}");
    let numbers: Vec<i64> = events.iter().filter_map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..i64::try_from(numbers.len()).unwrap()).collect::<Vec<_>>(), "{events:?}");
    let tool_names: Vec<&str> = events.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        (tool_names.first(), tool_names.last()),
        (Some(&"run_created"), Some(&"run_ended")),
        "{tool_names:?}"
    );
    assert!(
        tool_names.contains(&"approval_decided") && tool_names.contains(&"answer_delta"),
        "{tool_names:?}"
    );
    assert_eq!(fixture.notes().len(), 1);

    assert_eq!(tool_names.iter().filter(|name| **name == "run_ended").count(), 1, "{tool_names:?}");
    assert!(tool_names.contains(&"run_suspended"), "{tool_names:?}");

    // A browser asks again after the last event; 204 tells it to stop.
    let last = numbers.last().unwrap().to_string();
    let events_url = runs.url(&format!("/runs/{run}/events"));
    let again = runs.0.http.get(events_url).bearer_auth(runs.0.token.as_ref().unwrap());
    assert_eq!(again.header("Last-Event-ID", last).send().await.unwrap().status(), 204);
    let later = runs.events(run, Some(3)).await;
    assert_eq!(later.first().unwrap().0, Some(4), "{later:?}");
    assert_eq!(later.last().unwrap(), events.last().unwrap());
    // The `EventSource` of a browser cannot send the token.
    let (status, created) = runs.post(&format!("/api/v1/runs/{run}/stream-ticket"), &json!({})).await;
    assert_eq!(status, 200, "{created}");
    let ticket = created["ticket"].as_str().unwrap();
    for (path, status) in [("events", 200), ("log", 401)] {
        let url = runs.url(&format!("/api/v1/runs/{run}/{path}?ticket={ticket}"));
        assert_eq!(runs.0.http.get(url).send().await.unwrap().status(), status, "{path}");
    }
    let run_status = runs.wait_for(run, |run_status| run_status["state"] == "answered").await;
    assert_eq!(run_status["answer"], "I wrote it down.", "{run_status}");
    let (status, _) = runs.post(&approval_path, &json!({"allow": true})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_run_is_cancelled() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture
        .model
        .script_plan("slowly", &json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]));
    fixture.append_settings("[approvals]\nallow = [\"slow_note\"]\n");
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    for question in ["slowly", "note it"] {
        let (_, created) = runs.post("/runs", &json!({"question": question})).await;
        let run = created["run"].as_str().unwrap();
        let is_cancellable = |run_status: &Value| match question {
            "slowly" => fixture.home.path("call_started").exists(),
            _ => run_status["state"] == "suspended",
        };
        runs.wait_for(run, is_cancellable).await;
        let (status, answer) = runs.post(&format!("/runs/{run}/cancel"), &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        runs.wait_for(run, |run_status| run_status["state"] == "cancelled").await;
        let (status, error) = runs.post(&format!("/runs/{run}/cancel"), &json!({})).await;
        assert_eq!((status, error["error"]["code"].as_str()), (409, Some("run_finished")), "{error}");
    }
    assert!(fixture.notes().is_empty());
}

#[tokio::test]
async fn unknown_runs_and_invalid_requests_are_rejected() {
    let fixture = Fixture::new();
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    assert_eq!(runs.get("/runs/01NOTHING").await.0, 404);
    assert_eq!(runs.get("/runs/01NOTHING/events").await.0, 404);
    assert_eq!(runs.post("/runs", &json!({"question": " "})).await.0, 400);
    assert_eq!(runs.post("/runs", &json!({"question": "x", "agent": "nobody"})).await.0, 404);
    assert_eq!(runs.post("/runs", &json!({"quesiton": "x"})).await.0, 400);
    assert_eq!(runs.get("/runs/x/cancel").await.0, 405);
}

#[tokio::test]
async fn a_client_cannot_approve_its_own_run_by_default() {
    let fixture = Fixture::new();
    fixture.script_note();
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, created) = runs.post("/runs", &json!({"question": "note it"})).await;
    let run = created["run"].as_str().unwrap();
    let suspended = runs.wait_for(run, |run_status| run_status["state"] == "suspended").await;
    let path = format!("/api/v1/approvals/{}", suspended["pending_approvals"][0]["approval"]);
    for decision in [json!({"allow": true}), json!({"allow": true, "scope": "run"})] {
        let (status, error) = runs.post(&path, &decision).await;
        assert_eq!(
            (status, error["error"]["code"].as_str()),
            (403, Some("approval_not_permitted")),
            "{error}"
        );
        assert!(
            !error.to_string().contains("toolyard runs"),
            "a model that reads this must not learn how to approve: {error}"
        );
    }
    let (_, nowhere) = runs.get("/v1/nowhere").await;
    assert!(nowhere.to_string().contains("GET /api/openapi.json"), "{nowhere}");
    assert!(fixture.notes().is_empty());
    assert_eq!(runs.post(&path, &json!({"allow": false})).await.0, 202, "a client may deny");
    runs.wait_for(run, |run_status| run_status["state"] == "partial").await;
    assert!(fixture.notes().is_empty());
}

#[tokio::test]
async fn an_idempotency_key_starts_one_run() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[approvals]\nallow = [\"write_note\"]\n");
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let send = |path: &str, key: &str, body: Value| {
        let request = runs.0.http.post(runs.url(path)).bearer_auth(runs.0.token.as_ref().unwrap());
        let request = request.header("Idempotency-Key", key).json(&body);
        async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        }
    };
    let (status, first) = send("/runs", "one", json!({"question": "note it"})).await;
    let again = send("/runs", "one", json!({"question": "note it"})).await;
    assert_eq!((status, &first), (202, &again.1));
    let run: Value = serde_json::from_str(&first).unwrap();
    runs.wait_for(run["run"].as_str().unwrap(), |run_status| run_status["state"] == "answered").await;
    let other = send("/runs", "one", json!({"question": "note it again"})).await;
    assert!(other.0 == 422 && other.1.contains("idempotency_key_reused"), "{other:?}");
    assert_eq!(fixture.notes().len(), 1);
    for stream in [false, true] {
        let completion = json!({"model": "assistant", "stream": stream, "messages": [{"role": "user", "content": "note it"}]});
        let key = format!("key-{stream}");
        let (_, first) = send("/v1/chat/completions", &key, completion.clone()).await;
        let before = fixture.notes().len();
        let (status, again) = send("/v1/chat/completions", &key, completion).await;
        assert_eq!(status, 200, "{again}");
        assert!(first.contains("down.") && again.contains("I wrote it down."), "{first} {again}");
        assert_eq!(fixture.notes().len(), before, "a repeated request repeats no step");
    }
    assert_eq!(fixture.notes().len(), 3);
}
