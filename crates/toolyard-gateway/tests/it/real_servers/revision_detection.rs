//! The revision of a server is detected however slowly it starts, and pins hold across revisions.

use std::time::Instant;

use toolyard_core::RevisionFamily;
use toolyard_mcp_client::ServerCache;

use crate::{
    support::case::{ServerKind, Transport, case, case_with_family},
    support::test_manager::TestManager,
    support::test_server::TestServer,
};

/// Longer than the client waits before it also tries the other handshake.
const SLOW_START_SECONDS: u64 = 12;

#[tokio::test]
async fn a_slow_modern_server_is_not_mistaken_for_a_legacy_one() {
    check_slow_start(ServerKind::Time, RevisionFamily::Modern).await;
}

#[tokio::test]
async fn a_slow_legacy_server_is_detected() {
    check_slow_start(ServerKind::OldExcel, RevisionFamily::Legacy).await;
}

async fn check_slow_start(kind: ServerKind, family: RevisionFamily) {
    let test_server = TestServer::open(case(kind, Transport::Stdio)).await;
    let manager = TestManager::new(test_server.slow_config(SLOW_START_SECONDS), test_server.path()).await;
    let started = Instant::now();
    assert_eq!(manager.session().await.revision_family(), family);
    assert!(started.elapsed().as_secs() >= SLOW_START_SECONDS);
    manager.wait_for_tools(case(kind, Transport::Stdio).tool_count()).await;
    manager.manager.close().await;
}

#[tokio::test]
async fn a_server_that_changes_its_revision_keeps_its_tools() {
    for kind in [ServerKind::NewExcel, ServerKind::Time] {
        let cache = ServerCache::in_memory();
        let modern = case(kind, Transport::Stdio);
        let test_server = TestServer::open(modern).await;
        let legacy = case_with_family(kind, Transport::Stdio, RevisionFamily::Legacy);
        for (family, new_tools) in
            [(None, modern.tool_count()), (legacy.configured_family, 0), (Some(RevisionFamily::Modern), 0)]
        {
            let mut config = test_server.config();
            config.revision_family = family;
            let manager = TestManager::with_cache(config, test_server.path(), cache.clone()).await;
            let session = manager.session().await;
            assert_eq!(session.revision_family(), family.unwrap_or(RevisionFamily::Modern));
            let approvals = manager.server().tool_approvals();
            assert_eq!(approvals.newly_approved.len(), new_tools);
            assert_eq!(approvals.quarantined, Vec::new());
            assert_eq!(approvals.approved().len(), modern.tool_count());
            manager.manager.close().await;
        }
    }
}

#[tokio::test]
async fn cached_tools_are_available_before_the_server_starts() {
    let cache = ServerCache::in_memory();
    let case = case(ServerKind::Time, Transport::Stdio);
    let test_server = TestServer::open(case).await;
    let manager = |cache| TestManager::with_cache(test_server.config(), test_server.path(), cache);
    let first = manager(cache.clone()).await;
    first.session().await;
    first.manager.close().await;
    let second = manager(cache).await;
    assert_eq!((second.names().len(), test_server.processes().len()), (case.tool_count(), 0));
    let (tool, arguments) = case.read_only_call(test_server.path());
    second.call(tool, arguments).await.unwrap();
    assert_eq!(test_server.processes().len(), 1);
    second.manager.close().await;
    assert_eq!(test_server.processes(), Vec::<u32>::new());
}
