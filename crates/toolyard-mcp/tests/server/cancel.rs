//! Cancelling: by going away in the modern era, by saying so in the legacy era, and by neither otherwise.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;

use crate::{client::Client, house::House};

async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap();
}

#[tokio::test]
async fn a_modern_client_that_goes_away_has_cancelled() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let calling = tokio::spawn(async move { client.call(1, "slow", json!({})).await });
    house.tools.wait_for_started(1).await;
    calling.abort();
    until(|| house.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(house.tools.finished.load(Ordering::SeqCst), 0);
    house.close().await;
}

#[tokio::test]
async fn a_legacy_client_that_goes_away_has_not() {
    let house = House::new().await;
    let client = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let calling = tokio::spawn(async move { client.legacy(1, "tools/call", json!({"name": "slow"})).await });
    house.tools.wait_for_started(1).await;
    calling.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(house.tools.dropped.load(Ordering::SeqCst), 0);
    house.tools.release.notify_one();
    until(|| house.tools.finished.load(Ordering::SeqCst) == 1).await;
    house.close().await;
}

#[tokio::test]
async fn a_legacy_client_cancels_by_saying_so_and_only_its_own_calls() {
    let house = House::new().await;
    let client = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let other = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let caller = client.clone();
    let calling = tokio::spawn(async move { caller.legacy(1, "tools/call", json!({"name": "slow"})).await });
    house.tools.wait_for_started(1).await;
    assert_eq!(other.notify("notifications/cancelled", json!({"requestId": 1})).await, 202);
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 2})).await, 202);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(house.tools.dropped.load(Ordering::SeqCst), 0);
    assert_eq!(client.notify("notifications/cancelled", json!({"requestId": 1})).await, 202);
    until(|| house.tools.dropped.load(Ordering::SeqCst) == 1).await;
    assert!(calling.await.unwrap().messages.is_empty());
    house.close().await;
}

#[tokio::test]
async fn what_goes_on_without_its_client_can_still_be_cancelled() {
    let house = House::new().await;
    let client = Client::new(&house.address).initialize("2025-11-25", json!({})).await;
    let caller = client.clone();
    let calling = tokio::spawn(async move { caller.legacy(9, "tools/call", json!({"name": "slow"})).await });
    house.tools.wait_for_started(1).await;
    calling.abort();
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.notify("notifications/cancelled", json!({"requestId": 9})).await;
    until(|| house.tools.dropped.load(Ordering::SeqCst) == 1).await;
    house.close().await;
}
