//! A set of tools as it is served to clients. The hub is one [`ToolService`]; the MCP server serves any.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, Caller, CallerIdentity, RawJson, ToolCallRequest, ToolError, ToolOutput};

/// Lists tools and executes calls of them.
pub trait ToolService: Send + Sync + fmt::Debug {
    /// The tools that this client sees now. Returns the same pointer until something changes, so that servers can cache the
    /// serialized list.
    fn catalogue(&self, client: &ClientInfo) -> Arc<Catalogue>;

    /// Waits until the catalogue differs from this version, and returns the new version.
    fn changed(&self, seen_version: u64) -> BoxFuture<'_, u64>;

    /// The definition of a tool by its exposed name, even if the catalogue of this client does not list it. A tool that the
    /// client may not call has none.
    fn describe(&self, name: &str, client: &ClientInfo) -> Option<RawJson>;

    /// Instructions of the visible tools' sources, for the client's model; `None` if no source has any.
    fn instructions(&self, client: &ClientInfo) -> Option<String> {
        let _ = client;
        None
    }

    /// Executes one call.
    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The client that a catalogue is for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientInfo {
    /// The name that the client gives itself, such as `claude-code`. It is not verified.
    pub name: Option<String>,
    /// Who uses it; `None` for the person at this machine.
    pub identity: Option<Arc<CallerIdentity>>,
}

/// The tools listed to a client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Grows with every change.
    pub version: u64,
    /// The tools, in a stable order.
    pub tools: Vec<ListedTool>,
}

/// A tool as a client sees it listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name that clients call it by.
    pub name: Arc<str>,
    /// Its MCP definition, under that name.
    pub definition: RawJson,
}

/// A call that a client made.
#[derive(Debug, Clone)]
pub struct ServiceCall {
    /// The tool by its exposed name, its arguments, and optionally a source.
    pub request: ToolCallRequest,
    /// Receives progress and answers input requests.
    pub caller: Option<Arc<dyn Caller>>,
    /// The name of the caller, for the audit log.
    pub caller_name: Arc<str>,
}
