//! Calls that exceed the idle timeout, with progress, with input requests, and without either.

use std::time::Duration;

use serde_json::json;
use toolyard_core::RevisionFamily::{self, Legacy, Modern};
use toolyard_hub::Profile;

use super::{both_families_case, test_gateway::TestGateway};
use crate::support::case::Transport;

/// A gateway with an idle timeout of two seconds.
async fn gateway_with_timeout(server: RevisionFamily) -> TestGateway {
    let profile = Profile { timeout: Duration::from_secs(2), ..Profile::default() };
    TestGateway::with_profile(both_families_case(server, Transport::Http), profile).await
}

#[tokio::test]
async fn progress_extends_the_timeout() {
    for server in [Legacy, Modern] {
        let gateway = gateway_with_timeout(server).await;
        // Whether the client itself requested progress makes no difference.
        for (client, scenario) in [(Legacy, "progress"), (Modern, "call")] {
            let observed =
                gateway.run_client(client, scenario, "count", &json!({"steps": 4, "pause": 1})).await;
            assert_eq!(observed["answer"]["text"], "4 steps", "{client:?} {server:?} {observed}");
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_call_without_progress_times_out() {
    let gateway = gateway_with_timeout(Modern).await;
    let observed = gateway.run_client(Modern, "call", "count", &json!({"steps": 1, "pause": 5})).await;
    assert_eq!(observed["answer"]["error"], true);
    assert!(observed["answer"]["text"].as_str().unwrap().contains("did not answer within 2 s"), "{observed}");
    gateway.close().await;
}

#[tokio::test]
async fn an_input_request_pauses_the_timeout() {
    for server in [Legacy, Modern] {
        let gateway = gateway_with_timeout(server).await;
        for client in [Legacy, Modern] {
            let observed = gateway.run_client(client, "slow_elicitation", "greet", &json!({})).await;
            assert_eq!(observed["answer"]["text"], "hello Ada", "{client:?} {server:?} {observed}");
        }
        gateway.close().await;
    }
}
