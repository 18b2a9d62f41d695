//! Changes at servers reach an endpoint while no call is in flight: lists, tools and single resources.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{sync::broadcast, time::timeout};
use toolyard_mcp_server::{ContentEvent, ContentKind, ContentService};

use super::content::{TestEndpoint, both_families_cases};
use crate::{
    support::case::{ServerKind, Transport, case},
    support::test_manager::TEST_TIMEOUT,
};

async fn wait_for(events: &mut broadcast::Receiver<ContentEvent>, expected: &ContentEvent) {
    let received = async { while events.recv().await.unwrap() != *expected {} };
    timeout(TEST_TIMEOUT, received).await.unwrap_or_else(|_| panic!("no event {expected:?}"));
}

#[tokio::test]
async fn changed_lists_are_read_again() {
    for case in both_families_cases() {
        let (endpoint, _server) = TestEndpoint::with_server(case).await;
        let mut events = endpoint.bridge.events().unwrap();
        let session = endpoint.manager.session().await;
        endpoint.manager.call("grow", json!({"name": "sprout", "after": 1})).await.unwrap();
        endpoint.manager.wait_until_idle().await;
        wait_for(&mut events, &ContentEvent::PromptsChanged).await;
        wait_for(&mut events, &ContentEvent::ResourcesChanged).await;
        assert!(endpoint.list(ContentKind::Prompts, "name").await.contains(&"sprout".to_owned()), "{case:?}");
        assert!(endpoint.list(ContentKind::Resources, "uri").await.contains(&"note://sprout".to_owned()));
        endpoint.manager.wait_for_tools(case.tool_count() + 1).await;
        assert!(endpoint.manager.names().contains(&"sprout".to_owned()));
        assert!(Arc::ptr_eq(&session, &endpoint.manager.session().await), "the session is the same");
        endpoint.manager.manager.close().await;
    }
}

#[tokio::test]
async fn only_updates_of_subscribed_resources_are_forwarded() {
    for case in both_families_cases() {
        // The official Python SDK has no `resources/subscribe` in legacy revisions, but sends updates.
        let (endpoint, _server) = TestEndpoint::with_server(case).await;
        let mut events = endpoint.bridge.events().unwrap();
        let subscribed_uri = "note://first";
        if case.family == toolyard_core::RevisionFamily::Modern {
            endpoint.request("resources/subscribe", json!({ "uri": subscribed_uri })).await.unwrap();
            // The subscription is not acknowledged, so give it time.
            tokio::time::sleep(Duration::from_millis(500)).await;
            endpoint.manager.call("touch", json!({"uri": "note://numbered/1", "after": 0})).await.unwrap();
        } else {
            let refused = endpoint.request("resources/subscribe", json!({ "uri": subscribed_uri })).await;
            assert_eq!(refused.unwrap_err().code, -32601, "{case:?}");
        }
        endpoint.manager.call("touch", json!({"uri": subscribed_uri, "after": 0.5})).await.unwrap();
        let update = async {
            loop {
                if let ContentEvent::ResourceUpdated(uri) = events.recv().await.unwrap() {
                    return uri;
                }
            }
        };
        assert_eq!(timeout(TEST_TIMEOUT, update).await.unwrap(), subscribed_uri, "{case:?}");
        endpoint.manager.manager.close().await;
    }
}

#[tokio::test]
async fn a_subscription_survives_a_restart_of_the_server() {
    for transport in [Transport::Stdio, Transport::Http] {
        let (endpoint, _server) = TestEndpoint::with_server(case(ServerKind::Everything, transport)).await;
        let mut events = endpoint.bridge.events().unwrap();
        let uri = "demo://resource/dynamic/text/1";
        endpoint.request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
        let updated = ContentEvent::ResourceUpdated(uri.to_owned());
        endpoint.manager.call("toggle-subscriber-updates", json!({})).await.unwrap();
        wait_for(&mut events, &updated).await;
        endpoint.manager.server().stop().await;
        endpoint.manager.session().await;
        endpoint.manager.call("toggle-subscriber-updates", json!({})).await.unwrap();
        while events.try_recv().is_ok() {}
        wait_for(&mut events, &updated).await;
        endpoint.request("resources/unsubscribe", json!({ "uri": uri })).await.unwrap();
        endpoint.manager.manager.close().await;
    }
}

#[tokio::test]
async fn the_log_level_reaches_legacy_servers() {
    let (endpoint, _server) = TestEndpoint::with_server(case(ServerKind::Everything, Transport::Stdio)).await;
    endpoint.manager.session().await;
    endpoint.request("logging/setLevel", json!({"level": "error"})).await.unwrap();
    let refused = endpoint.request("logging/setLevel", json!({"level": "loud"})).await.unwrap_err();
    assert_eq!(refused.code, -32602);
    endpoint.manager.manager.close().await;
}
