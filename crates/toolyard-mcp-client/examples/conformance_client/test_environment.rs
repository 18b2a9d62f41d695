//! The registrar and the environment of the client.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{SourceId, SourceInfo, Tool};
use toolyard_mcp_client::{
    Authorizer, HostEnvironment, InstanceOwner, ToolRegistrar, config::McpServerConfig,
};

/// The tools of the server under test, by name.
#[derive(Default)]
pub(crate) struct RegisteredTools(Mutex<BTreeMap<String, Arc<dyn Tool>>>);

impl RegisteredTools {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.lock().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }
}

impl ToolRegistrar for RegisteredTools {
    fn replace(&self, _source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        let tools = tools.into_iter().map(|tool| (tool.spec().name.to_string(), tool)).collect();
        *self.0.lock() = tools;
    }

    fn remove(&self, _source: &SourceId) {
        self.0.lock().clear();
    }
}

/// An environment without variables.
pub(crate) struct TestEnvironment {
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
}

impl HostEnvironment for TestEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn authorizer(
        &self,
        _server: &McpServerConfig,
        _caller: Option<&Arc<InstanceOwner>>,
    ) -> Option<Arc<dyn Authorizer>> {
        self.authorizer.clone()
    }
}
