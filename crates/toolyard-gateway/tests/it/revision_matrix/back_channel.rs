//! A server that speaks both revision families, but whose input requests need the legacy one.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use toolyard_core::RevisionFamily::{Legacy, Modern};
use toolyard_hub::Profile;

use super::test_gateway::TestGateway;
use crate::support::{
    case::{ServerKind, Transport, case, case_with_family},
    test_manager::SERVER_ID,
};

fn text(observed: &Value) -> &str {
    observed["answer"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_failed_write_is_not_repeated_and_the_next_call_is_asked_its_question() {
    for client in [Legacy, Modern] {
        for transport in [Transport::Stdio, Transport::Http] {
            let gateway = TestGateway::start(case(ServerKind::BackChannel, transport)).await;
            let call = || async { gateway.run_client(client, "elicitation", "order", &json!({})).await };
            let first = call().await;
            assert_eq!(first["answer"]["error"], true, "{first}");
            assert!(text(&first).contains("call the tool again"), "{first}");
            assert!(!text(&first).contains("back-channel"), "{first}");
            let second = call().await;
            assert_eq!(text(&second), "ordered for Ada", "{client:?} {transport:?}");
            assert_eq!(second["elicitations"], json!(["Who are you?"]));
            let orders = fs::read_to_string(gateway.test_server.path().join("orders")).unwrap();
            assert_eq!(orders.lines().count(), 2, "one per call of the client");
            gateway.close().await;
        }
    }
}

#[tokio::test]
async fn a_failed_read_is_repeated_where_its_question_can_be_asked() {
    for client in [Legacy, Modern] {
        for transport in [Transport::Stdio, Transport::Http] {
            let gateway = TestGateway::with_settings(
                case(ServerKind::BackChannel, transport),
                Profile::default(),
                |config| config.trusted = true,
            )
            .await;
            let observed = gateway.run_client(client, "elicitation", "look_up", &json!({})).await;
            assert_eq!(text(&observed), "found Ada", "{client:?} {transport:?}");
            assert_eq!(observed["elicitations"], json!(["Who are you?"]));
            gateway.close().await;
        }
    }
}

#[tokio::test]
async fn a_prompt_asks_its_question() {
    let gateway = TestGateway::start(case(ServerKind::BackChannel, Transport::Stdio)).await;
    let observed = gateway.run_client(Modern, "prompt", "letter", &json!({})).await;
    assert_eq!(text(&observed), "Dear Ada");
    gateway.close().await;
}

#[tokio::test]
async fn calls_in_flight_survive_the_change_of_revision() {
    for transport in [Transport::Stdio, Transport::Http] {
        let gateway = TestGateway::start(case(ServerKind::BackChannel, transport)).await;
        let wait_arguments = json!({"seconds": 8});
        let waiting = gateway.run_client(Modern, "call", "wait", &wait_arguments);
        let ordering = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            gateway.run_client(Modern, "elicitation", "order", &json!({})).await
        };
        let (waiting, ordering) = tokio::join!(waiting, ordering);
        assert_eq!((text(&waiting), ordering["answer"]["error"].clone()), ("waited", json!(true)));
        assert_eq!(gateway.manager.connect(SERVER_ID).await.unwrap().revision_family(), Legacy);
        gateway.close().await;
    }
}

#[tokio::test]
async fn the_configured_revision_is_kept() {
    let gateway =
        TestGateway::start(case_with_family(ServerKind::BackChannel, Transport::Stdio, Modern)).await;
    for _ in 0..2 {
        let observed = gateway.run_client(Modern, "elicitation", "order", &json!({})).await;
        assert!(text(&observed).contains("no back-channel"), "{observed}");
    }
    gateway.close().await;
}
