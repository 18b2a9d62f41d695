//! Change notifications: once per change, on the streams that subscribed.

use serde_json::{Value, json};
use toolyard_mcp_server::ContentEvent;

use crate::{
    client::{Client, assert_silent, next, stream},
    test_server::TestServer,
    tools::definitions,
};

async fn listen(client: &Client, id: u64, wanted: Value) -> impl futures_util::Stream<Item = Value> + Unpin {
    stream(
        client.modern_response(id, "subscriptions/listen", json!({"notifications": wanted}), json!({})).await,
    )
}

#[tokio::test]
async fn a_modern_client_is_notified_once_per_change() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let mut news =
        listen(&client, 4, json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})).await;
    let granted = next(&mut news).await;
    assert_eq!(granted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        granted["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})
    );
    // An identical list is not a change.
    server.tools.offer(definitions(3));
    assert_silent(&mut news).await;
    server.tools.offer(definitions(4));
    let changed = next(&mut news).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 4);
    assert_silent(&mut news).await;
    server.content.events.send(ContentEvent::ResourceUpdated("test://two".to_owned())).unwrap();
    server.content.events.send(ContentEvent::PromptsChanged).unwrap();
    server.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    let updated = next(&mut news).await;
    assert_eq!(
        (&updated["method"], &updated["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("test://one"))
    );
    assert_silent(&mut news).await;
    server.close().await;
}

#[tokio::test]
async fn absent_content_is_not_granted() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).at("other");
    let everything =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a"]});
    let mut news = listen(&client, 1, everything).await;
    assert_eq!(next(&mut news).await["params"]["notifications"], json!({"toolsListChanged": true}));
    server.close().await;
}

#[tokio::test]
async fn a_legacy_client_is_notified_of_lists_and_subscriptions() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let open = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    let mut news = open().await;
    server.tools.offer(definitions(4));
    assert_eq!(next(&mut news).await["method"], "notifications/tools/list_changed");
    let updated =
        || server.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    updated();
    assert_silent(&mut news).await;
    client.legacy(1, "resources/subscribe", json!({"uri": "test://one"})).await.result();
    assert_eq!(client.legacy(2, "resources/subscribe", json!({"uri": "test://no"})).await.code(), -32002);
    updated();
    assert_eq!(next(&mut news).await["params"]["uri"], "test://one");
    client.legacy(3, "resources/unsubscribe", json!({"uri": "test://one"})).await.result();
    updated();
    assert_silent(&mut news).await;
    // A second stream replaces the first: no change is notified twice.
    let mut second = open().await;
    assert!(futures_util::StreamExt::next(&mut news).await.is_none());
    server.tools.offer(definitions(5));
    assert_eq!(next(&mut second).await["method"], "notifications/tools/list_changed");
    assert_silent(&mut second).await;
    // Ending the session ends its stream.
    client.request(reqwest::Method::DELETE).send().await.unwrap();
    assert!(futures_util::StreamExt::next(&mut second).await.is_none());
    server.close().await;
}

#[tokio::test]
async fn a_stream_needs_a_session_and_an_accept_header() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let get =
        |client: &Client, accept: &str| client.request(reqwest::Method::GET).header("Accept", accept).send();
    assert_eq!(get(&client, "text/event-stream").await.unwrap().status(), 400);
    let client = client.initialize("2025-11-25", json!({})).await;
    assert_eq!(get(&client, "application/json").await.unwrap().status(), 406);
    server.close().await;
}

#[tokio::test]
async fn open_streams_end_on_shutdown() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let mut news = listen(&client, 1, json!({"toolsListChanged": true})).await;
    next(&mut news).await;
    let begun = std::time::Instant::now();
    server.close().await;
    assert!(begun.elapsed().as_secs() < 3);
    assert_eq!(next(&mut news).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_change_between_two_streams_is_notified_on_the_second() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let open = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    client.legacy(1, "tools/list", json!({})).await.result();
    drop(open().await);
    server.tools.offer(definitions(4));
    let mut news = open().await;
    assert_eq!(next(&mut news).await["method"], "notifications/tools/list_changed");
    // Until the client lists again, earlier notifications may have been lost.
    assert_eq!(next(&mut open().await).await["method"], "notifications/tools/list_changed");
    client.legacy(2, "tools/list", json!({})).await.result();
    assert_silent(&mut open().await).await;
    server.close().await;
}

#[tokio::test]
async fn a_session_from_before_a_restart_is_notified_of_changes() {
    let server = TestServer::new().await;
    let session = Client::new(&server.address).initialize("2025-11-25", json!({})).await.session();
    server.close().await;
    // Session times are whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let server = TestServer::new().await;
    let client = Client::new(&server.address).with_session(&session);
    let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
    let mut news = stream(request.send().await.unwrap());
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(next(&mut news).await["method"], format!("notifications/{list}/list_changed"));
    }
    assert_silent(&mut news).await;
    server.close().await;
}
