//! The store of MCP servers: their tools, their family of protocol revisions, the approved definitions, and trust decisions.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ContentHash, RawJson, SourceId, StorageError};

/// A server as last seen. The operator's configuration is not part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerRecord {
    /// The operator's name for it and its fingerprint: servers of two projects may share a name.
    pub id: SourceId,
    /// Its fingerprint, the hash of its transport: a server that is reached in another way counts as new.
    pub configuration: ContentHash,
    /// The family of protocol revisions it speaks, once known.
    pub revision_family: Option<RevisionFamily>,
    /// Its tool definitions, unchanged (`cached_tools` in the specification).
    pub cached_tools: Vec<RawJson>,
    /// The cached decisions about these definitions: approved, quarantined, rejected.
    pub tool_approvals: Option<RawJson>,
    /// Its prompts, resources and skills, as far as known.
    pub content: Option<RawJson>,
    /// Milliseconds since 1970.
    pub seen_at: i64,
}

/// The two families of MCP revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RevisionFamily {
    /// Revisions up to 2025-11-25: handshake and sessions.
    Legacy,
    /// Revision 2026-07-28: stateless.
    Modern,
}

/// A definition that a tool of a server has or had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredDefinition {
    /// The tool's name.
    pub tool: String,
    /// The hash of its canonical form.
    pub hash: ContentHash,
    /// The definition itself.
    pub definition: RawJson,
    /// Whether the user approved it, or it was trusted on first use.
    pub approved: bool,
    /// Milliseconds since 1970.
    pub first_seen_at: i64,
}

/// A decision to trust a subject as long as its content is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustDecision {
    /// The kind of subject: `skill`, `server`.
    pub kind: String,
    /// The subject: a folder, an id.
    pub subject: String,
    /// The hash of the trusted content.
    pub content: ContentHash,
    /// Milliseconds since 1970.
    pub decided_at: i64,
}

/// Stores servers, tool definitions and trust decisions.
pub trait Servers: Send + Sync {
    /// Stores a server, replacing its earlier record.
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> BoxFuture<'a, Result<(), StorageError>>;

    /// All servers, by id.
    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, StorageError>>;

    /// The highest revision of all servers. A server whose record changes gets a revision above all earlier ones.
    fn latest_server_revision(&self) -> BoxFuture<'_, Result<i64, StorageError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// The servers with a revision above this one, lowest first. None in a store that only one process uses.
    fn servers_changed_after(
        &self,
        revision: i64,
    ) -> BoxFuture<'_, Result<Vec<(SourceId, i64)>, StorageError>> {
        let _ = revision;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// The servers whose ids begin with this name and `#`, by id: one name with several fingerprints.
    fn servers_named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<ServerRecord>, StorageError>> {
        Box::pin(async move {
            let mut servers = self.servers().await?;
            servers.retain(|server| {
                server.id.as_str().strip_prefix(name).is_some_and(|rest| rest.starts_with('#'))
            });
            Ok(servers)
        })
    }

    /// One server.
    fn server<'a>(&'a self, id: &'a SourceId) -> BoxFuture<'a, Result<Option<ServerRecord>, StorageError>>;

    /// Removes a server and the definitions of its tools. Returns false if there was none.
    fn forget_server<'a>(&'a self, id: &'a SourceId) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// Stores a definition. One that is stored already keeps `first_seen_at`, and stays approved if it was.
    fn put_definition<'a>(
        &'a self,
        server: &'a SourceId,
        definition: &'a StoredDefinition,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// All definitions that a server ever had, by tool, oldest first.
    fn definitions<'a>(
        &'a self,
        server: &'a SourceId,
    ) -> BoxFuture<'a, Result<Vec<StoredDefinition>, StorageError>>;

    /// Stores a decision, replacing an earlier one on the same subject.
    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Revokes a decision. Returns false if there was none.
    fn remove_trust<'a>(
        &'a self,
        kind: &'a str,
        subject: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// All decisions on one kind of subject, by subject.
    fn trust_decisions<'a>(
        &'a self,
        kind: &'a str,
    ) -> BoxFuture<'a, Result<Vec<TrustDecision>, StorageError>>;
}

/// Caches the tool definitions that skill programs report, by the hash of the program.
pub trait SkillDescriptionCache: Send + Sync {
    /// The cached definitions of a program.
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>>;

    /// Caches the definitions of a program. Failures are ignored.
    fn put_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()>;
}
