//! Clients cannot run the commands that the operator runs, so no answer names one.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::{
    QuarantineNotice,
    RevisionFamily::{Legacy, Modern},
    SourceInfo, SourceKind,
};
use toolyard_hub::Profile;

use super::test_gateway::TestGateway;
use crate::support::case::{ServerKind, Transport, case};

fn error_text(observed: &Value) -> String {
    assert_eq!(observed["answer"]["error"], true, "{observed}");
    let text = observed["answer"]["text"].as_str().unwrap().to_owned();
    assert!(!text.contains("toolyard "), "{text}");
    text
}

#[tokio::test]
async fn no_answer_names_a_command_of_the_operator() {
    let profile = Profile { timeout: Duration::from_secs(3), ..Profile::default() };
    let mut gateway =
        TestGateway::with_profile(case(ServerKind::BothFamilies, Transport::Http), profile).await;
    let notice = QuarantineNotice { tool: "pay".to_owned(), reason: "its definition changed".to_owned() };
    let bank = SourceInfo::new("bank", SourceKind::Mcp);
    gateway.hub.register_with_quarantined(bank, Vec::new(), vec![notice]);
    for client in [Legacy, Modern] {
        let call = |tool, arguments: Value| {
            let gateway = &gateway;
            async move { error_text(&gateway.run_client(client, "call", tool, &arguments).await) }
        };
        let quarantined = call("pay", json!({})).await;
        assert!(quarantined.contains("definition changed"), "{quarantined}");
        assert!(quarantined.contains("only the operator can approve it"), "{quarantined}");
        call("no_such_tool", json!({})).await;
        call("count", json!({"steps": "many"})).await;
        let timed_out = call("count", json!({"steps": 1, "pause": 8})).await;
        assert!(timed_out.contains("did not answer within 3 s"), "{timed_out}");
    }
    gateway.test_server.kill();
    for client in [Legacy, Modern] {
        let down = error_text(&gateway.run_client(client, "call", "say", &json!({"words": "x"})).await);
        assert!(down.contains("real"), "the server is named: {down}");
    }
    gateway.close().await;
}
