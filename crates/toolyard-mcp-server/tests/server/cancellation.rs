//! Cancellation: by disconnecting (modern) and by notification (legacy).

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;

use crate::{client::Client, test_server::TestServer};

pub(crate) async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap();
}

#[tokio::test]
async fn a_disconnect_cancels_a_modern_call() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let calling = tokio::spawn(async move { client.call(1, "slow", json!({})).await });
    server.tools.wait_for_started(1).await;
    calling.abort();
    wait_until(|| server.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(server.tools.finished.load(Ordering::SeqCst), 0);
    server.close().await;
}

#[tokio::test]
async fn a_disconnect_does_not_cancel_a_legacy_call() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let calling =
        tokio::spawn(async move { client.request_legacy(1, "tools/call", json!({"name": "slow"})).await });
    server.tools.wait_for_started(1).await;
    calling.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.tools.dropped.load(Ordering::SeqCst), 0);
    server.tools.release.notify_one();
    wait_until(|| server.tools.finished.load(Ordering::SeqCst) == 1).await;
    server.close().await;
}

#[tokio::test]
async fn a_legacy_client_cancels_only_its_own_calls() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let other = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let caller = client.clone();
    let calling =
        tokio::spawn(async move { caller.request_legacy(1, "tools/call", json!({"name": "slow"})).await });
    server.tools.wait_for_started(1).await;
    assert_eq!(other.notify("notifications/cancelled", json!({"requestId": 1})).await, 202);
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 2})).await, 202);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.tools.dropped.load(Ordering::SeqCst), 0);
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 1})).await, 202);
    wait_until(|| server.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert!(calling.await.unwrap().messages.is_empty());
    server.close().await;
}

#[tokio::test]
async fn a_call_without_its_client_can_still_be_cancelled() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", json!({})).await;
    let caller = client.clone();
    let calling =
        tokio::spawn(async move { caller.request_legacy(9, "tools/call", json!({"name": "slow"})).await });
    server.tools.wait_for_started(1).await;
    calling.abort();
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.notify("notifications/cancelled", json!({"requestId": 9})).await;
    wait_until(|| server.tools.dropped.load(Ordering::SeqCst) == 1).await;
    server.close().await;
}
