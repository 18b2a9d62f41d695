//! Where tools come from: native code, skills, MCP servers.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The three kinds of sources, in the order of the seeds' priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Code in the process; priority 0.
    Native = 0,
    /// A SKILL.md folder or a small program; priority 1.
    Skill = 1,
    /// A server that speaks the Model Context Protocol; priority 2.
    Mcp = 2,
}

impl SourceKind {
    /// 0, 1 or 2; smaller is preferred.
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

/// The operator's name of one source: `native`, `skill:invoices`, `excel`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(Arc<str>);

impl SourceId {
    /// The source of all tools that are code in the process.
    pub const NATIVE: &'static str = "native";

    /// The words that only hint at a native tool and select nothing.
    pub fn is_native_hint(source: &str) -> bool {
        source == Self::NATIVE || source == "appflowy"
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for SourceId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl Borrow<str> for SourceId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the hub is told about a source when its tools are registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The operator's name for it.
    pub id: SourceId,
    /// Which of the three kinds it is.
    pub kind: SourceKind,
    /// Whether its hints are believed and it may stand in for other trusted sources.
    pub trusted: bool,
    /// Whether a call that is not read-only must have the source to itself.
    pub exclusive: bool,
}

impl SourceInfo {
    /// A source; native ones are trusted by nature, all others only when the operator says so.
    pub fn new(id: impl Into<SourceId>, kind: SourceKind) -> Self {
        Self { id: id.into(), kind, trusted: kind == SourceKind::Native, exclusive: false }
    }

    /// The source of native tools.
    pub fn native() -> Self {
        Self::new(SourceId::NATIVE, SourceKind::Native)
    }

    /// The same source with the operator's word on trust.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }

    /// The same source, with writes that exclude all other calls to it.
    #[must_use]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }
}
