//! Two clients of one server whose input requests do not tell which client they are for.

use std::time::Duration;

use serde_json::json;
use toolyard_core::RevisionFamily::{Legacy, Modern};

use crate::{both_revisions, support::case::Transport, test_gateway::TestGateway};

#[tokio::test]
async fn an_input_request_never_reaches_another_client() {
    for client in [Legacy, Modern] {
        let gateway = TestGateway::start(both_revisions(Legacy, Transport::Stdio)).await;
        let busy = json!({"steps": 16, "pause": 0.5});
        let busy = gateway.run_client(client, "progress", "count", &busy);
        let asking = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            gateway.run_client(client, "elicitation", "greet", &json!({})).await
        };
        let (busy, asking) = tokio::join!(busy, asking);
        assert_eq!((&busy["asked"], &busy["answer"]["error"]), (&json!([]), &json!(false)), "{busy}");
        assert_eq!((&asking["asked"], &asking["answer"]["error"]), (&json!([]), &json!(true)), "{asking}");
        let text = asking["answer"]["text"].as_str().unwrap();
        assert!(text.contains("several clients use this server"), "{text}");
        gateway.close().await;
    }
}
