//! An endpoint with unavailable servers serves the others, reports which are missing and why, and reconnects.

use std::time::{Duration, Instant};

use toolyard_mcp_client::ServerCache;
use toolyard_mcp_server::{ContentKind, ContentService as _, Readiness as _};

use super::content::TestEndpoint;
use crate::{
    support::case::{ServerKind, Transport, case},
    support::test_server::TestServer,
};

#[tokio::test]
async fn an_unavailable_server_is_reported_and_reconnected() {
    let healthy = TestServer::open(case(ServerKind::Time, Transport::Stdio)).await;
    let mut dead = TestServer::open(case(ServerKind::BothFamilies, Transport::Http)).await;
    let (mut clock_config, mut dead_config) = (healthy.config(), dead.config());
    (clock_config.id, dead_config.id) = ("clock".into(), "dead".into());
    dead.kill();
    let endpoint =
        TestEndpoint::open(vec![clock_config, dead_config], healthy.path(), ServerCache::in_memory()).await;
    assert_eq!(endpoint.bridge.missing_sources().len(), 2, "no server was discovered yet");
    let started = Instant::now();
    endpoint.bridge.settled().await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(endpoint.manager.names().len(), 2);
    let missing_sources = endpoint.bridge.missing_sources();
    assert_eq!(missing_sources.len(), 1, "{missing_sources:?}");
    assert!(missing_sources[0].starts_with("dead is down (cannot reach the server"), "{missing_sources:?}");
    dead.start().await;
    endpoint.manager.wait_for_tools(2 + case(ServerKind::BothFamilies, Transport::Http).tool_count()).await;
    endpoint
        .manager
        .wait_until(|| {
            endpoint.bridge.missing_sources().is_empty() && endpoint.bridge.capabilities().completions
        })
        .await;
    assert_eq!(endpoint.list(ContentKind::Prompts, "name").await, ["hello"]);
    endpoint.manager.manager.close().await;
}

#[tokio::test]
async fn a_server_that_dies_while_idle_is_restarted() {
    let test_server = TestServer::open(case(ServerKind::Time, Transport::Stdio)).await;
    let endpoint =
        TestEndpoint::open(vec![test_server.config()], test_server.path(), ServerCache::in_memory()).await;
    endpoint.bridge.settled().await;
    let before = test_server.processes();
    tokio::time::sleep(Duration::from_secs(6)).await;
    for process in &before {
        let process = rustix::process::Pid::from_raw((*process).try_into().unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    endpoint
        .manager
        .wait_until(|| test_server.processes().iter().any(|process| !before.contains(process)))
        .await;
    endpoint.manager.wait_until_ready().await;
    assert_eq!(endpoint.manager.names().len(), 2);
    endpoint.manager.manager.close().await;
}
