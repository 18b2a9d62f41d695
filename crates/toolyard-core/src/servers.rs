//! What is remembered of MCP servers between processes: their tools, their protocol era, and what was approved.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ContentHash, RawJson, SourceId};

/// A server as it was last seen. What the operator edits stays in `toolyard.toml`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerRecord {
    /// Under what it is remembered: the operator's name for it, and whatever tells servers of one name apart.
    pub id: SourceId,
    /// The hash of its configuration: a server that is configured anew is a server never seen.
    pub configuration: ContentHash,
    /// Which protocol it speaks, once that is known.
    pub era: Option<ProtocolEra>,
    /// The seeds' `cached_tools`: its tool definitions as it sent them.
    pub cached_tools: Vec<RawJson>,
    /// What was decided about them, so that it need not be decided anew whenever they are listed; none in records of
    /// earlier versions.
    pub shelf: Option<RawJson>,
    /// What it offers besides tools, as far as that is known: prompts, resources, skills.
    pub content: Option<RawJson>,
    /// Milliseconds since 1970.
    pub seen_at: i64,
}

/// The two families of protocol revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolEra {
    /// With `initialize` and sessions.
    Legacy,
    /// Stateless.
    Modern,
}

/// A definition of a tool at some time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// The tool's name.
    pub tool: String,
    /// The hash of its canonical form.
    pub hash: ContentHash,
    /// The definition itself.
    pub definition: RawJson,
    /// Whether a person or the rule of first sight approved it.
    pub approved: bool,
    /// Milliseconds since 1970.
    pub first_seen_at: i64,
}

/// A decision to trust something, bound to its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustDecision {
    /// What kind of thing: `skill`, `server`.
    pub kind: String,
    /// Which one: a folder, an id.
    pub subject: String,
    /// What it was when it was trusted.
    pub content: ContentHash,
    /// Milliseconds since 1970.
    pub decided_at: i64,
}

/// Remembers servers, definitions and decisions.
pub trait Servers: Send + Sync {
    /// Remembers a server, replacing what was known of it.
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> BoxFuture<'a, Result<(), String>>;

    /// All servers, by id.
    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, String>>;

    /// One server.
    fn server<'a>(&'a self, id: &'a SourceId) -> BoxFuture<'a, Result<Option<ServerRecord>, String>>;

    /// Forgets a server and all that was known of its tools; whether there was one.
    fn forget_server<'a>(&'a self, id: &'a SourceId) -> BoxFuture<'a, Result<bool, String>>;

    /// Remembers a definition; one that is known already keeps its date, and stays approved once it was.
    fn put_definition<'a>(
        &'a self,
        server: &'a SourceId,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// All definitions a server ever had, by tool, oldest first.
    fn definitions<'a>(&'a self, server: &'a SourceId) -> BoxFuture<'a, Result<Vec<ToolDefinition>, String>>;

    /// Remembers a decision, replacing an earlier one on the same subject.
    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> BoxFuture<'a, Result<(), String>>;

    /// Takes a decision back; whether there was one.
    fn remove_trust<'a>(&'a self, kind: &'a str, subject: &'a str) -> BoxFuture<'a, Result<bool, String>>;

    /// All decisions on one kind of thing, by subject.
    fn trusted<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<TrustDecision>, String>>;
}

/// Remembers what programs of skills said about themselves, by the hash of their content.
pub trait Descriptions: Send + Sync {
    /// What a program of this content said.
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>>;

    /// Keeps what a program said. A failure costs time and nothing else.
    fn keep_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()>;
}
