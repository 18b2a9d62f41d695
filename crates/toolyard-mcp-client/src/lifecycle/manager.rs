//! All configured servers: known without being started, started on demand, and reconfigured one by one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all, stream};
use parking_lot::Mutex;
use tokio::{sync::broadcast, time::timeout};
use toolyard_core::SourceId;

use crate::{
    config::McpServerConfig,
    lifecycle::{
        connect_error::ConnectError,
        exclusions::Exclusions,
        host::Host,
        isolation::{instances::PrivateInstances, pool::IsolationLimits},
        server::ManagedServer,
        shared::{ManagerShared, ServerEvent},
        state::{ServerState, StartReason},
    },
    pinning::{CacheError, CachedServer, PinnedSource, ServerCache},
    session::handle::Session,
};

/// Servers that are started at a time when many are requested at once.
const MAX_CONCURRENT_STARTS: usize = 8;
/// Servers whose tools are registered in one change; while a server waits for a keychain, the tools of earlier ones can be used.
const MAX_SERVERS_PER_CHANGE: usize = 500;
/// How long a server that is not configured any more may take to finish its calls.
const MAX_RETIREMENT: Duration = Duration::from_mins(5);

/// All configured servers.
#[derive(Debug)]
pub struct McpManager {
    pub(super) host: Arc<Host>,
    pub(super) shared: Arc<ManagerShared>,
    private: Arc<PrivateInstances>,
    servers: Mutex<BTreeMap<SourceId, Arc<ManagedServer>>>,
    /// Servers that are not configured any more and finish their calls.
    retiring: Arc<Mutex<Vec<Arc<ManagedServer>>>>,
    /// Serializes changes of the configuration.
    pub(super) apply_lock: tokio::sync::Mutex<()>,
}

/// What a new configuration changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// New servers.
    pub added: Vec<SourceId>,
    /// Servers with a changed configuration.
    pub changed: Vec<SourceId>,
    /// Removed servers.
    pub removed: Vec<SourceId>,
}

impl McpManager {
    /// A manager without servers.
    pub fn new(host: Host) -> Self {
        Self {
            host: Arc::new(host),
            shared: Arc::default(),
            private: Arc::default(),
            servers: Mutex::default(),
            retiring: Arc::default(),
            apply_lock: tokio::sync::Mutex::default(),
        }
    }

    /// The cache of tool lists and approvals, which other sources of tools share.
    pub fn cache(&self) -> &ServerCache {
        &self.host.cache
    }

    /// The number of private instances of all servers, and of those that were stopped to make room since the start.
    pub fn private_instances(&self) -> (usize, u64) {
        self.private.counts()
    }

    /// Limits the instances of servers that belong to one caller each.
    pub fn set_isolation_limits(&self, limits: IsolationLimits) {
        self.private.set_limits(limits);
    }

    /// Never gives up reconnecting servers that are down. Otherwise that ends ten minutes after their last use.
    pub fn keep_reconnecting(&self) {
        self.shared.keeps_reconnecting.store(true, Ordering::Release);
    }

    /// Changes of prompts, resources and skills from now on.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.shared.events.subscribe()
    }

    /// Sets the minimum level of the log messages that legacy servers send, for running and future sessions.
    pub async fn set_log_level(&self, level: &str) {
        *self.shared.log_level.lock() = Some(level.to_owned());
        let shared = self.servers().into_iter().filter_map(|server| server.live_session());
        let sessions = shared.chain(self.private.live_sessions());
        join_all(sessions.map(|session| async move { session.set_log_level(level).await })).await;
    }

    /// Applies a configuration. Nothing is started: tools come from the cache. Servers that did not change are not
    /// disturbed; those that changed or are gone finish their calls in the background before they are stopped.
    pub async fn apply(&self, configs: Vec<McpServerConfig>) -> Result<ConfigChanges, CacheError> {
        let _guard = self.apply_lock.lock().await;
        let unknown: Vec<PinnedSource> = {
            let servers = self.servers.lock();
            let is_known = |config: &McpServerConfig| {
                servers.get(&config.id).is_some_and(|known| known.config() == config)
            };
            configs.iter().filter(|config| !is_known(config)).map(McpServerConfig::pinned_source).collect()
        };
        let cached = self.host.cache.load(&unknown).await?;
        let exclusions = Exclusions::of(&configs);
        let has_same_exclusions = {
            let mut known = self.shared.exclusions.lock();
            let is_same = *known == exclusions;
            *known = exclusions;
            is_same
        };
        let mut changes = ConfigChanges::default();
        let mut new_configs: BTreeMap<SourceId, McpServerConfig> =
            configs.into_iter().map(|config| (config.id.clone(), config)).collect();
        let mut retired = Vec::new();
        self.servers.lock().retain(|id, server| match new_configs.get(id) {
            Some(config) if config == server.config() => {
                new_configs.remove(id);
                true
            }
            replacement => {
                let list = if replacement.is_some() { &mut changes.changed } else { &mut changes.removed };
                list.push(id.clone());
                retired.push(Arc::clone(server));
                false
            }
        });
        if !has_same_exclusions {
            // Names may have been freed or taken. Most servers yield none, and new ones are registered with that.
            let yielding = self.servers().into_iter().filter(|server| server.yields_names());
            yielding.for_each(|server| server.register_tools());
        }
        // The start of a server that is gone is cancelled; that of a changed one has callers that want its result.
        let is_used = |server: &Arc<ManagedServer>| {
            server.has_any_calls() || (server.is_starting() && changes.changed.contains(&server.config().id))
        };
        let (used, unused): (Vec<_>, Vec<_>) = retired.into_iter().partition(is_used);
        used.into_iter().for_each(|server| self.retire_after_calls(server));
        join_all(unused.iter().map(ManagedServer::retire)).await;
        changes.removed.iter().for_each(|id| self.host.cache.release_names(id));
        let changed: HashSet<&SourceId> = changes.changed.iter().collect();
        changes.added = new_configs.keys().filter(|id| !changed.contains(id)).cloned().collect();
        self.add_servers(new_configs, cached).await;
        for id in changes.added.iter().chain(&changes.changed).chain(&changes.removed) {
            self.shared.publish(ServerEvent::PromptsChanged(id.clone()));
            self.shared.publish(ServerEvent::ResourcesChanged(id.clone()));
        }
        Ok(changes)
    }

    /// Adds servers and registers their tools, those of many servers in one change.
    async fn add_servers(
        &self,
        configs: BTreeMap<SourceId, McpServerConfig>,
        mut cached: HashMap<SourceId, CachedServer>,
    ) {
        let mut configs = configs.into_iter().peekable();
        while configs.peek().is_some() {
            let part: Vec<NewServer> = configs
                .by_ref()
                .take(MAX_SERVERS_PER_CHANGE)
                .map(|(id, config)| NewServer { cached: cached.remove(&id), id, config })
                .collect();
            let (host, shared) = (Arc::clone(&self.host), Arc::clone(&self.shared));
            let private = Arc::clone(&self.private);
            // Variables are resolved to know what to redact, which may wait for a keychain.
            let building = tokio::task::spawn_blocking(move || {
                let build = |server: NewServer| server.build(&host, &shared, &private);
                let servers: Vec<(SourceId, Arc<ManagedServer>)> =
                    part.into_iter().filter_map(build).collect();
                // Nobody can retire them yet.
                let active = servers.iter().filter(|(_, server)| server.state.lock().lifecycle.is_active());
                host.registrar.replace_all(active.map(|(_, server)| server.source_tools()).collect());
                servers
            });
            match building.await {
                Ok(servers) => self.servers.lock().extend(servers),
                Err(error) => tracing::error!(%error, "failed to set up new servers"),
            }
        }
    }

    /// Removes the tools of a server, and stops it once its calls have finished.
    fn retire_after_calls(&self, server: Arc<ManagedServer>) {
        server.begin_retirement();
        let retiring = Arc::clone(&self.retiring);
        retiring.lock().push(Arc::clone(&server));
        tokio::spawn(async move {
            // Calls end by their own deadlines; the limit is for those that keep reporting progress.
            let _ = timeout(MAX_RETIREMENT, server.wait_until_unused()).await;
            server.stop().await;
            retiring.lock().retain(|other| !Arc::ptr_eq(other, &server));
        });
    }

    /// All servers, by id.
    pub fn servers(&self) -> Vec<Arc<ManagedServer>> {
        self.servers.lock().values().cloned().collect()
    }

    /// One server.
    pub fn server(&self, id: &str) -> Option<Arc<ManagedServer>> {
        self.servers.lock().get(id).cloned()
    }

    /// Whether a server has a live session (`is_server_connected` in the specification).
    pub fn is_connected(&self, id: &str) -> bool {
        self.server(id).is_some_and(|server| server.live_session().is_some())
    }

    /// The live session of a server, which is started if necessary (`connect_server_from_config` in the specification).
    pub async fn connect(&self, id: &str) -> Result<Arc<Session>, ConnectError> {
        let server = self.server(id).ok_or_else(|| ConnectError::UnknownServer(id.to_owned()))?;
        server.session(StartReason::Explicit, None).await
    }

    /// Gives the bare names of these approved tools to a server, by decision of the operator: calls by name alone reach it,
    /// and no longer the server that had the name.
    pub async fn give_names(&self, id: &str, tools: &[String]) -> Result<(), CacheError> {
        let _guard = self.apply_lock.lock().await;
        let servers = self.servers();
        let configs: Vec<McpServerConfig> = servers.iter().map(|server| server.config().clone()).collect();
        let changed = self.host.cache.give_names(&pinned_sources(&configs), &id.into(), tools).await?;
        for (id, approvals) in changed {
            if let Some(server) = self.server(id.as_str()) {
                server.set_approvals(approvals).await;
                server.publish_record_change();
            }
        }
        Ok(())
    }

    /// Starts every server whose tools are unknown, or waits for the process that does. Failures are isolated per server.
    pub async fn discover(&self) -> Vec<(SourceId, Result<(), ConnectError>)> {
        let unknown = self.servers().into_iter().filter(|server| server.state() == ServerState::Configured);
        let starts = unknown.map(|server| async move {
            let outcome = server.learn_tools(StartReason::Explicit).await;
            (server.config().id.clone(), outcome)
        });
        stream::iter(starts).buffer_unordered(MAX_CONCURRENT_STARTS).collect().await
    }

    /// Starts every selected server whose tools are unknown and waits for starts that are under way. The outcome is in the
    /// state of each server.
    pub async fn discover_matching(&self, is_selected: impl Fn(&SourceId) -> bool) {
        let unknown = self.servers().into_iter().filter(|server| {
            let config = server.config();
            is_selected(&config.id) && config.enabled && !server.has_known_tools()
        });
        let starts =
            unknown.map(|server| async move { drop(server.learn_tools(StartReason::Explicit).await) });
        stream::iter(starts).buffer_unordered(MAX_CONCURRENT_STARTS).collect::<()>().await;
    }

    /// Stops all servers and waits until their processes and connections have ended.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut *self.servers.lock());
        let retiring = std::mem::take(&mut *self.retiring.lock());
        join_all(servers.values().chain(&retiring).map(ManagedServer::retire)).await;
    }
}

/// A server that is set up.
struct NewServer {
    id: SourceId,
    config: McpServerConfig,
    cached: Option<CachedServer>,
}

impl NewServer {
    /// None if that panics, as code of the embedder or of a keychain may: the other servers are not affected.
    fn build(
        self,
        host: &Arc<Host>,
        shared: &Arc<ManagerShared>,
        private: &Arc<PrivateInstances>,
    ) -> Option<(SourceId, Arc<ManagedServer>)> {
        let Self { id, config, cached } = self;
        let (host, shared, private) = (Arc::clone(host), Arc::clone(shared), Arc::clone(private));
        let build = AssertUnwindSafe(|| ManagedServer::new(config, host, shared, private, cached));
        match catch_unwind(build) {
            Ok(server) => Some((id, server)),
            Err(_panic) => {
                tracing::error!(server = %id, "setting up the server panicked; the server is not available until it is configured again");
                None
            }
        }
    }
}

fn pinned_sources(configs: &[McpServerConfig]) -> Vec<PinnedSource> {
    configs.iter().map(McpServerConfig::pinned_source).collect()
}
