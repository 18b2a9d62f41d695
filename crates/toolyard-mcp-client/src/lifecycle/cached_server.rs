//! What is known of a server without connecting to it, and how that is recorded.

use std::collections::BTreeMap;

use toolyard_core::{ContentHash, RawJson, RevisionFamily, SourceId};

use crate::{
    config::McpServerConfig,
    content::server_content::ServerContent,
    lifecycle::{connect_error::ConnectError, host::Host},
    pinning::{CacheError, CachedRecord, ToolApprovals},
};

/// What is known of a server without connecting to it.
#[derive(Debug)]
pub(super) struct CachedServer {
    pub(super) revision_family: Option<RevisionFamily>,
    pub(super) approvals: ToolApprovals,
    pub(super) content: ServerContent,
}

impl Host {
    /// Records the tools that a server sent, before any of them is used, and decides which may be used.
    pub(super) async fn record_tools(
        &self,
        config: &McpServerConfig,
        family: RevisionFamily,
        tools: Vec<RawJson>,
    ) -> Result<ToolApprovals, ConnectError> {
        let decision = self.cache.update_tools(config, Some(family), tools, now()).await;
        decision.map(ToolApprovals::from_decision).map_err(|error| ConnectError::Cache(error.to_string()))
    }

    /// Records prompts, resources and skills. A failure is only logged: it costs another start later.
    pub(super) async fn record_content(&self, config: &McpServerConfig, content: &ServerContent) {
        let Ok(content) = RawJson::from_serialize(content) else { return };
        if let Err(error) = self.cache.update_content(config, content).await {
            tracing::warn!(server = %config.id, %error, "failed to cache the content of a server");
        }
    }

    /// Approves tools as the server sent them last.
    pub(super) async fn approve_tools(
        &self,
        config: &McpServerConfig,
        tools: &[(String, ContentHash)],
    ) -> Result<ToolApprovals, CacheError> {
        let approved = self.cache.approve(config, Some(tools), now()).await?;
        Ok(ToolApprovals::from_decision(approved.decision))
    }

    /// What is known of these servers. A server whose configuration changed counts as new.
    pub(super) async fn cached_servers(
        &self,
        configs: &[McpServerConfig],
    ) -> Result<BTreeMap<SourceId, CachedServer>, CacheError> {
        let records = self.cache.load(configs).await?;
        let cached = |CachedRecord { revision_family, approvals, content }| {
            // Another version may have written content that cannot be read.
            let content = content.and_then(|content| content.read().ok()).unwrap_or_default();
            CachedServer { revision_family, approvals, content }
        };
        Ok(records.into_iter().map(|(id, record)| (id, cached(record))).collect())
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
