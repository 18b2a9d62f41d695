//! [`McpServer`]: the endpoints of a server and the state it keeps between requests.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use tokio::sync::watch;

use crate::{
    config::ServerConfig,
    dispatch::served_endpoint::ServedEndpoint,
    endpoint::Endpoint,
    interaction::{
        cancellation::CancellationRegistry, input_requests::PendingInputRequests,
        suspended_calls::SuspendedCalls,
    },
    session::{clients::ClientRegistry, session_id::unix_seconds},
};

/// Serves endpoints to MCP clients, over any transport.
#[derive(Debug)]
pub struct McpServer {
    pub(crate) config: ServerConfig,
    main: Arc<ServedEndpoint>,
    profiles: HashMap<String, Arc<ServedEndpoint>>,
    pub(crate) input_requests: Arc<PendingInputRequests>,
    pub(crate) cancellations: Arc<CancellationRegistry>,
    pub(crate) suspended_calls: Arc<SuspendedCalls>,
    pub(crate) clients: ClientRegistry,
    /// A random number that distinguishes this process from others with the same keys: only this process can resume the calls
    /// it suspended.
    pub(crate) process_instance: u64,
    /// When this process started, in seconds since 1970.
    pub(crate) started_at: u64,
    shutdown: watch::Sender<bool>,
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No more connections can be accepted.
    #[error("failed to accept a connection: {0}")]
    Accept(std::io::Error),
    /// Reading from or writing to the client failed.
    #[error("connection to the client failed: {0}")]
    Io(#[from] std::io::Error),
}

#[derive(Debug, Clone)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

impl McpServer {
    /// A server with one endpoint.
    pub fn new(config: ServerConfig, endpoint: Endpoint) -> Self {
        Self {
            clients: ClientRegistry::new(config.limits.tracked_clients),
            config,
            main: Arc::new(ServedEndpoint::new(String::new(), endpoint)),
            profiles: HashMap::new(),
            input_requests: Arc::default(),
            cancellations: Arc::default(),
            suspended_calls: Arc::default(),
            process_instance: fastrand::u64(..),
            started_at: unix_seconds(SystemTime::now()),
            shutdown: watch::Sender::new(false),
        }
    }

    /// Adds an endpoint that HTTP clients reach at `/mcp/PROFILE`.
    #[must_use]
    pub fn with_endpoint(mut self, profile: impl Into<String>, endpoint: Endpoint) -> Self {
        let profile = profile.into();
        self.profiles.insert(profile.clone(), Arc::new(ServedEndpoint::new(profile, endpoint)));
        self
    }

    /// The endpoint of a profile; the main endpoint for an empty name.
    pub(crate) fn endpoint(&self, profile: &str) -> Option<&Arc<ServedEndpoint>> {
        if profile.is_empty() { Some(&self.main) } else { self.profiles.get(profile) }
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
