//! All configured servers: known without being started, started when needed, replaced while others go on.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt as _, future::join_all, stream};
use toolyard_core::SourceId;

use super::{
    ConnectError, ServerState, Session,
    host::Host,
    server::{Server, Wanted},
};
use crate::config::McpServerConfig;

/// How many servers are started at the same time when many are wanted at once.
const STARTS_AT_ONCE: usize = 8;

/// All configured servers.
#[derive(Debug)]
pub struct McpManager {
    host: Arc<Host>,
    servers: Mutex<BTreeMap<SourceId, Arc<Server>>>,
    /// Configurations are taken over one after the other.
    applying: tokio::sync::Mutex<()>,
}

/// What a new configuration changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Servers that are new.
    pub added: Vec<SourceId>,
    /// Servers that are reached or treated differently.
    pub changed: Vec<SourceId>,
    /// Servers that are gone.
    pub removed: Vec<SourceId>,
}

impl McpManager {
    /// A manager without servers.
    pub fn new(host: Host) -> Self {
        Self { host: Arc::new(host), servers: Mutex::default(), applying: tokio::sync::Mutex::default() }
    }

    /// Takes over a configuration. Nothing is started: tools come from what is remembered. Servers that did not change go
    /// on undisturbed, calls under way included.
    pub async fn apply(&self, configs: Vec<McpServerConfig>) -> Result<Applied, String> {
        let _one_at_a_time = self.applying.lock().await;
        let mut known = self.host.recall(&configs).await?;
        let mut applied = Applied::default();
        let mut wanted: BTreeMap<SourceId, McpServerConfig> =
            configs.into_iter().map(|config| (config.id.clone(), config)).collect();
        let mut leaving = Vec::new();
        self.all().retain(|id, server| match wanted.get(id) {
            Some(config) if config == server.config() => {
                wanted.remove(id);
                true
            }
            replaced => {
                let list = if replaced.is_some() { &mut applied.changed } else { &mut applied.removed };
                list.push(id.clone());
                leaving.push(Arc::clone(server));
                false
            }
        });
        join_all(leaving.iter().map(Server::retire)).await;
        for (id, config) in wanted {
            if !applied.changed.contains(&id) {
                applied.added.push(id.clone());
            }
            let server = Server::new(config, Arc::clone(&self.host), known.remove(&id));
            self.all().insert(id, server);
        }
        Ok(applied)
    }

    /// All servers, by id.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.all().values().cloned().collect()
    }

    /// One server.
    pub fn server(&self, id: &str) -> Option<Arc<Server>> {
        self.all().get(id).cloned()
    }

    /// The seeds' `is_server_connected`.
    pub fn is_connected(&self, id: &str) -> bool {
        self.server(id).is_some_and(|server| server.live().is_some())
    }

    /// The seeds' `connect_server_from_config`: the live session of a server, which is started if need be.
    pub async fn connect(&self, id: &str) -> Result<Arc<Session>, ConnectError> {
        let unknown = || ConnectError::Configuration(format!("no server is called `{id}`"));
        self.server(id).ok_or_else(unknown)?.session(Wanted::Anyway).await
    }

    /// Starts every server whose tools nobody knows yet, so that they are known from now on. Each failure concerns its own
    /// server only.
    pub async fn discover(&self) -> Vec<(SourceId, Result<Arc<Session>, ConnectError>)> {
        let unseen = self.servers().into_iter().filter(|server| server.state() == ServerState::Configured);
        let starts = unseen.map(|server| async move {
            let outcome = server.session(Wanted::Anyway).await;
            (server.config().id.clone(), outcome)
        });
        stream::iter(starts).buffer_unordered(STARTS_AT_ONCE).collect().await
    }

    /// Stops all servers and waits until nothing of them is left.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut *self.all());
        join_all(servers.values().map(Server::retire)).await;
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SourceId, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
