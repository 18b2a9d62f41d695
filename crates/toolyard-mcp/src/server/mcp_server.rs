//! The server: its doors, and what it remembers between the requests of its clients.

use std::{collections::HashMap, sync::Arc};

use super::{Door, ServerConfig, questions::Questions, work::Flights};

/// Serves doors to clients of both eras, over any transport.
#[derive(Debug)]
pub struct McpServer {
    pub(super) config: ServerConfig,
    pub(super) main: Arc<Door>,
    pub(super) profiles: HashMap<String, Arc<Door>>,
    pub(super) questions: Arc<Questions>,
    pub(super) flights: Arc<Flights>,
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

impl McpServer {
    /// A server with one door.
    pub fn new(config: ServerConfig, door: Door) -> Self {
        Self {
            config,
            main: Arc::new(door),
            profiles: HashMap::new(),
            questions: Arc::default(),
            flights: Arc::default(),
        }
    }

    /// The same with one more door, which HTTP clients find under `/mcp/PROFILE`.
    #[must_use]
    pub fn with_door(mut self, profile: impl Into<String>, door: Door) -> Self {
        self.profiles.insert(profile.into(), Arc::new(door));
        self
    }
}
