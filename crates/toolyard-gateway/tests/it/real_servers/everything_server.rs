//! The official server that uses every feature: all kinds of content, progress, and cancelled calls.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolyard_core::{ContentBlock, RawJson};
use toolyard_mcp_client::{RequestError, ToolCall};

use crate::{
    support::case::{ServerKind, Transport, case},
    support::test_manager::TestManager,
    support::test_server::{JsonStyle, TestServer},
};

/// Shorter than the long call, longer than each of its steps.
const IDLE_TIMEOUT: Duration = Duration::from_millis(2_500);
const LONG_RUNNING_TOOL: &str = "trigger-long-running-operation";

#[tokio::test]
async fn all_features_work_over_stdio() {
    check_all_features(Transport::Stdio).await;
}

#[tokio::test]
async fn all_features_work_over_streamable_http() {
    check_all_features(Transport::Http).await;
}

#[tokio::test]
async fn all_features_work_over_sse() {
    check_all_features(Transport::Sse).await;
}

async fn check_all_features(transport: Transport) {
    let case = case(ServerKind::Everything, transport);
    let mut test_server = TestServer::open(case).await;
    let mut config = test_server.recorded_config(JsonStyle::AsSent).await;
    config.call_timeout = Some(IDLE_TIMEOUT);
    let manager = TestManager::new(config, test_server.path()).await;
    manager.session().await;
    manager.wait_for_tools(case.tool_count()).await;
    content_is_parsed(&manager).await;
    tokio::join!(progress_extends_the_timeout(&manager), a_call_without_progress_times_out(&manager));
    the_server_receives_a_cancellation(&manager, &test_server).await;
    manager.manager.close().await;
}

async fn content_is_parsed(manager: &TestManager) {
    let image = manager.call("get-tiny-image", json!({})).await.unwrap();
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image { data, mime_type } if data.starts_with("iVBORw0KGgo") && mime_type == "image/png");
    assert!(image.content.iter().any(is_image), "{image:?}");
    let links = manager.call("get-resource-links", json!({"count": 2})).await.unwrap();
    let link = ContentBlock::ResourceLink {
        uri: "demo://resource/dynamic/text/2".to_owned(),
        name: "Text Resource 2".to_owned(),
    };
    assert_eq!(links.content.get(2), Some(&link));
    let resource =
        manager.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await;
    let resource = resource.unwrap();
    let ContentBlock::Resource { resource } = &resource.content[1] else { panic!("{resource:?}") };
    assert_eq!(resource["uri"], "demo://resource/dynamic/text/1");
    let weather = manager.call("get-structured-content", json!({"location": "New York"})).await.unwrap();
    let structured = weather.structured.expect("structured content");
    assert_eq!(weather.content[0].as_text(), Some(structured.get()));
    assert_eq!(structured.to_value()["temperature"], 33);
}

async fn progress_extends_the_timeout(manager: &TestManager) {
    let started = Instant::now();
    let done = manager.call(LONG_RUNNING_TOOL, json!({"duration": 5, "steps": 10})).await.unwrap();
    assert!(started.elapsed() > IDLE_TIMEOUT, "{:?}", started.elapsed());
    assert!(done.to_text().contains("Duration: 5 seconds, Steps: 10"), "{done:?}");
}

async fn a_call_without_progress_times_out(manager: &TestManager) {
    let idle_timeout = Duration::from_millis(700);
    let arguments = RawJson::from(json!({"duration": 6, "steps": 2}));
    let call = ToolCall { idle_timeout: Some(idle_timeout), ..ToolCall::new(LONG_RUNNING_TOOL, &arguments) };
    let session = manager.session().await;
    assert_eq!(session.call_tool(call).await, Err(RequestError::IdleTimeout(idle_timeout)));
    manager.call("echo", json!({"message": "still there"})).await.unwrap();
}

async fn the_server_receives_a_cancellation(manager: &TestManager, test_server: &TestServer) {
    let session = manager.session().await;
    let dropped = manager.call(LONG_RUNNING_TOOL, json!({"duration": 60, "steps": 60, "label": "dropped"}));
    assert!(timeout(Duration::from_millis(500), dropped).await.is_err());
    let deadline = Instant::now() + Duration::from_secs(10);
    let file = test_server.recording().with_extension("sent");
    loop {
        let sent: Vec<Value> = fs::read_to_string(&file)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let call = sent.iter().find(|message| message["params"]["arguments"]["label"] == "dropped").unwrap();
        let is_cancellation = |message: &&Value| {
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == call["id"]
        };
        if sent.iter().any(|message| is_cancellation(&message)) {
            break;
        }
        assert!(Instant::now() < deadline, "the server received no cancellation: {sent:?}");
        sleep(Duration::from_millis(20)).await;
    }
    manager.call("echo", json!({"message": "still there"})).await.unwrap();
    assert!(Arc::ptr_eq(&session, &manager.session().await), "the connection is the same");
    manager.wait_until_idle().await;
}
