//! Reads the lists of a running server and records them.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use toolyard_core::{RawJson, unix_millis};

use crate::{
    content::server_content::{ContentLists, ServerContent},
    lifecycle::{connect_error::ConnectError, server::ManagedServer, shared::ServerEvent},
    pinning::{ToolApprovals, list_hash},
    session::handle::Session,
};

/// How long a server may take for one page of a list. All pages together may take as long as its start.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

impl ManagedServer {
    /// Reads the tools, decides which may be used, and registers those.
    pub(super) async fn refresh_tools(self: &Arc<Self>, session: &Session) -> Result<(), ConnectError> {
        let _guard = self.refresh_lock.lock().await;
        let tools = if session.about().capabilities.tools {
            let limit = self.config.startup_timeout;
            let listed = timeout(limit, session.list_tools(limit.min(LIST_TIMEOUT))).await;
            let timed_out = |_elapsed| ConnectError::TimedOut { after: limit, stderr: String::new() };
            listed.map_err(timed_out)??
        } else {
            Vec::new()
        };
        let family = session.revision_family();
        self.state.lock().revision_family = Some(family);
        // Stored before any of them is used.
        let name_users = |tool: &str| self.host.registrar.name_user(tool);
        let source = self.config.pinned_source();
        let list = list_hash(&tools);
        let decision =
            self.host.cache.update_tools(&source, Some(family), tools, &name_users, unix_millis()).await;
        let decision = decision.map_err(|error| ConnectError::Cache(error.to_string()))?;
        let approvals = ToolApprovals::from_decision(decision);
        // The list of a session that is closed by now does not count.
        if let Some(error) = session.closed() {
            return Err(error.into());
        }
        let problem = approvals.problem_summary();
        let is_changed = !self.has_known_tools() || !self.tool_approvals().has_same_tools(&approvals);
        {
            let mut state = self.state.lock();
            state.approvals = Arc::new(approvals);
            state.listed_tools = Some(list);
        }
        self.register_tools();
        self.state.lock().lifecycle.record_tools(problem);
        if is_changed {
            self.publish_record_change();
        }
        Ok(())
    }

    pub(super) async fn refresh_content(&self, session: &Session, lists: ContentLists) {
        let _guard = self.refresh_lock.lock().await;
        let content = session.read_content(&self.content(), lists, LIST_TIMEOUT).await;
        self.set_content(content).await;
    }

    pub(super) async fn set_content(&self, content: ServerContent) {
        let previous = self.content();
        if *previous == content || self.state.lock().lifecycle.is_retired() {
            return;
        }
        // Without the cache, the next process only has to start the server to list its content.
        if let Ok(raw) = RawJson::from_serialize(&content)
            && let Err(error) = self.host.cache.update_content(&self.config.pinned_source(), raw).await
        {
            tracing::warn!(server = %self.config.id, %error, "failed to cache the content of a server");
        }
        let prompts_changed = previous.prompts != content.prompts;
        let resources_changed = (&previous.resources, &previous.templates, &previous.skills)
            != (&content.resources, &content.templates, &content.skills);
        self.state.lock().content = Arc::new(content);
        self.publish_record_change();
        if prompts_changed {
            self.shared.publish(ServerEvent::PromptsChanged(self.config.id.clone()));
        }
        if resources_changed {
            self.shared.publish(ServerEvent::ResourcesChanged(self.config.id.clone()));
        }
    }
}
