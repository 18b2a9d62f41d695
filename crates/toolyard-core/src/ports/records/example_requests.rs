//! Example requests per tool, which a model wrote ahead and search matches requests with.

use std::sync::Arc;

use crate::{BoxFuture, ContentHash, SourceId};

/// The example requests of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolExampleRequests {
    /// The tool's source.
    pub source: SourceId,
    /// The tool's name.
    pub tool: String,
    /// Hash of the definition that they were written for.
    pub definition: ContentHash,
    /// What users may say to have the tool called.
    pub requests: Vec<String>,
    /// The model that wrote them.
    pub model: String,
}

/// Knows the example requests of tools. Search waits for `of_tool`, so it must not block on I/O.
pub trait ExampleRequests: Send + Sync {
    /// The example requests of a tool, for whichever definition they were written.
    fn of_tool(&self, source: &SourceId, tool: &str) -> Option<Arc<ToolExampleRequests>>;

    /// Waits until stored requests are loaded, for implementations that load them on demand.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
