//! An endpoint with unavailable servers serves the others, reports which are missing and why, and reconnects.

use std::time::{Duration, Instant};

use toolyard_mcp_client::ServerCache;
use toolyard_mcp_server::{ContentKind, ContentService as _, Readiness as _};

use crate::{
    content::TestEndpoint,
    support::case::{ServerKind, Transport, case},
    support::test_server::TestServer,
};

#[tokio::test]
async fn an_unavailable_server_is_reported_and_reconnected() {
    let healthy = TestServer::open(case(ServerKind::Time, Transport::Stdio)).await;
    let mut dead = TestServer::open(case(ServerKind::BothRevisions, Transport::Http)).await;
    let (mut one, mut other) = (healthy.config(), dead.config());
    (one.id, other.id) = ("clock".into(), "dead".into());
    dead.kill();
    let endpoint = TestEndpoint::open(vec![one, other], healthy.path(), ServerCache::in_memory()).await;
    assert_eq!(endpoint.bridge.notes().len(), 2, "no server was discovered yet");
    let started = Instant::now();
    endpoint.bridge.settled().await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(endpoint.manager.names().len(), 2);
    let notes = endpoint.bridge.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("dead is down (cannot reach the server"), "{notes:?}");
    dead.start().await;
    endpoint.manager.wait_for_tools(2 + case(ServerKind::BothRevisions, Transport::Http).tools()).await;
    endpoint
        .manager
        .wait_until(|| endpoint.bridge.notes().is_empty() && endpoint.bridge.kinds().completions)
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
