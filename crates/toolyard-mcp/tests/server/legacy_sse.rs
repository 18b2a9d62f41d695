//! The transport of the first revision, behind its switch.

use serde_json::json;

use crate::{
    client::{Client, next, stream},
    house::{House, Plan},
};

#[tokio::test]
async fn it_is_not_there_unless_it_is_wanted() {
    let house = House::new().await;
    let url = format!("http://{}/sse", house.address);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 404);
    house.close().await;
}

#[tokio::test]
async fn a_conversation_goes_over_its_stream() {
    let mut plan = Plan::default();
    plan.http.legacy_sse = true;
    let house = plan.build().await;
    let base = format!("http://{}", house.address);
    let mut opened = reqwest::get(format!("{base}/sse")).await.unwrap();
    let first = String::from_utf8(opened.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    assert!(endpoint.starts_with("/messages?sessionId="));
    let mut news = stream(opened);
    let http = reqwest::Client::new();
    let post = |body: serde_json::Value| http.post(format!("{base}{endpoint}")).json(&body).send();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    assert_eq!(post(hello).await.unwrap().status(), 202);
    assert_eq!(next(&mut news).await["result"]["protocolVersion"], "2024-11-05");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "progress", "_meta": {"progressToken": 5}}});
    assert_eq!(post(call).await.unwrap().status(), 202);
    assert_eq!(next(&mut news).await["params"]["progressToken"], 5);
    assert_eq!(next(&mut news).await["params"]["progress"], 2.0);
    assert_eq!(next(&mut news).await["result"]["content"][0]["text"], "done");
    let foreign = http.post(format!("{base}/messages?sessionId=0")).json(&json!({})).send().await.unwrap();
    assert_eq!(foreign.status(), 404);
    drop(news);
    Client::new(&house.address).call(1, "echo", json!({})).await.text();
    house.close().await;
}
