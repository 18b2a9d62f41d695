//! Endpoints and access rules that are replaced while serving: requests in flight finish, everything else follows at once.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::json;
use toolyard_mcp_server::{Access, AccessRules, AccessToken, Endpoint};

use crate::{
    client::{Client, next, stream},
    test_server::{ServerBuilder, TestServer},
    tools::{TestTools, definitions},
};

async fn tool_count(client: &Client) -> usize {
    client.request_modern(1, "tools/list", json!({}), json!({})).await.result()["tools"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test]
async fn a_replaced_endpoint_finishes_its_calls_and_ends_its_streams() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let before = tool_count(&client).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call(1, "slow", json!({})).await }
    });
    server.tools.wait_for_started(1).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = stream(client.send_modern(2, "subscriptions/listen", filter, json!({})).await);
    next(&mut modern).await;
    let legacy_client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let request = legacy_client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
    let mut legacy = stream(request.send().await.unwrap());

    let tools = Arc::new(TestTools::default());
    tools.offer(definitions(7));
    server.server.set_endpoint("", Endpoint::new(tools));

    assert_eq!(next(&mut modern).await["method"], "notifications/tools/list_changed");
    assert_eq!(next(&mut modern).await["result"]["resultType"], "complete");
    assert_eq!(next(&mut legacy).await["method"], "notifications/tools/list_changed");
    while legacy.next().await.is_some() {}
    assert_ne!(before, 7);
    assert_eq!(tool_count(&client).await, 7, "the connection of the client stays open");
    assert_eq!(
        legacy_client.request_legacy(3, "tools/list", json!({})).await.result()["tools"]
            .as_array()
            .unwrap()
            .len(),
        7,
        "the session continues"
    );
    server.tools.release.notify_one();
    assert_eq!(calling.await.unwrap().text(), "done");
    server.close().await;
}

#[tokio::test]
async fn profiles_are_added_and_removed_and_the_main_endpoint_stays() {
    let server = TestServer::new().await;
    let [added, removed] = ["added", "other"].map(|name| Client::new(&server.address).at_profile(name));
    let status = |client: Client| async move { client.send_legacy(1, "ping", json!({})).await.status() };
    assert_eq!(status(added.clone()).await, 404);
    assert_eq!(status(removed.clone()).await, 200);
    server.server.set_endpoint("added", Endpoint::new(Arc::new(TestTools::default())));
    server.server.remove_endpoint("other");
    server.server.remove_endpoint("");
    assert_eq!(status(added).await, 200);
    assert_eq!(status(removed).await, 404);
    assert_eq!(status(Client::new(&server.address)).await, 200);
    server.close().await;
}

#[tokio::test]
async fn a_replaced_token_ends_the_sessions_of_the_old_one() {
    let builder = ServerBuilder::default().with_token("the-old-token");
    let access = builder.http.access.clone();
    let server = builder.build().await;
    let old = Client::new(&server.address).with_token("the-old-token");
    let old = old.initialize("2025-11-25", json!({})).await;
    let ping = |client: Client| async move { client.send_legacy(1, "ping", json!({})).await.status() };
    assert_eq!(ping(old.clone()).await, 200);
    access.replace(AccessRules::new(Access::Token(AccessToken::new("the-new-token"))));
    assert_eq!(ping(old.clone()).await, 401);
    // The session belongs to the old credential, even on the connection that opened it.
    assert_eq!(ping(old.with_token("the-new-token")).await, 404);
    assert_eq!(ping(Client::new(&server.address).with_token("the-new-token")).await, 200);
    server.close().await;
}
