//! Two clients of one server whose input requests do not tell which client they are for.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::RevisionFamily::{Legacy, Modern};
use toolyard_hub::Profile;

use super::{both_families_case, test_gateway::TestGateway};
use crate::support::case::{ServerKind, Transport, case};

/// How often a client was asked, and whether its call failed.
fn asked(observed: &Value) -> (usize, bool) {
    (observed["elicitations"].as_array().unwrap().len(), observed["answer"]["error"] == true)
}

#[tokio::test]
async fn an_input_request_reaches_the_client_whose_call_raised_it() {
    for client in [Legacy, Modern] {
        let gateway = TestGateway::start(both_families_case(Legacy, Transport::Stdio)).await;
        let count_arguments = json!({"steps": 16, "pause": 0.5});
        let counting = gateway.run_client(client, "progress", "count", &count_arguments);
        let eliciting = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            gateway.run_client(client, "elicitation", "greet", &json!({})).await
        };
        let (counting, eliciting) = tokio::join!(counting, eliciting);
        assert_eq!((asked(&counting), asked(&eliciting)), ((0, false), (1, false)), "{counting} {eliciting}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn clients_of_the_official_server_are_each_asked_their_own_question() {
    for transport in [Transport::Stdio, Transport::Http] {
        let gateway = TestGateway::start(case(ServerKind::Everything, transport)).await;
        let no_arguments = json!({});
        let elicit =
            |scenario| gateway.run_client(Legacy, scenario, "trigger-elicitation-request", &no_arguments);
        let (slow, quick) = tokio::join!(elicit("slow_elicitation"), elicit("elicitation"));
        assert_eq!((asked(&slow), asked(&quick)), ((1, false), (1, false)), "{transport:?} {slow} {quick}");
        // Right after a client that was asked is gone.
        let after = elicit("elicitation").await;
        assert_eq!(asked(&after), (1, false), "{transport:?} {after}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn a_client_that_reconnects_after_a_cancelled_call_is_still_asked() {
    // An exclusive server has only one session for all clients.
    let start = || {
        let case = both_families_case(Legacy, Transport::Stdio);
        TestGateway::with_settings(case, Profile::default(), |config| config.exclusive = true)
    };
    let count = json!(["count", {"steps": 60, "pause": 0.5}]);
    for client in [Legacy, Modern] {
        let gateway = start().await;
        let both = json!([count, ["greet", {}]]);
        let same_session = gateway.run_client(client, "cancel_then_call", "", &both).await;
        assert_eq!(asked(&same_session), (1, false), "{same_session}");
        let cancelled = json!([count, [null, {}]]);
        gateway.run_client(client, "cancel_then_call", "", &cancelled).await;
        let next_session = gateway.run_client(client, "elicitation", "greet", &json!({})).await;
        assert_eq!(asked(&next_session), (1, false), "{next_session}");
        gateway.close().await;
    }
}
