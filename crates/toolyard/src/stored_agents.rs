//! The agents in the store, as this process read them last.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};
use toolyard_core::{AgentDefinitions, RawJson, StorageError};

use crate::settings::AgentSettings;

/// What other processes changed is seen after this time at the latest.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Agents are used as they were if the store takes longer.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Agents by name.
type AgentMap = BTreeMap<String, AgentSettings>;

/// Agents in a store that processes share.
pub(crate) struct StoredAgents {
    store: Arc<dyn AgentDefinitions>,
    current: ArcSwap<AgentMap>,
    /// When the store was read last; held while it is read.
    read_at: Mutex<Option<Instant>>,
}

impl StoredAgents {
    pub(crate) fn new(store: Arc<dyn AgentDefinitions>) -> Self {
        Self { store, current: ArcSwap::default(), read_at: Mutex::default() }
    }

    /// The agents as they were read last.
    pub(crate) fn current(&self) -> Arc<AgentMap> {
        self.current.load_full()
    }

    /// Reads the agents, unless that was done a short time ago. If the store fails, they stay as they are.
    pub(crate) async fn refresh(&self) {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|read_at| read_at.elapsed() < MAX_AGE) {
            return;
        }
        match timeout(READ_TIMEOUT, self.read()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "failed to read the stored agents"),
            Err(_) => tracing::warn!("failed to read the stored agents in time"),
        }
        // Also after a failure, so that requests do not wait for the store one after the other.
        *read_at = Some(Instant::now());
    }

    /// Reads the agents.
    pub(crate) async fn refresh_now(&self) -> Result<(), StorageError> {
        let mut read_at = self.read_at.lock().await;
        self.read().await?;
        *read_at = Some(Instant::now());
        Ok(())
    }

    async fn read(&self) -> Result<(), StorageError> {
        let mut agents = AgentMap::new();
        for stored in self.store.stored_agents().await? {
            match stored.config.read() {
                Ok(settings) => drop(agents.insert(stored.name, settings)),
                // Of a newer version, perhaps.
                Err(error) => tracing::warn!(agent = stored.name, %error, "a stored agent is not usable"),
            }
        }
        self.current.store(Arc::new(agents));
        Ok(())
    }

    pub(crate) async fn add(
        &self,
        name: &str,
        settings: &AgentSettings,
        by: &str,
    ) -> Result<bool, StorageError> {
        let is_added = self.store.add_agent(name, &to_json(settings)?, by).await?;
        self.refresh_now().await?;
        Ok(is_added)
    }

    pub(crate) async fn replace(
        &self,
        name: &str,
        settings: &AgentSettings,
        by: &str,
    ) -> Result<bool, StorageError> {
        let is_replaced = self.store.replace_agent(name, &to_json(settings)?, by).await?;
        self.refresh_now().await?;
        Ok(is_replaced)
    }

    pub(crate) async fn remove(&self, name: &str, by: &str) -> Result<bool, StorageError> {
        let is_removed = self.store.remove_agent(name, by).await?;
        self.refresh_now().await?;
        Ok(is_removed)
    }
}

fn to_json(settings: &AgentSettings) -> Result<RawJson, StorageError> {
    RawJson::from_serialize(settings).map_err(StorageError::new)
}

impl fmt::Debug for StoredAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredAgents").field("current", &self.current).finish_non_exhaustive()
    }
}
