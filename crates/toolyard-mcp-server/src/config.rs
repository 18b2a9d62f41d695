//! [`ServerConfig`]: name, limits, keys and revisions of a server.

use std::{sync::Arc, time::Duration};

use toolyard_core::{Peers, telemetry::Telemetry};
use toolyard_mcp::{
    WireLimits,
    versions::{LEGACY_REVISIONS, MODERN_REVISION},
};

use crate::session::sealing::SessionKeys;

/// What a server declares about itself, and its limits.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Machine-readable name (`serverInfo.name`).
    pub name: String,
    /// Display name (`serverInfo.title`).
    pub title: Option<String>,
    /// Version (`serverInfo.version`).
    pub version: String,
    /// How models should use the server.
    pub instructions: Option<String>,
    /// Limits on what clients may send and on state kept for them.
    pub limits: ServerLimits,
    /// Keys that seal session ids and the state of suspended calls.
    pub session_keys: SessionKeys,
    /// How long `tools/list` waits for sources that have not been listed yet.
    pub list_timeout: Duration,
    /// The MCP revisions to serve.
    pub revisions: ServedRevisions,
    /// Receives the requests that have been handled.
    pub telemetry: Option<Arc<dyn Telemetry>>,
    /// The other processes that serve the same endpoints with the same session keys. Clients may then send the answer to a question
    /// to any of them. The service of this server must be registered with its peers ([`crate::McpServer::peer_service`]).
    pub peers: Option<Arc<dyn Peers>>,
}

impl ServerConfig {
    /// A server with this name and version and default limits.
    pub fn new(name: impl Into<String>, version: impl Into<String>, session_keys: SessionKeys) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            instructions: None,
            limits: ServerLimits::default(),
            session_keys,
            list_timeout: Duration::from_secs(2),
            revisions: ServedRevisions::Both,
            telemetry: None,
            peers: None,
        }
    }
}

/// The MCP revisions that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServedRevisions {
    /// Legacy and modern revisions; each request states its own.
    #[default]
    Both,
    /// Up to 2025-11-25: `initialize` and sessions.
    Legacy,
    /// 2026-07-28 only.
    Modern,
}

impl ServedRevisions {
    /// The supported revisions, newest first.
    pub(crate) fn supported(self) -> Vec<&'static str> {
        let modern = (self != Self::Legacy).then_some(MODERN_REVISION);
        let legacy = if self == Self::Modern { [].as_slice() } else { &LEGACY_REVISIONS };
        modern.into_iter().chain(legacy.iter().copied()).collect()
    }
}

/// Limits on what clients may send and on state kept for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Nesting levels of a message.
    pub depth: usize,
    /// Entries on a page of a list.
    pub page_entries: usize,
    /// Bytes of a page of a list; a larger single entry gets a page of its own.
    pub page_bytes: usize,
    /// Calls that wait for input from their clients.
    pub suspended_calls: usize,
    /// How long a call waits for input from its client.
    pub suspended_call_timeout: Duration,
    /// Clients whose log level, subscriptions and ended sessions are tracked.
    pub tracked_clients: usize,
    /// Concurrent requests of one client over stdio.
    pub in_flight_requests: usize,
}

impl ServerLimits {
    pub(crate) fn wire_limits(&self) -> WireLimits {
        WireLimits { message_bytes: self.message_bytes, depth: self.depth, ..WireLimits::default() }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            depth: 128,
            page_entries: 1_000,
            page_bytes: 4 << 20,
            suspended_calls: 1_024,
            suspended_call_timeout: Duration::from_mins(10),
            tracked_clients: 65_536,
            in_flight_requests: 1_024,
        }
    }
}
