//! What a door serves, and `ask_agent` beside it. Agents themselves see the hub, and so never this tool.

use std::sync::{Arc, Mutex, PoisonError};

use toolyard_core::{
    BoxFuture, Catalogue, OfferedTool, RawJson, ServiceCall, ToolError, ToolOutput, ToolService, Viewer,
};

use super::ask_agent::{ASK_AGENT, AskAgent};

/// So many catalogues are remembered: all tools, and those that find the others.
const REMEMBERED: usize = 4;

/// A service and `ask_agent`.
#[derive(Debug)]
pub(super) struct WithAgents<S> {
    inner: S,
    ask: AskAgent,
    definition: RawJson,
    /// Catalogues of the service, and the same with one tool more.
    written: Mutex<Vec<(Arc<Catalogue>, Arc<Catalogue>)>>,
}

impl<S: ToolService> WithAgents<S> {
    pub(super) fn new(inner: S, ask: AskAgent) -> Self {
        Self { inner, definition: ask.definition(), ask, written: Mutex::default() }
    }

    /// A tool of somebody else's that has the name keeps it.
    fn is_taken(&self) -> bool {
        self.inner.describe(ASK_AGENT).is_some()
    }
}

impl<S: ToolService> ToolService for WithAgents<S> {
    fn catalogue(&self, viewer: &Viewer) -> Arc<Catalogue> {
        let inner = self.inner.catalogue(viewer);
        if self.is_taken() {
            return inner;
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ours)) = written.iter().find(|(known, _)| Arc::ptr_eq(known, &inner)) {
            return Arc::clone(ours);
        }
        let mut tools = inner.tools.clone();
        let place = tools.partition_point(|tool| &*tool.name < ASK_AGENT);
        tools.insert(place, OfferedTool { name: Arc::from(ASK_AGENT), definition: self.definition.clone() });
        let ours = Arc::new(Catalogue { version: inner.version, tools });
        if written.len() >= REMEMBERED {
            written.remove(0);
        }
        written.push((inner, Arc::clone(&ours)));
        ours
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, u64> {
        self.inner.changed(seen)
    }

    fn describe(&self, name: &str) -> Option<RawJson> {
        let other = self.inner.describe(name);
        other.or_else(|| (name == ASK_AGENT).then(|| self.definition.clone()))
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        if call.request.tool_name == ASK_AGENT && !self.is_taken() {
            return Box::pin(self.ask.call(call));
        }
        self.inner.call(call)
    }
}
