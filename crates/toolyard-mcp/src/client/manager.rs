//! All configured servers: known without being started, started when needed, replaced while others go on.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt as _, future::join_all, stream};
use tokio::sync::broadcast;
use toolyard_core::SourceId;

use super::{
    ConnectError, ServerEvent, ServerState, Session,
    common::Common,
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
    common: Arc<Common>,
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
        Self {
            host: Arc::new(host),
            common: Arc::default(),
            servers: Mutex::default(),
            applying: tokio::sync::Mutex::default(),
        }
    }

    /// Servers that are down are tried again for as long as this lives, and not only while somebody still wants them.
    pub fn keep_reviving(&self) {
        self.common.keep_reviving();
    }

    /// What changes from now on of what servers offer besides tools.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.common.events()
    }

    /// From which level on servers of the legacy era write log messages, those that start later included.
    pub async fn set_log_level(&self, level: &str) {
        self.common.set_log_level(level);
        join_all(self.servers().iter().filter_map(|server| server.live()).map(|session| async move {
            session.set_log_level(level).await;
        }))
        .await;
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
            let server =
                Server::new(config, Arc::clone(&self.host), Arc::clone(&self.common), known.remove(&id));
            self.all().insert(id, server);
        }
        for id in applied.added.iter().chain(&applied.changed).chain(&applied.removed) {
            self.common.tell(ServerEvent::PromptsChanged(id.clone()));
            self.common.tell(ServerEvent::ResourcesChanged(id.clone()));
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

    /// The same for these servers only, those included that somebody is starting already. What each comes to is in its state.
    pub async fn get_to_know(&self, wanted: impl Fn(&SourceId) -> bool) {
        let unknown = self
            .servers()
            .into_iter()
            .filter(|server| wanted(&server.config().id) && server.config().enabled && !server.is_known());
        let starts = unknown.map(|server| async move { drop(server.session(Wanted::Anyway).await) });
        stream::iter(starts).buffer_unordered(STARTS_AT_ONCE).collect::<()>().await;
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
