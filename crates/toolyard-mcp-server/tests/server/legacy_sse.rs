//! The HTTP+SSE transport of 2024-11-05.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{AuthenticationError, Authenticator, BoxFuture, CallerIdentity, Credentials};
use toolyard_mcp_server::{Access, AccessRules, AccessToken};

use crate::{
    client::{Client, next, stream},
    test_server::{ServerBuilder, TestServer},
};

#[tokio::test]
async fn legacy_sse_is_disabled_by_default() {
    let server = TestServer::new().await;
    let url = format!("http://{}/sse", server.address);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 404);
    server.close().await;
}

#[tokio::test]
async fn responses_arrive_on_the_stream() {
    let mut builder = ServerBuilder::default();
    builder.http.legacy_sse = true;
    let server = builder.build().await;
    let base = format!("http://{}", server.address);
    let mut response = reqwest::get(format!("{base}/sse")).await.unwrap();
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    assert!(endpoint.starts_with("/messages?sessionId="));
    let mut events = stream(response);
    let http = reqwest::Client::new();
    let post = |body: serde_json::Value| http.post(format!("{base}{endpoint}")).json(&body).send();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    assert_eq!(post(initialize).await.unwrap().status(), 202);
    assert_eq!(next(&mut events).await["result"]["protocolVersion"], "2024-11-05");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "progress", "_meta": {"progressToken": 5}}});
    assert_eq!(post(call).await.unwrap().status(), 202);
    assert_eq!(next(&mut events).await["params"]["progressToken"], 5);
    assert_eq!(next(&mut events).await["params"]["progress"], 2.0);
    assert_eq!(next(&mut events).await["result"]["content"][0]["text"], "done");
    let foreign = http.post(format!("{base}/messages?sessionId=0")).json(&json!({})).send().await.unwrap();
    assert_eq!(foreign.status(), 404);
    drop(events);
    Client::new(&server.address).call(1, "echo", json!({})).await.text();
    server.close().await;
}

/// One caller, whose group is its token.
#[derive(Debug)]
struct GroupByToken;

impl Authenticator for GroupByToken {
    fn authenticate<'a>(
        &'a self,
        credentials: Credentials<'a>,
    ) -> BoxFuture<'a, Result<Arc<CallerIdentity>, AuthenticationError>> {
        let mut identity = CallerIdentity::principal("https://id.example", "ada");
        identity.groups = credentials.bearer.into_iter().map(str::to_owned).collect();
        Box::pin(std::future::ready(Ok(Arc::new(identity))))
    }

    fn challenge(&self, _: &str, _: &AuthenticationError) -> String {
        "Bearer".to_owned()
    }
}

#[tokio::test]
async fn a_call_has_the_groups_of_its_own_token() {
    let mut builder = ServerBuilder::default();
    builder.http.legacy_sse = true;
    let rules = AccessRules::new(Access::Token(AccessToken::new("of the gateway")));
    builder.http.access.replace(AccessRules { authenticator: Some(Arc::new(GroupByToken)), ..rules });
    let server = builder.build().await;
    let (base, http) = (format!("http://{}", server.address), reqwest::Client::new());
    let mut response = http.get(format!("{base}/sse")).bearer_auth("admins").send().await.unwrap();
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    let mut events = stream(response);
    let post = |token: &str, body: serde_json::Value| {
        http.post(format!("{base}{endpoint}")).bearer_auth(token).json(&body).send()
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    assert_eq!(post("admins", initialize).await.unwrap().status(), 202);
    next(&mut events).await;
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}});
    assert_eq!(post("guests", call).await.unwrap().status(), 202);
    next(&mut events).await;
    let groups = {
        let calls = server.tools.calls.lock();
        calls[0].caller.as_ref().unwrap().identity().unwrap().groups.clone()
    };
    assert_eq!(groups, ["guests"], "the caller is no administrator any more");
    drop(events);
    server.close().await;
}
