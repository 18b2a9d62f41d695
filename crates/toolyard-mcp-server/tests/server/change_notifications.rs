//! Change notifications: once per change, on the streams that subscribed.

use serde_json::{Value, json};
use toolyard_mcp_server::ContentEvent;

use crate::{
    client::{Client, assert_silent, next, stream},
    test_server::TestServer,
    tools::definitions,
};

async fn listen(client: &Client, id: u64, filter: Value) -> impl futures_util::Stream<Item = Value> + Unpin {
    stream(client.send_modern(id, "subscriptions/listen", json!({"notifications": filter}), json!({})).await)
}

#[tokio::test]
async fn a_modern_client_is_notified_once_per_change() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let mut events =
        listen(&client, 4, json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})).await;
    let acknowledged = next(&mut events).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})
    );
    // An identical list is not a change.
    server.tools.offer(definitions(3));
    assert_silent(&mut events).await;
    server.tools.offer(definitions(4));
    let changed = next(&mut events).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 4);
    assert_silent(&mut events).await;
    server.content.events.send(ContentEvent::ResourceUpdated("test://two".to_owned())).unwrap();
    server.content.events.send(ContentEvent::PromptsChanged).unwrap();
    server.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    let updated = next(&mut events).await;
    assert_eq!(
        (&updated["method"], &updated["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("test://one"))
    );
    assert_silent(&mut events).await;
    server.close().await;
}

#[tokio::test]
async fn subscriptions_to_absent_content_are_not_acknowledged() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).at_profile("other");
    let everything =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a"]});
    let mut events = listen(&client, 1, everything).await;
    assert_eq!(next(&mut events).await["params"]["notifications"], json!({"toolsListChanged": true}));
    server.close().await;
}

#[tokio::test]
async fn a_legacy_client_is_notified_of_lists_and_subscriptions() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let open_stream = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    let mut events = open_stream().await;
    server.tools.offer(definitions(4));
    assert_eq!(next(&mut events).await["method"], "notifications/tools/list_changed");
    let update_resource =
        || server.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    update_resource();
    assert_silent(&mut events).await;
    client.request_legacy(1, "resources/subscribe", json!({"uri": "test://one"})).await.result();
    assert_eq!(
        client.request_legacy(2, "resources/subscribe", json!({"uri": "test://no"})).await.code(),
        -32002
    );
    let refused = client.request_legacy(2, "resources/subscribe", json!({"uri": "test://unchanging"})).await;
    assert_eq!(refused.code(), -32601, "the error of the service");
    update_resource();
    assert_eq!(next(&mut events).await["params"]["uri"], "test://one");
    client.request_legacy(3, "resources/unsubscribe", json!({"uri": "test://one"})).await.result();
    update_resource();
    assert_silent(&mut events).await;
    // A second stream replaces the first: no change is notified twice.
    let mut second = open_stream().await;
    assert!(futures_util::StreamExt::next(&mut events).await.is_none());
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
    let mut events = listen(&client, 1, json!({"toolsListChanged": true})).await;
    next(&mut events).await;
    let started = std::time::Instant::now();
    server.close().await;
    assert!(started.elapsed().as_secs() < 3);
    assert_eq!(next(&mut events).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_change_between_two_streams_is_notified_on_the_second() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let open_stream = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    client.request_legacy(1, "tools/list", json!({})).await.result();
    drop(open_stream().await);
    server.tools.offer(definitions(4));
    let mut events = open_stream().await;
    assert_eq!(next(&mut events).await["method"], "notifications/tools/list_changed");
    // Until the client lists again, earlier notifications may have been lost.
    assert_eq!(next(&mut open_stream().await).await["method"], "notifications/tools/list_changed");
    client.request_legacy(2, "tools/list", json!({})).await.result();
    assert_silent(&mut open_stream().await).await;
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
    let mut events = stream(request.send().await.unwrap());
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(next(&mut events).await["method"], format!("notifications/{list}/list_changed"));
    }
    assert_silent(&mut events).await;
    server.close().await;
}
