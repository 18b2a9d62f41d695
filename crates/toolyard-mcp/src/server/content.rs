//! What a server offers besides tools: prompts, resources, completions, skills.

use std::{fmt, sync::Arc};

use tokio::sync::broadcast;
use toolyard_core::{BoxFuture, Caller, RawJson};

use crate::wire::RpcError;

/// Offers prompts, resources, completions or skills. Payloads stay raw: each entry is what whoever offers it wrote.
pub trait ContentService: Send + Sync + fmt::Debug {
    /// Which lists and methods it has at all.
    fn kinds(&self) -> ContentKinds;

    /// Everything of one kind, in an order that does not change by itself.
    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>>;

    /// Answers `prompts/get`, `resources/read`, `resources/directory/read`, `completion/complete`, `skills/get`,
    /// `resources/subscribe` or `resources/unsubscribe`. None where what it is about is nothing of this service.
    fn request<'a>(&'a self, request: ContentRequest<'a>)
    -> BoxFuture<'a, Option<Result<RawJson, RpcError>>>;

    /// What changes from now on; none where nothing ever does.
    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        None
    }
}

/// One request about content.
#[derive(Debug, Clone)]
pub struct ContentRequest<'a> {
    /// Such as `prompts/get`.
    pub method: &'a str,
    /// Its parameters as they came.
    pub params: &'a RawJson,
    /// Who can be told and asked while it goes on.
    pub caller: Option<Arc<dyn Caller>>,
}

/// Which kinds of content there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentKinds {
    /// Prompts.
    pub prompts: bool,
    /// Resources.
    pub resources: bool,
    /// Resources can be subscribed to.
    pub subscriptions: bool,
    /// Completions of arguments.
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

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentEvent {
    /// The list of prompts.
    PromptsChanged,
    /// The list of resources or of templates.
    ResourcesChanged,
    /// One resource, by its address.
    ResourceUpdated(String),
}
