//! The facade: a hub with its tools, MCP servers, skills, store and agents.

mod builder;
mod error;
#[cfg(feature = "store")]
mod persistence;
#[cfg(feature = "native")]
mod skills;

use std::sync::Arc;

#[cfg(feature = "mcp")]
use toolyard_core::{ErrorKind, SourceId, ToolError};
use toolyard_core::{RawJson, ToolCallRequest, ToolOutput};
use toolyard_hub::{CallOptions, ToolHub};
#[cfg(feature = "mcp")]
use toolyard_mcp_client::{ManagedServer, ServerState};

pub use builder::ToolyardBuilder;
pub use error::Error;
#[cfg(feature = "native")]
pub use skills::SkillEnvironment;
#[cfg(feature = "agent")]
pub(crate) use skills::load_skills;

/// A hub with its tools, MCP servers, skills and agents.
#[derive(Debug)]
pub struct Toolyard {
    hub: Arc<ToolHub>,
    options: CallOptions,
    #[cfg(feature = "mcp")]
    servers: Option<Arc<toolyard_mcp_client::McpManager>>,
    #[cfg(feature = "native")]
    skills: toolyard_tools::skill::LoadedSkills,
    #[cfg(feature = "store")]
    persistence: Option<persistence::Persistence>,
    #[cfg(feature = "gateway")]
    pub(crate) content: Arc<crate::serve::FunctionContent>,
    #[cfg(feature = "agent")]
    pub(crate) approver: Option<Arc<dyn crate::Approver>>,
    #[cfg(feature = "agent")]
    pub(crate) reloadable: crate::reload::Reloadable,
}

impl Toolyard {
    /// A builder with the native tools, if the feature `native` is on.
    pub fn builder() -> ToolyardBuilder {
        ToolyardBuilder::default()
    }

    /// Calls a tool by name. The tools of a server that was never started before are found by the first call of a name that
    /// is unknown: all such servers are started then. The error is [`Error::Call`].
    pub async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, Error> {
        let request = ToolCallRequest::new(tool, arguments);
        #[cfg(feature = "mcp")]
        if self.hub.snapshot().find(tool).is_none() {
            self.discover_servers().await;
        }
        let outcome = self.hub.execute(&request, &self.options).await;
        #[cfg(feature = "mcp")]
        let outcome = outcome.map_err(|error| self.with_server_problems(error));
        outcome.map_err(Error::Call)
    }

    /// Stops all servers and flushes the store. Dropping a `Toolyard` without this may lose the last second of statistics
    /// and audit records. Audit records that the store does not take are kept in the spill file for the next process.
    pub async fn close(&self) -> Result<(), Error> {
        if let Some(quota) = self.hub.quota() {
            quota.settle().await;
        }
        #[cfg(feature = "mcp")]
        if let Some(servers) = &self.servers {
            servers.close().await;
        }
        #[cfg(feature = "store")]
        if let Some(persistence) = &self.persistence {
            persistence.close().await?;
        }
        Ok(())
    }

    /// The hub.
    pub fn hub(&self) -> &Arc<ToolHub> {
        &self.hub
    }

    /// The default options of a call.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// All agents, as of the last reload of the settings; [`Toolyard::agent`] is the short way to ask one.
    #[cfg(feature = "agent")]
    pub fn agents(&self) -> Arc<crate::Agents> {
        self.reloadable.agents.current()
    }

    /// The skills that were found, and their problems.
    #[cfg(feature = "native")]
    pub fn skills(&self) -> &toolyard_tools::skill::LoadedSkills {
        &self.skills
    }
}

#[cfg(feature = "mcp")]
impl Toolyard {
    /// Starts the servers that were never connected and waits until they have described their tools, or failed. A server
    /// that failed is not started again. [`Toolyard::call`] and agents do this when they need it.
    pub async fn discover_servers(&self) {
        let Some(servers) = &self.servers else { return };
        let is_new = |state| matches!(state, ServerState::Configured | ServerState::Starting { .. });
        let new = servers.servers().into_iter().filter(|server| is_new(server.state()));
        let new: Vec<SourceId> = new.map(|server| server.config().id.clone()).collect();
        servers.discover_matching(|id| new.contains(id)).await;
    }

    /// The servers that failed to start or to connect, and why.
    pub fn server_problems(&self) -> Vec<(SourceId, String)> {
        let servers = self.servers.iter().flat_map(|manager| manager.servers());
        let problem = |server: &ManagedServer| match server.state() {
            ServerState::Down { reason, .. } => Some((server.config().id.clone(), reason)),
            _ => None,
        };
        servers.filter_map(|server| problem(&server)).collect()
    }

    /// An unknown tool may be one of a server that failed.
    fn with_server_problems(&self, error: ToolError) -> ToolError {
        if error.kind() != ErrorKind::UnknownTool {
            return error;
        }
        let hint = |(server, reason): (SourceId, String)| format!("server `{server}` failed: {reason}");
        self.server_problems().into_iter().map(hint).fold(error, ToolError::with_hint)
    }

    /// The MCP servers, if any were configured.
    pub fn servers(&self) -> Option<&Arc<toolyard_mcp_client::McpManager>> {
        self.servers.as_ref()
    }

    /// Replaces the MCP servers. Unchanged servers and their in-flight calls are not disturbed; none is started.
    pub async fn reload_servers(
        &self,
        configs: Vec<toolyard_mcp_client::config::McpServerConfig>,
    ) -> Result<toolyard_mcp_client::ConfigChanges, Error> {
        let manager = self.servers.as_ref().ok_or(Error::WithoutServers)?;
        Ok(manager.apply(configs).await?)
    }
}
