//! Agents that are added, changed and removed over HTTP while the gateway runs.

use serde_json::{Value, json};

use super::{Fixture, runs_api::RunsApi};
use crate::client::HttpGateway;

impl RunsApi {
    async fn send(&self, method: reqwest::Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.0.http.request(method, self.url(path)).bearer_auth(self.0.token.as_ref().unwrap());
        let response = request.json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap_or_default())
    }

    async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(reqwest::Method::PUT, path, body).await
    }

    async fn delete(&self, path: &str) -> (u16, Value) {
        self.send(reqwest::Method::DELETE, path, &Value::Null).await
    }

    async fn ask(&self, agent: &str) -> (u16, Value) {
        let messages = json!([{"role": "user", "content": "hello"}]);
        self.post("/v1/chat/completions", &json!({"model": agent, "messages": messages})).await
    }
}

#[tokio::test]
async fn an_agent_is_added_used_changed_and_removed() {
    let fixture = Fixture::new();
    fixture.model.script_direct_answer("hello", "Hello!");
    fixture.append_settings(
        "[serve]\nremote_approval = true\n[agents.fixed]\ndescription = \"from the file\"\n",
    );
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let other_process = RunsApi(HttpGateway::start(&fixture.home, &[]));
    assert_eq!(api.ask("clerk").await.0, 404);
    assert_eq!(other_process.ask("clerk").await.0, 404);

    let clerk =
        json!({"name": "clerk", "config": {"description": "Files papers", "instructions": "Be brief."}});
    let (status, added) = api.post("/api/v1/agents", &clerk).await;
    assert_eq!((status, &added["origin"]), (201, &json!("store")), "{added}");
    assert_eq!(api.ask("clerk").await.0, 200);
    let asked = fixture.model.requests().last().unwrap().to_string();
    assert!(asked.contains("Be brief."), "its instructions hold: {asked}");
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_eq!(other_process.ask("clerk").await.0, 200, "other processes see it");

    let (status, error) = api.post("/api/v1/agents", &clerk).await;
    assert_eq!((status, error["error"]["code"].as_str()), (409, Some("agent_exists")), "{error}");
    let changed = json!({"config": {"instructions": "Be verbose."}});
    assert_eq!(api.put("/api/v1/agents/clerk", &changed).await.0, 200);
    assert_eq!(api.ask("clerk").await.0, 200);
    let asked = fixture.model.requests().last().unwrap().to_string();
    assert!(asked.contains("Be verbose.") && !asked.contains("Be brief."), "{asked}");

    let (_, list) = api.get("/api/v1/agents").await;
    let origins: Vec<_> =
        list["agents"].as_array().unwrap().iter().map(|agent| (&agent["name"], &agent["origin"])).collect();
    assert!(origins.contains(&(&json!("fixed"), &json!("settings"))), "{list}");
    assert!(origins.contains(&(&json!("assistant"), &json!("built_in"))), "{list}");
    for (status, error) in
        [api.put("/api/v1/agents/fixed", &changed).await, api.delete("/api/v1/agents/assistant").await]
    {
        assert_eq!((status, error["error"]["code"].as_str()), (409, Some("agent_read_only")), "{error}");
    }
    assert_eq!(api.delete("/api/v1/agents/clerk").await.0, 204);
    assert_eq!(api.delete("/api/v1/agents/clerk").await.0, 404);
    assert_eq!(api.ask("clerk").await.0, 404);
    let (_, audit) = api.get("/api/v1/audit?limit=500").await;
    let outcomes =
        audit["records"].as_array().unwrap().iter().map(|record| record["outcome"].as_str().unwrap());
    let changes: Vec<&str> = outcomes.filter(|outcome| outcome.ends_with("agent clerk")).collect();
    assert_eq!(
        changes,
        ["decided: remove agent clerk", "decided: replace agent clerk", "decided: add agent clerk"]
    );
}

#[tokio::test]
async fn invalid_agents_are_refused() {
    let fixture = Fixture::new();
    fixture.append_settings("[serve]\nremote_approval = true\n");
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    for body in [
        json!({}),
        json!({"name": "a", "config": {"instrctions": "x"}}),
        json!({"name": "a", "config": {"limits": {"steps": -1}}}),
        json!({"name": "a", "config": []}),
        json!({"name": "", "config": {}}),
        json!({"name": "../a", "config": {}}),
        json!({"name": "x".repeat(65), "config": {}}),
        json!({"name": "a", "config": {}, "origin": "settings"}),
    ] {
        let (status, error) = api.post("/api/v1/agents", &body).await;
        assert_eq!(
            (status, error["error"]["code"].as_str()),
            (400, Some("invalid_request")),
            "{body}: {error}"
        );
    }
    assert_eq!(api.put("/api/v1/agents/nobody", &json!({"config": {}})).await.0, 404);
}

#[tokio::test]
async fn agents_are_changed_only_if_the_operator_permits_it() {
    let fixture = Fixture::new();
    let api = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let agent = json!({"name": "clerk", "config": {}});
    let config = json!({"config": {}});
    for (status, error) in [
        api.post("/api/v1/agents", &agent).await,
        api.put("/api/v1/agents/clerk", &config).await,
        api.delete("/api/v1/agents/clerk").await,
    ] {
        assert_eq!((status, error["error"]["code"].as_str()), (403, Some("change_not_permitted")), "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("may not change agents"), "{error}");
    }
    assert_eq!(api.get("/api/v1/agents").await.0, 200, "reading is allowed");
}
