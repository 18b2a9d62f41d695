//! The house the client lives in: it remembers what it is told for as long as it runs, and takes tools by their names.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::{
    BoxFuture, ServerRecord, Servers, SourceId, SourceInfo, Tool, ToolDefinition, TrustDecision,
};
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

/// A memory that lasts as long as the process.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Vec<ToolDefinition>>);

impl Servers for Memory {
    fn put_server<'a>(&'a self, _server: &'a ServerRecord) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn forget_server<'a>(&'a self, _id: &'a SourceId) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Ok(false) })
    }

    fn put_definition<'a>(
        &'a self,
        _server: &'a SourceId,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(definition.clone());
        Box::pin(async { Ok(()) })
    }

    fn definitions<'a>(
        &'a self,
        _server: &'a SourceId,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, String>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async { Ok(known) })
    }

    fn put_trust<'a>(&'a self, _decision: &'a TrustDecision) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn remove_trust<'a>(&'a self, _kind: &'a str, _subject: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async { Ok(false) })
    }

    fn trusted<'a>(&'a self, _kind: &'a str) -> BoxFuture<'a, Result<Vec<TrustDecision>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
