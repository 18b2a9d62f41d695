//! Which revision family a server gets whose input requests need a back-channel.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{
    Caller, ErrorKind,
    RevisionFamily::{Legacy, Modern},
    ToolError, ToolOutput,
};
use toolyard_mcp_client::ServerCache;

use super::test_caller::TestCaller;
use crate::{
    support::case::{ServerKind, Transport, case},
    support::test_manager::{TestManager, call_for},
    support::test_server::TestServer,
};

async fn manager(test_server: &TestServer, cache: &ServerCache) -> TestManager {
    TestManager::with_cache(test_server.config(), test_server.path(), cache.clone()).await
}

async fn order(manager: &TestManager) -> Result<ToolOutput, ToolError> {
    call(manager, "order").await
}

async fn call(manager: &TestManager, tool: &str) -> Result<ToolOutput, ToolError> {
    let caller: Arc<dyn Caller> = TestCaller::with_session(1).shared();
    call_for(manager.tool(tool), json!({}), caller).await
}

#[tokio::test]
async fn the_family_is_remembered_across_processes() {
    let test_server = TestServer::open(case(ServerKind::BackChannel, Transport::Stdio)).await;
    let cache = ServerCache::in_memory();
    let first = manager(&test_server, &cache).await;
    assert_eq!(first.session().await.revision_family(), Modern);
    let error = order(&first).await.unwrap_err();
    // The hub repeats the call only if the tool is known to be repeatable.
    assert!(error.retryable() && !error.had_no_effect() && !error.is_source_fault(), "{error:?}");
    first.manager.close().await;
    let second = manager(&test_server, &cache).await;
    assert_eq!(order(&second).await.unwrap().to_text(), "ordered for Ada");
    assert_eq!(second.session().await.revision_family(), Legacy);
    assert_eq!(second.server().tool_approvals().quarantined, Vec::new());
    second.manager.close().await;
}

#[tokio::test]
async fn a_server_without_any_back_channel_returns_to_the_modern_revision() {
    let test_server = TestServer::open(case(ServerKind::NoBackChannel, Transport::Http)).await;
    let manager = manager(&test_server, &ServerCache::in_memory()).await;
    manager.session().await;
    for (round, expected) in [Legacy, Modern, Modern].into_iter().enumerate() {
        let error = order(&manager).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert_eq!(error.message().contains("no back-channel"), round > 0, "{error}");
        assert_eq!(manager.session().await.revision_family(), expected, "round {round}");
    }
    manager.manager.close().await;
}

#[tokio::test]
async fn a_fastmcp_server_over_http_can_ask_in_both_ways() {
    for transport in [Transport::Stdio, Transport::Http] {
        let test_server = TestServer::open(case(ServerKind::FastMcp, transport)).await;
        let manager = manager(&test_server, &ServerCache::in_memory()).await;
        manager.session().await;
        assert_eq!(call(&manager, "book").await.unwrap().to_text(), "booked for Ada", "{transport:?}");
        // Each way fails once in the revision that lacks it, and works from then on.
        let error = call(&manager, "order").await.unwrap_err();
        assert!(error.retryable() && !error.is_source_fault(), "{error:?}");
        assert_eq!(call(&manager, "order").await.unwrap().to_text(), "ordered for Ada", "{transport:?}");
        let error = call(&manager, "book").await.unwrap_err();
        if transport == Transport::Stdio {
            // A further session would be a process of its own, without what earlier calls left in this one.
            assert!(!error.retryable() && error.to_string().contains("2026-07-28"), "{error:?}");
        } else {
            assert!(error.retryable() && !error.is_source_fault(), "{error:?}");
            for _ in 0..2 {
                assert_eq!(call(&manager, "book").await.unwrap().to_text(), "booked for Ada");
                assert_eq!(call(&manager, "order").await.unwrap().to_text(), "ordered for Ada");
            }
        }
        manager.manager.close().await;
    }
}
