//! Two clients of one server whose input requests do not tell which client they are for.

use std::time::Duration;

use serde_json::json;
use toolyard_core::RevisionFamily::{Legacy, Modern};

use crate::{both_families_case, support::case::Transport, test_gateway::TestGateway};

#[tokio::test]
async fn an_input_request_never_reaches_another_client() {
    for client in [Legacy, Modern] {
        let gateway = TestGateway::start(both_families_case(Legacy, Transport::Stdio)).await;
        let count_arguments = json!({"steps": 16, "pause": 0.5});
        let counting = gateway.run_client(client, "progress", "count", &count_arguments);
        let eliciting = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            gateway.run_client(client, "elicitation", "greet", &json!({})).await
        };
        let (counting, eliciting) = tokio::join!(counting, eliciting);
        assert_eq!(
            (&counting["elicitations"], &counting["answer"]["error"]),
            (&json!([]), &json!(false)),
            "{counting}"
        );
        assert_eq!(
            (&eliciting["elicitations"], &eliciting["answer"]["error"]),
            (&json!([]), &json!(true)),
            "{eliciting}"
        );
        let text = eliciting["answer"]["text"].as_str().unwrap();
        assert!(text.contains("several clients use this server"), "{text}");
        gateway.close().await;
    }
}
