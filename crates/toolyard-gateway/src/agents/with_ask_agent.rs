//! [`WithAskAgent`] adds `ask_agent` to a tool service. Agents call the hub directly and never see this tool.

use std::sync::Arc;

use parking_lot::Mutex;
use toolyard_core::{
    BoxFuture, Catalogue, ClientInfo, ListedTool, RawJson, ServiceCall, ToolError, ToolOutput, ToolService,
};

use super::ask_agent::{ASK_AGENT, AskAgent};
use crate::surface::HubService;

/// A service has two catalogues, full and search; of each, an outdated one may still be in use.
const MAX_CACHED_CATALOGUES: usize = 4;

/// A tool service with `ask_agent`. If the service has a tool of that name itself, that one is served.
#[derive(Debug)]
pub(crate) struct WithAskAgent {
    inner: HubService,
    ask_agent: AskAgent,
    definition: RawJson,
    /// Catalogues of the inner service, each with the same catalogue extended by `ask_agent`.
    catalogues: Mutex<Vec<(Arc<Catalogue>, Arc<Catalogue>)>>,
}

impl WithAskAgent {
    pub(crate) fn new(inner: HubService, ask_agent: AskAgent) -> Self {
        Self { inner, definition: ask_agent.definition(), ask_agent, catalogues: Mutex::default() }
    }

    /// Whether the service has a tool of that name, even if not every caller may call it.
    fn is_shadowed(&self) -> bool {
        self.inner.exposed().find(ASK_AGENT).is_some()
    }
}

impl ToolService for WithAskAgent {
    fn catalogue(&self, client: &ClientInfo) -> Arc<Catalogue> {
        let inner = self.inner.catalogue(client);
        if self.is_shadowed() {
            return inner;
        }
        let mut catalogues = self.catalogues.lock();
        if let Some((_, extended)) = catalogues.iter().find(|(known, _)| Arc::ptr_eq(known, &inner)) {
            return Arc::clone(extended);
        }
        let mut tools = inner.tools.clone();
        let position = tools.partition_point(|tool| &*tool.name < ASK_AGENT);
        tools
            .insert(position, ListedTool { name: Arc::from(ASK_AGENT), definition: self.definition.clone() });
        let extended = Arc::new(Catalogue { version: inner.version, tools });
        if catalogues.len() >= MAX_CACHED_CATALOGUES {
            catalogues.remove(0);
        }
        catalogues.push((inner, Arc::clone(&extended)));
        extended
    }

    fn changed(&self, seen_version: u64) -> BoxFuture<'_, u64> {
        self.inner.changed(seen_version)
    }

    fn describe(&self, name: &str, client: &ClientInfo) -> Option<RawJson> {
        let inner = self.inner.describe(name, client);
        inner.or_else(|| (name == ASK_AGENT && !self.is_shadowed()).then(|| self.definition.clone()))
    }

    fn instructions(&self, client: &ClientInfo) -> Option<String> {
        self.inner.instructions(client)
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        if call.request.tool_name == ASK_AGENT && !self.is_shadowed() {
            return Box::pin(self.ask_agent.call(call));
        }
        self.inner.call(call)
    }
}
