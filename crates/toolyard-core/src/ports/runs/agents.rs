//! Agents that are added, changed and removed while processes run, in a store that they share.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, RawJson, StorageError, unix_millis};

/// Where an agent is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentOrigin {
    /// In the settings file, or by the application; it changes with them.
    Settings,
    /// In the store; it can be changed while processes run.
    Store,
    /// The default agent, which exists without a definition.
    BuiltIn,
}

/// A stored agent.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAgent {
    /// The name.
    pub name: String,
    /// Its configuration: the fields of `[agents.NAME]`.
    pub config: RawJson,
    /// When it was added or last changed, in milliseconds since 1970.
    pub updated_at: i64,
}

/// Stores agents. `by` says who makes a change, for the audit log.
pub trait AgentDefinitions: Send + Sync {
    /// All agents, by name.
    fn stored_agents(&self) -> BoxFuture<'_, Result<Vec<StoredAgent>, StorageError>>;

    /// Adds an agent. Returns false if there is one of this name.
    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// Replaces the configuration of an agent. Returns false if there is none of this name.
    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// Removes an agent. Returns false if there is none of this name.
    fn remove_agent<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>>;
}

/// Agents in memory, for embedders without a durable store.
#[derive(Debug, Default)]
pub struct MemoryAgentDefinitions(Mutex<BTreeMap<String, StoredAgent>>);

impl MemoryAgentDefinitions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredAgent>> {
        self.0.lock()
    }

    /// Stores a configuration, if there is an agent of this name or there is none, as expected.
    fn put(&self, name: &str, config: &RawJson, must_exist: bool) -> bool {
        let mut agents = self.lock();
        let is_expected = agents.contains_key(name) == must_exist;
        if is_expected {
            let (name, config) = (name.to_owned(), config.clone());
            agents.insert(name.clone(), StoredAgent { name, config, updated_at: unix_millis() });
        }
        is_expected
    }
}

impl AgentDefinitions for MemoryAgentDefinitions {
    fn stored_agents(&self) -> BoxFuture<'_, Result<Vec<StoredAgent>, StorageError>> {
        let agents = self.lock().values().cloned().collect();
        Box::pin(std::future::ready(Ok(agents)))
    }

    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let must_exist = false;
        Box::pin(std::future::ready(Ok(self.put(name, config, must_exist))))
    }

    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let must_exist = true;
        Box::pin(std::future::ready(Ok(self.put(name, config, must_exist))))
    }

    fn remove_agent<'a>(&'a self, name: &'a str, _: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        Box::pin(std::future::ready(Ok(self.lock().remove(name).is_some())))
    }
}
