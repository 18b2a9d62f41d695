//! [`McpServer`]: the endpoints of a server and the state it keeps between requests.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::{
    cluster::CallsForPeers,
    config::ServerConfig,
    dispatch::served_endpoint::ServedEndpoint,
    endpoint::Endpoint,
    interaction::{
        cancellation::CancellationRegistry, elicitations::PageElicitations,
        input_requests::PendingInputRequests, suspended_calls::SuspendedCalls,
    },
    session::{clients::ClientRegistry, session_id::unix_seconds},
};

/// Serves endpoints to MCP clients, over any transport.
#[derive(Debug)]
pub struct McpServer {
    pub(crate) config: ServerConfig,
    /// By profile; the main endpoint has an empty name.
    endpoints: ArcSwap<HashMap<String, Arc<ServedEndpoint>>>,
    pub(crate) input_requests: Arc<PendingInputRequests>,
    pub(crate) cancellations: Arc<CancellationRegistry>,
    pub(crate) suspended_calls: Arc<SuspendedCalls>,
    pub(crate) clients: ClientRegistry,
    pub(crate) elicitations: PageElicitations,
    /// Distinguishes this process from others with the same keys: only this process can resume the calls it suspended. The number
    /// by which its peers reach it, or a random one without peers.
    pub(crate) process_instance: u64,
    /// Resumed calls whose clients are connected to other processes.
    pub(crate) calls_for_peers: CallsForPeers,
    /// When this process started, in seconds since 1970.
    pub(crate) started_at: u64,
    is_draining: AtomicBool,
    shutdown: watch::Sender<bool>,
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The operating system accepts no further connections, often because too many files are open.
    ///
    /// Remedy: raise the limit of open files (`ulimit -n`), or lower the number of clients.
    #[error("failed to accept a connection: {0}")]
    Accept(std::io::Error),
    /// Reading from or writing to the client failed: it was closed.
    ///
    /// Remedy: nothing is needed if the client was closed; otherwise see the log of the client.
    #[error("connection to the client failed: {0}")]
    Io(#[from] std::io::Error),
}

#[derive(Debug, Clone)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

impl McpServer {
    /// A server with one endpoint.
    pub fn new(config: ServerConfig, endpoint: Endpoint) -> Self {
        let own_number = config.peers.as_ref().map(|peers| peers.own_number());
        Self {
            clients: ClientRegistry::new(config.limits.tracked_clients),
            config,
            endpoints: ArcSwap::from_pointee(HashMap::from([(
                String::new(),
                Arc::new(ServedEndpoint::new(String::new(), endpoint)),
            )])),
            input_requests: Arc::new(PendingInputRequests::new(own_number)),
            cancellations: Arc::default(),
            suspended_calls: Arc::default(),
            elicitations: PageElicitations::default(),
            process_instance: own_number.unwrap_or_else(|| fastrand::u64(..)),
            calls_for_peers: CallsForPeers::default(),
            started_at: unix_seconds(SystemTime::now()),
            is_draining: AtomicBool::new(false),
            shutdown: watch::Sender::new(false),
        }
    }

    /// Adds an endpoint that HTTP clients reach at `/mcp/PROFILE`.
    #[must_use]
    pub fn with_endpoint(self, profile: impl Into<String>, endpoint: Endpoint) -> Self {
        self.set_endpoint(profile, endpoint);
        self
    }

    /// Adds or replaces the endpoint of a profile while serving; an empty name is the main endpoint. Requests in flight
    /// finish at the replaced endpoint. Its change streams report that all lists changed, and end; clients open new ones.
    pub fn set_endpoint(&self, profile: impl Into<String>, endpoint: Endpoint) {
        let profile = profile.into();
        let served = Arc::new(ServedEndpoint::new(profile.clone(), endpoint));
        self.change_endpoints(|endpoints| endpoints.insert(profile.clone(), Arc::clone(&served)));
    }

    /// Removes the endpoint of a profile while serving, like [`Self::set_endpoint`]. The main endpoint stays.
    pub fn remove_endpoint(&self, profile: &str) {
        if !profile.is_empty() {
            self.change_endpoints(|endpoints| endpoints.remove(profile));
        }
    }

    /// Applies a change that returns the endpoint it replaced.
    fn change_endpoints(
        &self,
        change: impl Fn(&mut HashMap<String, Arc<ServedEndpoint>>) -> Option<Arc<ServedEndpoint>>,
    ) {
        let mut replaced = None;
        self.endpoints.rcu(|endpoints| {
            let mut endpoints = HashMap::clone(endpoints);
            replaced = change(&mut endpoints);
            endpoints
        });
        if let Some(replaced) = replaced {
            replaced.retire();
        }
    }

    /// The endpoint of a profile; the main endpoint for an empty name.
    pub(crate) fn endpoint(&self, profile: &str) -> Option<Arc<ServedEndpoint>> {
        self.endpoints.load().get(profile).map(Arc::clone)
    }

    /// Begins to drain: `/readyz` fails, so that load balancers send requests elsewhere, and responses close their
    /// connections. Connections and requests are still accepted.
    pub fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// The number of requests that are being handled.
    pub fn requests_in_flight(&self) -> usize {
        self.cancellations.in_flight()
    }

    /// The number of sessions with state in this process, such as subscriptions.
    pub fn tracked_sessions(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn shutdown_signal(&self) -> ShutdownSignal {
        ShutdownSignal(self.shutdown.subscribe())
    }

    /// Ends all change streams.
    pub(crate) fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }
}

impl ShutdownSignal {
    pub(crate) fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn wait(&mut self) {
        // An error means that the server was dropped.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
