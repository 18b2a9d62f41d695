//! Calls that take longer than the hub waits for silent ones: those that report progress, and those that wait for a person.

use std::time::Duration;

use serde_json::json;
use toolyard_core::ProtocolEra::{self, Legacy, Modern};
use toolyard_hub::surface::Profile;

use crate::{both_eras, door::Door, row::Wire};

/// A door that waits two seconds for silent tools.
async fn impatient(server: ProtocolEra) -> Door {
    let profile = Profile { timeout: Duration::from_secs(2), ..Profile::default() };
    Door::of(both_eras(server, Wire::Http), profile).await
}

#[tokio::test]
async fn a_call_that_reports_progress_is_not_given_up() {
    for server in [Legacy, Modern] {
        let door = impatient(server).await;
        // Whether the client itself wants to hear of progress makes no difference.
        for (client, aspect) in [(Legacy, "progress"), (Modern, "call")] {
            let seen = door.visited(client, aspect, "count", &json!({"steps": 4, "pause": 1})).await;
            assert_eq!(seen["answer"]["text"], "4 steps", "{client:?} {server:?} {seen}");
        }
        door.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_silent_is_given_up() {
    let door = impatient(Modern).await;
    let seen = door.visited(Modern, "call", "count", &json!({"steps": 1, "pause": 5})).await;
    assert_eq!(seen["answer"]["error"], true);
    assert!(seen["answer"]["text"].as_str().unwrap().contains("did not answer within 2 s"), "{seen}");
    door.close().await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_is_not_given_up() {
    for server in [Legacy, Modern] {
        let door = impatient(server).await;
        for client in [Legacy, Modern] {
            let seen = door.visited(client, "thinking", "greet", &json!({})).await;
            assert_eq!(seen["answer"]["text"], "hello Ada", "{client:?} {server:?} {seen}");
        }
        door.close().await;
    }
}
