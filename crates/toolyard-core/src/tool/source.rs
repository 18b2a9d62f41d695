//! Sources of tools: native code, skills, MCP servers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{SourceScope, text_id::text_id};

/// The kinds of sources, in the specification's order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Code in this process; priority 0.
    Native = 0,
    /// A SKILL.md folder or a small program; priority 1.
    Skill = 1,
    /// An MCP server; priority 2.
    Mcp = 2,
}

impl SourceKind {
    /// 0, 1 or 2; a smaller number is preferred.
    pub fn priority(self) -> u8 {
        match self {
            Self::Native => 0,
            Self::Skill => 1,
            Self::Mcp => 2,
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Skill => "skill",
            Self::Mcp => "mcp",
        })
    }
}

text_id! {
    /// The operator's name of a source: `native`, `skill:invoices`, `excel`.
    SourceId
}

impl SourceId {
    /// The id of the source of native tools.
    pub const NATIVE: &'static str = "native";

    /// Sources in a request that are only a hint that a native tool is meant.
    pub(crate) const NATIVE_HINTS: [&'static str; 2] = [Self::NATIVE, "appflowy"];

    /// Ids of skills start with this.
    pub const SKILL_PREFIX: &'static str = "skill:";

    /// Ids of groups of workers start with this. They are used like servers, and no server has such a name.
    pub const WORKER_PREFIX: &'static str = "worker:";

    /// Whether the source in a request is only a hint that a native tool is meant. Such a hint selects no source.
    pub fn is_native_hint(source: &str) -> bool {
        Self::NATIVE_HINTS.contains(&source)
    }

    /// The kind of source that has such an id.
    pub fn kind(&self) -> SourceKind {
        match self.as_str() {
            id if Self::is_native_hint(id) => SourceKind::Native,
            id if id.starts_with(Self::SKILL_PREFIX) => SourceKind::Skill,
            _ => SourceKind::Mcp,
        }
    }
}

/// What the hub knows about a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The operator's name.
    pub id: SourceId,
    /// The kind of source.
    pub kind: SourceKind,
    /// Whether its hints are believed, and its tools may be equivalent to those of other trusted sources.
    pub trusted: bool,
    /// Whether a call that writes excludes all other calls to the source.
    pub exclusive: bool,
    /// What distinguishes it from other sources with the same tools.
    pub scope: SourceScope,
    /// The working folder of its process, if it has one on this machine: relative paths in arguments start there.
    pub working_folder: Option<String>,
}

impl SourceInfo {
    /// A source. Native ones are trusted; others only if the operator trusts them.
    pub fn new(id: impl Into<SourceId>, kind: SourceKind) -> Self {
        Self {
            id: id.into(),
            kind,
            trusted: kind == SourceKind::Native,
            exclusive: false,
            scope: SourceScope::default(),
            working_folder: None,
        }
    }

    /// The source of native tools.
    pub fn native() -> Self {
        Self::new(SourceId::NATIVE, SourceKind::Native)
    }

    /// Sets whether the operator trusts the source.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }

    /// Sets whether calls that write exclude all other calls.
    #[must_use]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets what distinguishes the source from others with the same tools.
    #[must_use]
    pub fn scope(mut self, scope: SourceScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the working folder of its process.
    #[must_use]
    pub fn working_folder(mut self, folder: Option<String>) -> Self {
        self.working_folder = folder;
        self
    }
}
