//! Reads the lists of a running server and records them.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use crate::{
    content::server_content::{ContentLists, ServerContent},
    lifecycle::{connect_error::ConnectError, server::ManagedServer, shared::ServerEvent},
    session::handle::Session,
    sync::lock,
};

/// How long a server may take for one page of a list. All pages together may take as long as its start.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

impl ManagedServer {
    /// Reads the tools, decides which may be used, and registers those.
    pub(super) async fn refresh_tools(self: &Arc<Self>, session: &Session) -> Result<(), ConnectError> {
        let _refreshing = self.refreshing.lock().await;
        let tools = if session.about().capabilities.tools {
            let limit = self.config.startup_timeout;
            let listed = timeout(limit, session.list_tools(limit.min(LIST_TIMEOUT))).await;
            let timed_out = |_elapsed| ConnectError::TimedOut { after: limit, stderr: String::new() };
            listed.map_err(timed_out)??
        } else {
            Vec::new()
        };
        let family = session.revision_family();
        lock(&self.state).revision_family = Some(family);
        let approvals = self.host.record_tools(&self.config, family, tools).await?;
        // The list of a session that is closed by now does not count.
        if let Some(error) = session.closed() {
            return Err(error.into());
        }
        let problem = approvals.concern();
        lock(&self.state).approvals = Arc::new(approvals);
        self.register_tools();
        lock(&self.state).lifecycle.tools_read(problem);
        Ok(())
    }

    /// Reads these lists of prompts, resources and skills.
    pub(super) async fn refresh_content(&self, session: &Session, lists: ContentLists) {
        let _refreshing = self.refreshing.lock().await;
        let content = session.read_content(&self.content(), lists, LIST_TIMEOUT).await;
        self.set_content(content).await;
    }

    pub(super) async fn set_content(&self, content: ServerContent) {
        let before = self.content();
        if *before == content || lock(&self.state).lifecycle.is_retired() {
            return;
        }
        self.host.record_content(&self.config, &content).await;
        let prompts_changed = before.prompts != content.prompts;
        let resources_changed = (&before.resources, &before.templates, &before.skills)
            != (&content.resources, &content.templates, &content.skills);
        lock(&self.state).content = Arc::new(content);
        if prompts_changed {
            self.shared.publish(ServerEvent::PromptsChanged(self.config.id.clone()));
        }
        if resources_changed {
            self.shared.publish(ServerEvent::ResourcesChanged(self.config.id.clone()));
        }
    }
}
