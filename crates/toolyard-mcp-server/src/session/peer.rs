//! [`Peer`]: the client that sent a request.

use std::sync::Arc;

use toolyard_core::{ClientInfo, RawJson, RevisionFamily};
use toolyard_mcp::versions::{LEGACY_REVISIONS, MODERN_REVISION};

use crate::session::client_capabilities::ClientCapabilities;

/// Longer client names are truncated.
const MAX_CLIENT_NAME_BYTES: usize = 64;

/// The client that sent a request.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The MCP revision of the request.
    pub(crate) revision: &'static str,
    /// The caller in whose name tools are called.
    pub(crate) caller_name: Arc<str>,
    /// What the catalogue of tools depends on.
    pub(crate) client: ClientInfo,
    /// Which input the client can provide.
    pub(crate) capabilities: ClientCapabilities,
    /// The capabilities as declared, where the request declares them.
    pub(crate) raw_capabilities: Option<RawJson>,
    /// Identifies the client: all requests of a session or connection have the same key.
    pub(crate) session_key: u64,
    /// When the client sent `initialize`, in seconds since 1970; none without a handshake.
    pub(crate) initialized_at: Option<u64>,
}

impl Peer {
    pub(crate) fn family(&self) -> RevisionFamily {
        if self.revision == MODERN_REVISION { RevisionFamily::Modern } else { RevisionFamily::Legacy }
    }

    /// Whether the client's revision is `version` or later; revisions are dates and compare as text.
    pub(crate) fn supports(&self, version: &str) -> bool {
        self.revision >= version
    }
}

/// The beginning of a client's name; none for an empty one.
pub(crate) fn truncate_client_name(name: &str) -> Option<String> {
    let end = (0..=MAX_CLIENT_NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end))?;
    name.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The legacy revision to use with a client that requests this one: the same if it is supported, else the newest.
pub(crate) fn negotiate_revision(requested: &str) -> &'static str {
    let [newest, ..] = LEGACY_REVISIONS;
    LEGACY_REVISIONS.into_iter().find(|known| *known == requested).unwrap_or(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_negotiates_the_newest() {
        assert_eq!(negotiate_revision("2024-11-05"), "2024-11-05");
        assert_eq!(negotiate_revision("1999-01-01"), "2025-11-25");
        assert_eq!(negotiate_revision(MODERN_REVISION), "2025-11-25");
    }
}
