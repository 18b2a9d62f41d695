//! The server: its doors, and what it remembers between the requests of its clients.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use tokio::sync::watch;

use super::{
    Door, ServerConfig, clients::Clients, parked::Parked, questions::Questions, room::Room, session::seconds,
    work::Flights,
};

/// Serves doors to clients of both eras, over any transport.
#[derive(Debug)]
pub struct McpServer {
    pub(super) config: ServerConfig,
    main: Arc<Room>,
    profiles: HashMap<String, Arc<Room>>,
    pub(super) questions: Arc<Questions>,
    pub(super) flights: Arc<Flights>,
    pub(super) parked: Arc<Parked>,
    pub(super) clients: Clients,
    /// Tells this process from others with the same keys.
    pub(super) instance: u64,
    /// Since when, in seconds of the clock.
    pub(super) since: u64,
    stop: watch::Sender<bool>,
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Nobody can be accepted any more.
    #[error("connections can no longer be accepted: {0}")]
    Accept(std::io::Error),
    /// The client's stream broke.
    #[error("the stream to the client broke: {0}")]
    Broken(#[from] std::io::Error),
}

/// Ends once the server is to stop.
#[derive(Debug, Clone)]
pub(super) struct Stopped(watch::Receiver<bool>);

impl McpServer {
    /// A server with one door.
    pub fn new(config: ServerConfig, door: Door) -> Self {
        Self {
            config,
            main: Arc::new(Room::new(String::new(), door)),
            profiles: HashMap::new(),
            questions: Arc::default(),
            flights: Arc::default(),
            parked: Arc::default(),
            clients: Clients::default(),
            instance: fastrand::u64(..),
            since: seconds(SystemTime::now()),
            stop: watch::Sender::new(false),
        }
    }

    /// The same with one more door, which HTTP clients find under `/mcp/PROFILE`.
    #[must_use]
    pub fn with_door(mut self, profile: impl Into<String>, door: Door) -> Self {
        let profile = profile.into();
        self.profiles.insert(profile.clone(), Arc::new(Room::new(profile, door)));
        self
    }

    /// What is behind a door; the main one for no profile.
    pub(super) fn room(&self, profile: &str) -> Option<&Arc<Room>> {
        if profile.is_empty() { Some(&self.main) } else { self.profiles.get(profile) }
    }

    pub(super) fn stopped(&self) -> Stopped {
        Stopped(self.stop.subscribe())
    }

    /// Streams that would go on for ever end.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Stopped {
    /// Whether it is to stop already.
    pub(super) fn is_now(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) async fn wait(&mut self) {
        // An error means that the server itself is gone.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
