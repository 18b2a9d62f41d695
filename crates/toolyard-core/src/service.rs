//! What a door serves: tools as they are offered to a client, and calls of them. The hub is one; the MCP server serves any.

use std::{fmt, sync::Arc};

use crate::{BoxFuture, Caller, RawJson, ToolCallRequest, ToolError, ToolOutput};

/// Offers tools and carries out calls of them.
pub trait ToolService: Send + Sync + fmt::Debug {
    /// What is offered to this client at this moment. While nothing changed, the same pointer is given again, so that
    /// whoever writes it out may keep what was written.
    fn catalogue(&self, viewer: &Viewer) -> Arc<Catalogue>;

    /// Waits until what is offered is really different from the catalogue with this number, and says the new number.
    fn changed(&self, seen: u64) -> BoxFuture<'_, u64>;

    /// One tool's definition by its offered name, also of tools that are not in the catalogue of every client.
    fn describe(&self, name: &str) -> Option<RawJson>;

    /// Carries out one call.
    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The client that looks at a catalogue, as far as it matters for what it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Viewer {
    /// What the client calls itself, such as `claude-code`; anyone can take any name.
    pub client: Option<String>,
}

/// Tools as they are offered, in an order that does not change by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Grows whenever something really changed.
    pub version: u64,
    /// The tools by name.
    pub tools: Vec<OfferedTool>,
}

/// One tool as it is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The name by which it is called.
    pub name: Arc<str>,
    /// Its definition in MCP's form, under that name.
    pub definition: RawJson,
}

/// One call as it came in at a door.
#[derive(Debug, Clone)]
pub struct ServiceCall {
    /// The tool by its offered name, its arguments, and a source where an earlier answer asked for one.
    pub request: ToolCallRequest,
    /// Who can be told and asked while it goes on.
    pub caller: Option<Arc<dyn Caller>>,
    /// On whose behalf it is made, for the audit log.
    pub who: Arc<str>,
}
