//! [`Endpoint`]: the services that one URL serves.

use std::{fmt, sync::Arc};

use toolyard_core::{BoxFuture, ToolService};

use crate::content_service::ContentService;

/// The tools and the content that one URL serves.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The tools.
    pub tools: Arc<dyn ToolService>,
    /// Prompts, resources, completions and skills; the first service that knows an item answers for it.
    pub content: Vec<Arc<dyn ContentService>>,
    /// Reports sources that are not ready.
    pub readiness: Option<Arc<dyn Readiness>>,
    /// Whether callers with credentials of their own are refused, so that it is for the local token only.
    pub local_only: bool,
}

impl Endpoint {
    /// An endpoint with tools only.
    pub fn new(tools: Arc<dyn ToolService>) -> Self {
        Self { tools, content: Vec::new(), readiness: None, local_only: false }
    }
}

/// Reports sources that are not ready yet, or unavailable.
pub trait Readiness: Send + Sync + fmt::Debug {
    /// Resolves when every source has been listed or has failed.
    fn settled(&self) -> BoxFuture<'_, ()>;

    /// One line for each source whose tools are missing, with the reason.
    fn missing_sources(&self) -> Vec<String>;
}
