//! Journaled calls of clients, whose lease is renewed as long as they take.

use std::time::Duration;

use serde_json::json;
use toolyard_core::{Journal as _, ToolCallRequest};
use toolyard_hub::CallOptions;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_call_whose_process_died_is_soon_known_to_be_unknown() {
    let fixture = Fixture::new(replying([String::new()]), &[tool("write", Behavior::Hang).writes()]);
    let (hub, log) = (std::sync::Arc::clone(&fixture.hub), fixture.log.clone());
    let options = CallOptions::default().with_timeout(Duration::from_mins(10));
    let call = tokio::spawn(async move {
        let request = ToolCallRequest::new("write", json!({}));
        hub.execute_journaled(&log, "gateway", &request, &options).await
    });
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(fixture.calls(), ["write"]);
    assert!(fixture.log.unknown_steps().await.unwrap().is_empty(), "the call is in flight");
    // As if the process had been killed: nothing is recorded any more.
    call.abort();
    tokio::time::sleep(Duration::from_secs(16)).await;
    let unknown = fixture.log.unknown_steps().await.unwrap();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}
