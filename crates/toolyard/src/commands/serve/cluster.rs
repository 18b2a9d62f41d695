//! A gateway that is one of several: connects to the others by NATS, and shares sessions with stateful servers.

use std::{
    str::FromStr as _,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use toolyard::{
    ToolWrapper, Toolyard,
    settings::{ClusterCredentials, ClusterSettings, DEFAULT_CLUSTER_PREFIX, SettingsError},
};
use toolyard_cluster::ownership::{
    OWNED_CALL_SERVICE, OwnedCallService, OwnedTools, OwnershipSettings, SESSION_PREFIX, SessionOwners,
};
use toolyard_core::{ContentHash, PeerService, Peers, SourceId, SourceInfo, Tool, WorkerNetwork};
use toolyard_gateway::{AgentService, ClusterProvider, RUN_PEER_SERVICE, cluster_owner};
use toolyard_mcp_client::McpManager;
use toolyard_mcp_server::{McpServer, PEER_SERVICE_NAME};
use toolyard_nats::{NatsConnectError, NatsConnection, NatsCredentials, NatsPeers, NatsSettings};
use toolyard_store::Engine;

use super::{catalogue::OwnedSessions, cluster_status::ClusterStatus, workers::WorkerSources};
use crate::{
    commands::setup::{process_name, process_number, process_owner},
    config::CliContext,
    error::CliError,
};

/// How long leaving the cluster may take; what is left ends with its lease.
const MAX_LEAVE: Duration = Duration::from_secs(10);

/// The cluster that this gateway belongs to.
pub(super) struct Cluster {
    peers: Arc<NatsPeers>,
    owners: Arc<SessionOwners>,
    tools: Arc<OwnedTools>,
    servers: Arc<OnceLock<Weak<McpManager>>>,
    workers: OnceLock<WorkerSources>,
}

impl Cluster {
    /// Joins the cluster of the settings; none without `[cluster]`.
    pub(super) async fn join(context: &CliContext) -> Result<Option<Self>, CliError> {
        let Some(settings) = &context.settings.cluster else { return Ok(None) };
        let store = context.store.as_ref().filter(|store| store.engine() == Engine::Postgres);
        let Some(store) = store else {
            return Err(CliError::failed("[cluster] needs a PostgreSQL store that all gateways share")
                .with_hint("set `store = \"postgres://USER:PASSWORD@HOST/DATABASE\"`, or remove [cluster]"));
        };
        let connection = connect(settings, context).await?;
        let peers = NatsPeers::join(connection, process_number()?);
        let peers = peers.await.map_err(|error| connect_error(&error))?;
        let peers = Arc::new(peers);
        let servers: Arc<OnceLock<Weak<McpManager>>> = Arc::default();
        let (servers_to_end, servers_to_ask) = (Arc::clone(&servers), Arc::clone(&servers));
        let lease = settings.lease().map_err(|error| CliError::usage(error.to_string()))?;
        let limits = OwnershipSettings { lease, ..OwnershipSettings::default() };
        let owners = SessionOwners::new(
            Arc::clone(&peers) as _,
            Arc::new(store.clone()),
            limits,
            move |session| Box::pin(end_session(Arc::clone(&servers_to_end), session.to_owned())),
            move |session| Box::pin(has_session_state(Arc::clone(&servers_to_ask), session.to_owned())),
        );
        let tools = Arc::new(OwnedTools::default());
        let service = OwnedCallService::new(Arc::clone(&owners), Arc::clone(&tools));
        peers.register(OWNED_CALL_SERVICE, Arc::new(service));
        Ok(Some(Self { peers, owners, tools, servers, workers: OnceLock::new() }))
    }

    /// Sends calls of stateful servers to the owners of their sessions.
    pub(super) fn tool_wrapper(&self) -> Arc<dyn ToolWrapper> {
        Arc::new(ClusterTools { owners: Arc::clone(&self.owners), tools: Arc::clone(&self.tools) })
    }

    /// Sets whose sessions are ended when another gateway owns them.
    pub(super) fn set_servers(&self, toolyard: &Toolyard) {
        if let Some(servers) = toolyard.servers() {
            // Set once, right after the servers were made.
            let _ = self.servers.set(Arc::downgrade(servers));
        }
    }

    /// Serves the tools of the groups of workers that the settings name.
    pub(super) async fn use_workers(
        &self,
        toolyard: &Toolyard,
        settings: &ClusterSettings,
    ) -> Result<(), CliError> {
        let Some(servers) = toolyard.servers().filter(|_| !settings.workers.is_empty()) else {
            return Ok(());
        };
        let network = Arc::clone(&self.peers) as Arc<dyn WorkerNetwork>;
        let workers = WorkerSources::load(
            Arc::clone(toolyard.hub()),
            servers.cache().clone(),
            network,
            settings.clone(),
        )
        .await?;
        self.peers.watch_workers(workers.observer()).await.map_err(|error| connect_error(&error))?;
        // Set once, right after the servers were made.
        let _ = self.workers.set(workers);
        Ok(())
    }

    /// Tells whether this gateway owns the session that callers of a server share.
    pub(super) fn owned_sessions(&self) -> OwnedSessions {
        let owners = Arc::clone(&self.owners);
        Arc::new(move |server: &SourceId| owners.owns(&format!("{SESSION_PREFIX}{server}")))
    }

    /// Sets what this gateway does for the others under a name.
    pub(super) fn register(&self, name: &str, service: Arc<dyn PeerService>) {
        self.peers.register(name, service);
    }

    pub(super) fn peers(&self) -> Arc<dyn Peers> {
        Arc::clone(&self.peers) as _
    }

    /// Lets other gateways continue the calls of this server's clients, and the other way round.
    pub(super) fn serve(&self, server: &Arc<McpServer>) {
        self.peers.register(PEER_SERVICE_NAME, server.peer_service());
    }

    /// Lets other gateways take runs that this one has no room for, follow and decide on its runs, and the other way round.
    pub(super) fn serve_runs(&self, agents: &AgentService) {
        self.peers.register(RUN_PEER_SERVICE, agents.peer_service());
    }

    /// What the HTTP API and metrics show of the cluster.
    pub(super) fn status(&self) -> Arc<dyn ClusterProvider> {
        let (peers, owners) = (Arc::clone(&self.peers), Arc::clone(&self.owners));
        Arc::new(ClusterStatus::new(peers, owners, self.workers.get().cloned()))
    }

    /// The name under which this gateway claims runs.
    pub(super) fn run_owner(&self) -> String {
        cluster_owner(&process_owner(), self.peers.own_number())
    }

    /// Renews the leases of sessions, and follows what workers offer. Never completes.
    pub(super) async fn keep(&self) {
        let follow_workers = async {
            match self.workers.get() {
                Some(workers) => workers.follow().await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(Arc::clone(&self.owners).keep(), follow_workers);
    }

    /// Lets other gateways take the sessions that this one would get from now on, and waits for calls that it makes for others.
    pub(super) async fn drain(&self, limit: Duration) {
        self.peers.leave().await;
        self.owners.drain(limit).await;
    }

    /// Leaves the cluster, after the last call.
    pub(super) async fn leave(&self) {
        let leaving = async {
            self.owners.release_all().await;
            self.peers.connection().close().await;
        };
        if tokio::time::timeout(MAX_LEAVE, leaving).await.is_err() {
            tracing::warn!("leaving the cluster took too long; the leases of sessions end by themselves");
        }
    }
}

/// Waits for ever without a cluster.
pub(super) async fn keep(cluster: Option<&Cluster>) {
    match cluster {
        Some(cluster) => cluster.keep().await,
        None => std::future::pending().await,
    }
}

/// Connects to the NATS of the settings.
pub(in crate::commands) async fn connect(
    settings: &ClusterSettings,
    context: &CliContext,
) -> Result<NatsConnection, CliError> {
    let nats = nats_settings(settings, context).map_err(|error| CliError::usage(error.to_string()))?;
    NatsConnection::connect(&nats, &process_name()).await.map_err(|error| connect_error(&error))
}

fn nats_settings(settings: &ClusterSettings, context: &CliContext) -> Result<NatsSettings, SettingsError> {
    let (servers, credentials) = settings.servers(|name| std::env::var(name).ok())?;
    let folder = context.operator_file.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let file = |path: &std::path::PathBuf| folder.join(path);
    let mut nats = NatsSettings::new(servers);
    nats.prefix = settings.prefix.clone().unwrap_or_else(|| DEFAULT_CLUSTER_PREFIX.to_owned());
    nats.ca_file = settings.ca_file.as_ref().map(file);
    let certificate = settings.client_certificate()?;
    nats.client_certificate = certificate.map(|(certificate, key)| (file(&certificate), file(&key)));
    nats.credentials = credentials.map(|credentials| match credentials {
        ClusterCredentials::File(path) => NatsCredentials::File(file(&path)),
        ClusterCredentials::Password(user, password) => NatsCredentials::Password { user, password },
        ClusterCredentials::Token(token) => NatsCredentials::Token(token),
    });
    Ok(nats)
}

pub(in crate::commands) fn connect_error(error: &NatsConnectError) -> CliError {
    let hint = match error {
        NatsConnectError::Settings(_) => "correct [cluster] in toolyard.toml",
        NatsConnectError::Credentials { .. } => {
            "[cluster] creds names the file; relative paths start at the settings file"
        }
        NatsConnectError::Unauthorized { .. } => {
            "check `creds`, or the user or token in `nats`, of [cluster]"
        }
        NatsConnectError::Unreachable { .. } => "start NATS, or correct [cluster] nats",
    };
    CliError::failed(error.to_string()).with_hint(hint)
}

/// Ends what this gateway has of a session that another one owns.
async fn end_session(servers: Arc<OnceLock<Weak<McpManager>>>, session: String) {
    let Some(manager) = servers.get().and_then(Weak::upgrade) else { return };
    let Some(rest) = session.strip_prefix(SESSION_PREFIX) else { return };
    match rest.split_once('/') {
        Some((server, owner)) => {
            if let (Some(server), Ok(owner)) = (manager.server(server), ContentHash::from_str(owner)) {
                server.stop_instances_of(&owner).await;
            }
        }
        None => {
            if let Some(server) = manager.server(rest) {
                server.stop_shared().await;
            }
        }
    }
}

/// Whether the server of a session remembers something in it.
async fn has_session_state(servers: Arc<OnceLock<Weak<McpManager>>>, session: String) -> bool {
    let rest = session.strip_prefix(SESSION_PREFIX).unwrap_or(&session);
    let server = rest.split_once('/').map_or(rest, |(server, _)| server);
    let server = servers.get().and_then(Weak::upgrade).and_then(|manager| manager.server(server));
    match server {
        Some(server) => server.has_session_state().await,
        None => true,
    }
}

struct ClusterTools {
    owners: Arc<SessionOwners>,
    tools: Arc<OwnedTools>,
}

impl ToolWrapper for ClusterTools {
    fn wrap(&self, source: &SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        self.tools.replace(source, tools, &self.owners)
    }

    fn remove(&self, source: &SourceId) {
        self.tools.remove(source);
    }
}
