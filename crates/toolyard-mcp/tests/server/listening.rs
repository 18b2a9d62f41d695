//! News: once for each real change, on the stream of whoever asked for it.

use serde_json::{Value, json};
use toolyard_mcp::server::ContentEvent;

use crate::{
    client::{Client, next, silent, stream},
    house::House,
    tools::definitions,
};

async fn listen(client: &Client, id: u64, wanted: Value) -> impl futures_util::Stream<Item = Value> + Unpin {
    stream(
        client.modern_response(id, "subscriptions/listen", json!({"notifications": wanted}), json!({})).await,
    )
}

#[tokio::test]
async fn a_modern_client_hears_of_every_change_once() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let mut news =
        listen(&client, 4, json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})).await;
    let granted = next(&mut news).await;
    assert_eq!(granted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        granted["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://one"]})
    );
    // What is offered again as it was has not changed.
    house.tools.offer(definitions(3));
    silent(&mut news).await;
    house.tools.offer(definitions(4));
    let changed = next(&mut news).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 4);
    silent(&mut news).await;
    house.content.events.send(ContentEvent::ResourceUpdated("test://two".to_owned())).unwrap();
    house.content.events.send(ContentEvent::PromptsChanged).unwrap();
    house.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    let updated = next(&mut news).await;
    assert_eq!(
        (&updated["method"], &updated["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("test://one"))
    );
    silent(&mut news).await;
    house.close().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_granted() {
    let house = House::new().await;
    let client = Client::new(&house.address).at("other");
    let everything =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a"]});
    let mut news = listen(&client, 1, everything).await;
    assert_eq!(next(&mut news).await["params"]["notifications"], json!({"toolsListChanged": true}));
    house.close().await;
}

#[tokio::test]
async fn a_legacy_client_hears_on_its_stream_and_of_what_it_subscribed_to() {
    let house = House::new().await;
    let client = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let open = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    let mut news = open().await;
    house.tools.offer(definitions(4));
    assert_eq!(next(&mut news).await["method"], "notifications/tools/list_changed");
    let updated =
        || house.content.events.send(ContentEvent::ResourceUpdated("test://one".to_owned())).unwrap();
    updated();
    silent(&mut news).await;
    client.legacy(1, "resources/subscribe", json!({"uri": "test://one"})).await.result();
    assert_eq!(client.legacy(2, "resources/subscribe", json!({"uri": "test://no"})).await.code(), -32002);
    updated();
    assert_eq!(next(&mut news).await["params"]["uri"], "test://one");
    client.legacy(3, "resources/unsubscribe", json!({"uri": "test://one"})).await.result();
    updated();
    silent(&mut news).await;
    // A second stream takes the place of the first: nothing is told twice.
    let mut second = open().await;
    assert!(futures_util::StreamExt::next(&mut news).await.is_none());
    house.tools.offer(definitions(5));
    assert_eq!(next(&mut second).await["method"], "notifications/tools/list_changed");
    silent(&mut second).await;
    // The end of the session ends its stream.
    client.request(reqwest::Method::DELETE).send().await.unwrap();
    assert!(futures_util::StreamExt::next(&mut second).await.is_none());
    house.close().await;
}

#[tokio::test]
async fn a_stream_needs_a_session_and_a_client_that_takes_events() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let get =
        |client: &Client, accept: &str| client.request(reqwest::Method::GET).header("Accept", accept).send();
    assert_eq!(get(&client, "text/event-stream").await.unwrap().status(), 400);
    let client = client.initialize("2025-11-25", json!({})).await;
    assert_eq!(get(&client, "application/json").await.unwrap().status(), 406);
    house.close().await;
}

#[tokio::test]
async fn open_streams_end_with_the_server() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let mut news = listen(&client, 1, json!({"toolsListChanged": true})).await;
    next(&mut news).await;
    let begun = std::time::Instant::now();
    house.close().await;
    assert!(begun.elapsed().as_secs() < 3);
    assert_eq!(next(&mut news).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_change_between_two_streams_is_told_on_the_second() {
    let house = House::new().await;
    let client = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let open = || async {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    client.legacy(1, "tools/list", json!({})).await.result();
    drop(open().await);
    house.tools.offer(definitions(4));
    let mut news = open().await;
    assert_eq!(next(&mut news).await["method"], "notifications/tools/list_changed");
    // As long as the client has not looked, what it was told may have been lost.
    assert_eq!(next(&mut open().await).await["method"], "notifications/tools/list_changed");
    client.legacy(2, "tools/list", json!({})).await.result();
    silent(&mut open().await).await;
    house.close().await;
}

#[tokio::test]
async fn whoever_introduced_itself_before_a_restart_is_told_to_look_again() {
    let house = House::new().await;
    let session = Client::new(&house.address).initialize("2025-11-25", json!({})).await.session();
    house.close().await;
    // Times of sessions are whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let house = House::new().await;
    let client = Client::new(&house.address).with_session(&session);
    let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
    let mut news = stream(request.send().await.unwrap());
    for list in ["tools", "prompts", "resources"] {
        assert_eq!(next(&mut news).await["method"], format!("notifications/{list}/list_changed"));
    }
    silent(&mut news).await;
    house.close().await;
}
