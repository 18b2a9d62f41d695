//! Two clients that nobody can tell apart, and a server that does not say whom it asks.

use std::time::Duration;

use serde_json::json;
use toolyard_core::ProtocolEra::{Legacy, Modern};

use crate::{both_eras, door::Door, row::Wire};

#[tokio::test]
async fn a_question_never_reaches_another_client_of_the_same_name() {
    for client in [Legacy, Modern] {
        let door = Door::open(both_eras(Legacy, Wire::Stdio)).await;
        let busy = json!({"steps": 16, "pause": 0.5});
        let busy = door.visited(client, "progress", "count", &busy);
        let asking = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            door.visited(client, "elicitation", "greet", &json!({})).await
        };
        let (busy, asking) = tokio::join!(busy, asking);
        assert_eq!((&busy["asked"], &busy["answer"]["error"]), (&json!([]), &json!(false)), "{busy}");
        assert_eq!((&asking["asked"], &asking["answer"]["error"]), (&json!([]), &json!(true)), "{asking}");
        let said = asking["answer"]["text"].as_str().unwrap();
        assert!(said.contains("several clients use this server at once"), "{said}");
        door.close().await;
    }
}
