//! The house the client lives in: it takes tools by their names, and has someone who gets tokens.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::{SourceId, SourceInfo, Tool};
use toolyard_mcp::{
    client::{Authorizer, Registrar, Surroundings},
    config::McpServerConfig,
};

/// The tools of the server under test, as whoever routes calls has them.
#[derive(Default)]
pub(crate) struct Tools(Mutex<BTreeMap<String, Arc<dyn Tool>>>);

impl Tools {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Registrar for Tools {
    fn replace(&self, _source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        let tools = tools.into_iter().map(|tool| (tool.spec().name.to_string(), tool)).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    fn remove(&self, _source: &SourceId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What only the house knows.
pub(crate) struct House {
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
}

impl Surroundings for House {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn authorizer(&self, _server: &McpServerConfig) -> Option<Arc<dyn Authorizer>> {
        self.authorizer.clone()
    }
}
