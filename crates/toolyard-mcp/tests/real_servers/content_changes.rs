//! Changes at servers reach a door that is only open: lists, tools and single resources, in both eras, while nobody calls.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{sync::broadcast, time::timeout};
use toolyard_mcp::server::{ContentEvent, ContentKind, ContentService};

use crate::{
    content::{Door, both_eras},
    house::PATIENCE,
    row::{Kind, Wire, row},
};

async fn until(events: &mut broadcast::Receiver<ContentEvent>, wanted: &ContentEvent) {
    let seen = async { while events.recv().await.unwrap() != *wanted {} };
    timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("nobody told of {wanted:?}"));
}

#[tokio::test]
async fn lists_that_change_while_nobody_calls_are_read_anew() {
    for row in both_eras() {
        let (door, _place) = Door::of(row).await;
        let mut events = door.upstreams.events().unwrap();
        let session = door.house.session().await;
        door.house.call("grow", json!({"name": "sprout", "after": 1})).await.unwrap();
        door.house.until_idle().await;
        until(&mut events, &ContentEvent::PromptsChanged).await;
        until(&mut events, &ContentEvent::ResourcesChanged).await;
        assert!(door.list(ContentKind::Prompts, "name").await.contains(&"sprout".to_owned()), "{row:?}");
        assert!(door.list(ContentKind::Resources, "uri").await.contains(&"note://sprout".to_owned()));
        door.house.until_tools(row.tools() + 1).await;
        assert!(door.house.names().contains(&"sprout".to_owned()));
        assert!(Arc::ptr_eq(&session, &door.house.session().await), "in the same session");
        door.house.manager.close().await;
    }
}

#[tokio::test]
async fn a_resource_that_is_followed_tells_of_its_changes_and_no_other_does() {
    for row in both_eras() {
        // The official Python SDK has no `resources/subscribe` of its own in the legacy era, but tells of updates.
        let (door, _place) = Door::of(row).await;
        let mut events = door.upstreams.events().unwrap();
        let watched = "note://first";
        if row.era == toolyard_core::ProtocolEra::Modern {
            door.ask("resources/subscribe", json!({ "uri": watched })).await.unwrap();
            // A subscription is not acknowledged to whoever asked for it.
            tokio::time::sleep(Duration::from_millis(500)).await;
            door.house.call("touch", json!({"uri": "note://numbered/1", "after": 0})).await.unwrap();
        }
        door.house.call("touch", json!({"uri": watched, "after": 0.5})).await.unwrap();
        let update = async {
            loop {
                if let ContentEvent::ResourceUpdated(address) = events.recv().await.unwrap() {
                    return address;
                }
            }
        };
        assert_eq!(timeout(PATIENCE, update).await.unwrap(), watched, "{row:?}");
        door.house.manager.close().await;
    }
}

#[tokio::test]
async fn a_resource_of_the_official_server_is_followed_from_one_session_to_the_next() {
    for wire in [Wire::Stdio, Wire::Http] {
        let (door, _place) = Door::of(row(Kind::Everything, wire)).await;
        let mut events = door.upstreams.events().unwrap();
        let uri = "demo://resource/dynamic/text/1";
        door.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
        let updated = ContentEvent::ResourceUpdated(uri.to_owned());
        door.house.call("toggle-subscriber-updates", json!({})).await.unwrap();
        until(&mut events, &updated).await;
        door.house.server().stop().await;
        door.house.session().await;
        door.house.call("toggle-subscriber-updates", json!({})).await.unwrap();
        while events.try_recv().is_ok() {}
        until(&mut events, &updated).await;
        door.ask("resources/unsubscribe", json!({ "uri": uri })).await.unwrap();
        door.house.manager.close().await;
    }
}

#[tokio::test]
async fn the_level_of_a_log_reaches_servers_of_the_legacy_era() {
    let (door, _place) = Door::of(row(Kind::Everything, Wire::Stdio)).await;
    door.house.session().await;
    door.ask("logging/setLevel", json!({"level": "error"})).await.unwrap();
    let refused = door.ask("logging/setLevel", json!({"level": "loud"})).await.unwrap_err();
    assert_eq!(refused.code, -32602);
    door.house.manager.close().await;
}
