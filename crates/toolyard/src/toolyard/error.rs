//! Why a [`Toolyard`](crate::Toolyard) could not be built, or an operation on it failed.

use toolyard_core::{InvalidToolSpec, StorageError, ToolError};

/// Why a [`Toolyard`](crate::Toolyard) could not be built, or an operation on it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tool of the embedder cannot be served.
    #[error(transparent)]
    InvalidTool(#[from] InvalidToolSpec),
    /// A setting or the builder names a native tool that does not exist.
    ///
    /// Remedy: use one of the names in the message.
    #[cfg(feature = "native")]
    #[error("native tool `{name}` does not exist; there are {}", .known.join(", "))]
    UnknownNativeTool {
        /// The name.
        name: String,
        /// The names of all native tools.
        known: Vec<String>,
    },
    /// The settings are invalid.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Settings(#[from] crate::SettingsError),
    /// The policies of the settings cannot be used.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Policy(#[from] crate::PolicyLoadError),
    /// Servers of the settings are invalid; each problem follows.
    ///
    /// Remedy: correct `[servers.NAME]` as the text says; `toolyard doctor` shows all problems.
    #[cfg(feature = "agent")]
    #[error("invalid servers in the settings: {}", .problems.join("; "))]
    InvalidServers {
        /// What is wrong with each.
        problems: Vec<String>,
    },
    /// The store failed.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Store(#[from] toolyard_store::StoreError),
    /// The store failed to read or write a record.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The cache of MCP servers failed.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    ServerCache(#[from] toolyard_mcp_client::CacheError),
    /// A tool call failed.
    #[error(transparent)]
    Call(#[from] ToolError),
    /// The settings require an audit record of every call, and there is no store for them.
    ///
    /// Remedy: set `store` in `toolyard.toml`, or make its folder writable; or set `audit = "best_effort"`.
    #[error("`audit = \"required\"` needs a store, and there is none")]
    AuditWithoutStore,
    /// A program that embeds Toolyard reloads servers, and built it without any.
    ///
    /// Remedy: pass a list of servers, which may be empty, to the builder.
    #[error(
        "this Toolyard was built without MCP servers: pass a list of servers, which may be empty, to its builder"
    )]
    WithoutServers,
    /// No such agent, or no model for it.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Agents(#[from] crate::AgentsError),
    /// A conversation cannot be continued.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Chat(#[from] crate::ChatError),
    /// A run could not be started or resumed.
    #[cfg(feature = "agent")]
    #[error(transparent)]
    Agent(Box<toolyard_agent::AgentError>),
    /// Serving over MCP ended with an error; the text says why.
    ///
    /// Remedy: see the text: the connection, the address or the session key.
    #[cfg(feature = "gateway")]
    #[error("failed to serve over MCP: {0}")]
    Serve(#[from] toolyard_mcp_server::ServeError),
    /// There is no key for the ids of sessions.
    #[cfg(feature = "gateway")]
    #[error(transparent)]
    SessionKey(#[from] toolyard_mcp_server::SessionKeyError),
}

#[cfg(feature = "agent")]
impl From<toolyard_agent::AgentError> for Error {
    fn from(error: toolyard_agent::AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}
