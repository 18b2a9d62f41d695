//! What a server is made of: its name, its limits, its keys, and the doors that lead to tools.

use std::{fmt, sync::Arc, time::Duration};

use toolyard_core::{BoxFuture, ToolService};

use super::{ContentService, SessionKeys};
use crate::wire::CacheScope;

/// What a server says about itself, and what it bounds.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// How it wants to be used.
    pub instructions: Option<String>,
    /// How much of anything clients may send or keep here.
    pub limits: ServerLimits,
    /// What session ids and states of unfinished calls are sealed with.
    pub sessions: SessionKeys,
    /// How long `tools/list` waits for sources that are being looked at for the first time.
    pub list_patience: Duration,
    /// For how long clients may take a list for fresh.
    pub ttl: Duration,
    /// Who may keep a list.
    pub cache_scope: CacheScope,
    /// Which protocols are spoken.
    pub eras: ServedEras,
}

impl ServerConfig {
    /// A server with this name and version, and what suits most.
    pub fn new(name: impl Into<String>, version: impl Into<String>, sessions: SessionKeys) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            instructions: None,
            limits: ServerLimits::default(),
            sessions,
            list_patience: Duration::from_secs(2),
            ttl: Duration::from_secs(60),
            cache_scope: CacheScope::Private,
            eras: ServedEras::Both,
        }
    }
}

/// Which protocols a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServedEras {
    /// Whichever the client speaks.
    #[default]
    Both,
    /// `initialize` and sessions only.
    Legacy,
    /// 2026-07-28 only.
    Modern,
}

/// How much of anything clients may send or keep here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Levels of nesting in one message.
    pub depth: usize,
    /// Entries of one page of a list.
    pub page_entries: usize,
    /// Bytes of one page of a list, unless one entry alone is larger.
    pub page_bytes: usize,
    /// Messages about one call that wait to be sent; what comes beyond them is left out.
    pub queued: usize,
    /// Calls that wait for their callers' answers at once.
    pub parked: usize,
    /// How long a call waits for its caller's answers.
    pub parked_for: Duration,
    /// Clients about whom something is remembered at once, such as what they subscribed to.
    pub remembered: usize,
    /// Requests that one client may have under way at once over stdio.
    pub in_flight: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            depth: 128,
            page_entries: 1_000,
            page_bytes: 4 << 20,
            queued: 1_024,
            parked: 1_024,
            parked_for: Duration::from_mins(10),
            remembered: 65_536,
            in_flight: 1_024,
        }
    }
}

/// One entrance: which tools and which content are behind it.
#[derive(Debug, Clone)]
pub struct Door {
    /// The tools.
    pub tools: Arc<dyn ToolService>,
    /// Prompts, resources, completions and skills; the first that knows something answers for it.
    pub content: Vec<Arc<dyn ContentService>>,
    /// What is known about sources that are not ready.
    pub readiness: Option<Arc<dyn Readiness>>,
}

impl Door {
    /// A door with tools only.
    pub fn new(tools: Arc<dyn ToolService>) -> Self {
        Self { tools, content: Vec::new(), readiness: None }
    }
}

/// Knows which sources are not ready yet, or not there.
pub trait Readiness: Send + Sync + fmt::Debug {
    /// Ends once every source was looked at, or was found not to be there.
    fn settled(&self) -> BoxFuture<'_, ()>;

    /// One line for each source whose tools are missing, and why.
    fn notes(&self) -> Vec<String>;
}
