//! [`Peer`]: the client that sent a request.

use std::sync::Arc;

use toolyard_core::{ClientInfo, RawJson, RevisionFamily};
use toolyard_mcp::versions::{LEGACY_REVISIONS, MODERN_REVISION};

use crate::session::client_capabilities::ClientCapabilities;

/// Longer client names are truncated.
const MAX_CLIENT_NAME_BYTES: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) revision: &'static str,
    /// The name that the client reports, unverified. Without an authenticated caller, it is the caller in the audit log.
    pub(crate) caller_name: Arc<str>,
    /// The name of the client, on which its catalogue of tools may depend.
    pub(crate) client: ClientInfo,
    pub(crate) capabilities: ClientCapabilities,
    /// The capabilities as declared, where the request declares them.
    pub(crate) raw_capabilities: Option<RawJson>,
    /// Identifies the client: all requests of a session or connection have the same number.
    pub(crate) session_number: u64,
    /// When the client sent `initialize`, in seconds since 1970; none without a handshake.
    pub(crate) initialized_at: Option<u64>,
}

impl Peer {
    /// A client that has not initialized and declared no capabilities as JSON.
    pub(crate) fn new(
        revision: &'static str,
        client: Option<String>,
        capabilities: ClientCapabilities,
        session_number: u64,
    ) -> Self {
        Self {
            revision,
            caller_name: client.as_deref().unwrap_or("an MCP client").into(),
            client: ClientInfo { name: client, identity: None },
            capabilities,
            raw_capabilities: None,
            session_number,
            initialized_at: None,
        }
    }

    pub(crate) fn family(&self) -> RevisionFamily {
        if self.revision == MODERN_REVISION { RevisionFamily::Modern } else { RevisionFamily::Legacy }
    }

    /// Whether the client's revision is `revision` or later; revisions are dates and compare as text.
    pub(crate) fn supports(&self, revision: &str) -> bool {
        self.revision >= revision
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
