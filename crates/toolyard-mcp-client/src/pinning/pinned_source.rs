//! [`PinnedSource`]: what the cache must know about a source of tools to pin their definitions.

use toolyard_core::{ContentHash, RevisionFamily, SourceId};
use toolyard_mcp::definition::{NewToolPolicy, ValidationRules};

use crate::config::{HeldTools, HttpKind, McpServerConfig, TransportConfig};

/// Separates a source's name from its fingerprint; no name contains it.
const KEY_SEPARATOR: char = '#';

/// A source whose tool definitions are pinned: an MCP server, or a group of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedSource {
    /// Its name.
    pub id: SourceId,
    /// Identifies how the source is reached. A source with another fingerprint counts as new and inherits no approvals.
    pub fingerprint: ContentHash,
    /// What happens to tools without earlier definitions.
    pub new_tools: NewToolPolicy,
    /// Whether parameters are repeated in headers where the MCP revision says so.
    pub mirrors_headers: bool,
}

impl PinnedSource {
    /// A source that is no MCP server. Its first tools are approved; later ones are held as those of a server are.
    pub fn new(id: impl Into<SourceId>, fingerprint: ContentHash, trusted: bool) -> Self {
        let new_tools = NewToolPolicy::ApproveFirst { trusted };
        Self { id: id.into(), fingerprint, new_tools, mirrors_headers: false }
    }

    /// The key of the source in the store: its name and its fingerprint. Two projects may use one name for two servers; their
    /// approvals are separate.
    pub(super) fn key(&self) -> SourceId {
        format!("{}{KEY_SEPARATOR}{}", self.id, self.fingerprint).into()
    }

    /// Mirrored headers exist only in modern revisions over Streamable HTTP.
    pub(super) fn validation_rules(&self, family: Option<RevisionFamily>) -> ValidationRules {
        ValidationRules { mirrored_headers: self.mirrors_headers && family == Some(RevisionFamily::Modern) }
    }
}

impl McpServerConfig {
    /// The server as the source of pinned definitions.
    pub fn pinned_source(&self) -> PinnedSource {
        let is_streamable = matches!(
            self.transport,
            TransportConfig::Http { kind: HttpKind::Auto | HttpKind::Streamable, .. }
        );
        PinnedSource {
            id: self.id.clone(),
            fingerprint: self.fingerprint(),
            new_tools: match self.hold_new_tools {
                HeldTools::All => NewToolPolicy::Quarantine,
                HeldTools::Added => NewToolPolicy::ApproveFirst { trusted: self.trusted },
                HeldTools::None => NewToolPolicy::Approve,
            },
            mirrors_headers: is_streamable,
        }
    }
}

/// The name of the source in a key.
pub(super) fn source_of_key(key: &SourceId) -> &str {
    key.as_str().split(KEY_SEPARATOR).next().unwrap_or_default()
}

/// What the keys of a source begin with, whatever its fingerprint is.
pub(super) fn key_prefix(source: &SourceId) -> String {
    format!("{source}{KEY_SEPARATOR}")
}
