//! [`ContentService`]: prompts, resources, completions and skills of an endpoint.

use std::{fmt, sync::Arc};

use tokio::sync::broadcast;
use toolyard_core::{BoxFuture, Caller, RawJson};
use toolyard_mcp::RpcError;

/// Provides prompts, resources, completions or skills. Entries and results are raw JSON and sent unchanged.
pub trait ContentService: Send + Sync + fmt::Debug {
    /// The lists and methods that this service supports.
    fn capabilities(&self) -> ContentCapabilities;

    /// All entries of a kind, in a stable order.
    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>>;

    /// Handles `prompts/get`, `resources/read`, `resources/directory/read`, `completion/complete`, `skills/get`,
    /// `resources/subscribe` or `resources/unsubscribe`. Returns none for content that belongs to another service.
    fn request<'a>(&'a self, request: ContentRequest<'a>)
    -> BoxFuture<'a, Option<Result<RawJson, RpcError>>>;

    /// Changes from now on; none if the content never changes.
    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        None
    }
}

/// A request about content.
#[derive(Debug, Clone)]
pub struct ContentRequest<'a> {
    /// The method, such as `prompts/get`.
    pub method: &'a str,
    /// The parameters as the client sent them.
    pub params: &'a RawJson,
    /// Receives progress and input requests while the request runs.
    pub caller: Option<Arc<dyn Caller>>,
}

/// What a service supports, as announced in MCP capabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentCapabilities {
    /// Prompts.
    pub prompts: bool,
    /// Resources.
    pub resources: bool,
    /// Resources can be subscribed to.
    pub subscriptions: bool,
    /// Argument completions.
    pub completions: bool,
    /// Skills over MCP.
    pub skills: bool,
    /// Log messages.
    pub logging: bool,
}

/// A kind of content that can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentKind {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
    /// `skills/list`.
    Skills,
}

/// A change of content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentEvent {
    /// The list of prompts changed.
    PromptsChanged,
    /// The list of resources or resource templates changed.
    ResourcesChanged,
    /// The resource with this URI changed.
    ResourceUpdated(String),
}
