//! Caches the tool lists and pins of servers between processes.
//!
//! A server is stored under its name and the hash of its transport: a server with a changed configuration counts as
//! new and inherits no approvals. Other sources ([`PinnedSource`]), such as groups of workers, are pinned the same way.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::{self, Display},
    sync::{Arc, atomic::AtomicI64},
};

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use toolyard_core::{
    ClaimTime, ContentHash, NameClaim, NameClaims, RawJson, RevisionFamily, ServerRecord, Servers, SourceId,
    StorageError, StoredDefinition,
};
use toolyard_mcp::definition::{NotQuarantined, PinDecision, decide_pins, validate_tools};

use super::{
    memory_store::MemoryServerStore,
    pinned_source::{PinnedSource, key_prefix, source_of_key},
    tool_approvals::ToolApprovals,
};
use crate::{config::McpServerConfig, content::server_content::ServerContent};

/// The records of more sources than this are read together with all others.
const MAX_SOURCES_READ_SINGLY: usize = 100;

/// Why the cache could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum CacheError {
    /// The store with the known tools of servers failed.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to access the cached tools of {subject}: {message}")]
    Store {
        /// `all servers`, or one by name.
        subject: String,
        message: String,
    },
    /// The server was never started with its current settings, so its tools are not known.
    ///
    /// Remedy: start it once: `toolyard servers test NAME`.
    #[error("server {0} has no cached tools for its current configuration; connect it first")]
    UnknownServer(SourceId),
    #[error(transparent)]
    NotQuarantined(#[from] NotQuarantined),
    /// The definition changed between showing and approving it.
    ///
    /// Remedy: review it once more: `toolyard servers show NAME`, then `toolyard servers approve NAME`.
    #[error("{0} changed again since it was shown; review it once more")]
    DefinitionChanged(String),
    /// No approved tool of the server has this name.
    ///
    /// Remedy: list its tools with `toolyard servers show NAME`.
    #[error("server {server} has no approved tool {tool}")]
    UnknownTool { server: SourceId, tool: String },
}

/// Another source that has a tool of a given name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUser {
    /// The source.
    pub source: SourceId,
    /// Whether it precedes all servers, as native tools do by default.
    pub precedes_servers: bool,
}

/// Looks up which source other than MCP servers has a tool of a given name.
pub type NameUsers<'a> = &'a (dyn Fn(&str) -> Option<NameUser> + Sync);

/// The cached record of a server, and the decision on its tools.
#[derive(Debug, Clone)]
pub struct ServerPins {
    /// The stored record.
    pub record: ServerRecord,
    /// Which of its tools are approved, quarantined or rejected.
    pub decision: PinDecision,
}

/// What is known of a server without connecting to it.
#[derive(Debug, Default)]
pub(crate) struct CachedServer {
    pub(crate) revision_family: Option<RevisionFamily>,
    pub(crate) approvals: ToolApprovals,
    pub(crate) content: ServerContent,
}

/// Caches servers in a store.
#[derive(Clone)]
pub struct ServerCache {
    pub(super) servers: Arc<dyn Servers>,
    /// The claims of all configured servers on bare names.
    names: Arc<Mutex<NameClaims>>,
    /// The revision of the store up to which changes of other processes are known.
    pub(super) seen_revision: Arc<AtomicI64>,
}

impl fmt::Debug for ServerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCache").finish_non_exhaustive()
    }
}

impl ServerCache {
    /// A cache in this store.
    pub fn new(servers: Arc<dyn Servers>) -> Self {
        Self { servers, names: Arc::default(), seen_revision: Arc::default() }
    }

    /// A cache that lasts until the process ends.
    pub fn in_memory() -> Self {
        Self::new(Arc::<MemoryServerStore>::default())
    }

    /// What is known of these servers. A server whose configuration changed counts as new and is missing.
    pub(crate) async fn load(
        &self,
        sources: &[PinnedSource],
    ) -> Result<HashMap<SourceId, CachedServer>, CacheError> {
        self.note_first_revision().await?;
        self.load_sources(sources).await
    }

    async fn load_sources(
        &self,
        sources: &[PinnedSource],
    ) -> Result<HashMap<SourceId, CachedServer>, CacheError> {
        let by_id: HashMap<&str, &PinnedSource> =
            sources.iter().map(|source| (source.id.as_str(), source)).collect();
        let mut records = self.records_of(sources).await?;
        records.retain(|record| by_id.contains_key(source_of_key(&record.id)));
        self.names.lock().add_sources(sources.iter().map(|source| source.id.clone()));
        let mut cached = HashMap::with_capacity(sources.len());
        for (record, approvals) in with_approvals(records).await? {
            let Some(source) = by_id.get(source_of_key(&record.id)) else { continue };
            let is_current = record.id == source.key();
            if let Some(approvals) = &approvals {
                self.restore_names(source, approvals, is_current);
            }
            if !is_current {
                continue;
            }
            let approvals = match approvals {
                Some(approvals) => approvals,
                // Another version wrote the record.
                None => match self.pins(source).await? {
                    Some(pins) => ToolApprovals::from_decision(pins.decision),
                    None => continue,
                },
            };
            // Another version may have written content that cannot be read.
            let content = record.content.and_then(|content| content.read().ok()).unwrap_or_default();
            let revision_family = record.revision_family;
            cached.insert(source.id.clone(), CachedServer { revision_family, approvals, content });
        }
        Ok(cached)
    }

    /// The cached approvals of these sources, which are not MCP servers. A source that was never seen is missing.
    pub async fn approvals(
        &self,
        sources: &[PinnedSource],
    ) -> Result<HashMap<SourceId, ToolApprovals>, CacheError> {
        // Changes of servers still have to be noticed.
        let cached = self.load_sources(sources).await?;
        Ok(cached.into_iter().map(|(id, source)| (id, source.approvals)).collect())
    }

    /// The names of all cached sources whose names begin so, each once.
    pub async fn sources_with_prefix(&self, prefix: &str) -> Result<BTreeSet<SourceId>, CacheError> {
        let records = self.servers.servers().await.map_err(all_servers_error)?;
        let names = records.iter().map(|record| source_of_key(&record.id));
        Ok(names.filter(|name| name.starts_with(prefix)).map(SourceId::from).collect())
    }

    /// The records of these sources, and maybe of others.
    async fn records_of(&self, sources: &[PinnedSource]) -> Result<Vec<ServerRecord>, CacheError> {
        if sources.len() > MAX_SOURCES_READ_SINGLY {
            return self.servers.servers().await.map_err(all_servers_error);
        }
        let mut records = Vec::new();
        for source in sources {
            let found = self.servers.servers_named(source.id.as_str()).await;
            records.append(&mut found.map_err(store_error(&source.id))?);
        }
        Ok(records)
    }

    /// Whether any process saw a definition of this tool, of one of these servers, that awaits approval.
    pub async fn awaits_approval(&self, tool: &str, configs: &[McpServerConfig]) -> Result<bool, CacheError> {
        let records = self.servers.servers().await.map_err(all_servers_error)?;
        let is_quarantined = |record: &ServerRecord| {
            configs.iter().any(|config| record.id == config.pinned_source().key())
                && stored_approvals(record).is_some_and(|approvals| {
                    approvals.quarantined.iter().any(|quarantined| quarantined.name == tool)
                })
        };
        Ok(records.iter().any(is_quarantined))
    }

    /// Loads the stored claims of a server on names. A server whose configuration changed keeps the claims it had before,
    /// so that no other server takes its names until it is started again.
    pub(super) fn restore_names(&self, source: &PinnedSource, approvals: &ToolApprovals, is_current: bool) {
        let mut names = self.names.lock();
        for (name, claim) in approvals.names() {
            if is_current || names.get(&name, &source.id).is_none() {
                names.restore(&name, &source.id, claim.clone());
            }
        }
    }

    /// The tools that the file of a server lists, for as long as the server was not seen. Their names yield to those of
    /// every server that was.
    pub(crate) fn provisional_approvals(&self, config: &McpServerConfig) -> ToolApprovals {
        let rules = config.pinned_source().validation_rules(config.revision_family);
        let tools = validate_tools(&config.cached_tools, rules);
        let names = self.names.lock();
        let claim = |name: &Arc<str>| {
            let yields_to = names.holder(name, &config.id).cloned();
            let contests = yields_to.is_some();
            let made_now = NameClaim { claimed_at: i64::MAX, yields_to, contests, is_given: false };
            (name.to_string(), names.get(name, &config.id).cloned().unwrap_or(made_now))
        };
        let claims = tools.valid.iter().map(|tool| claim(&tool.spec.name)).collect();
        ToolApprovals::from_decision(PinDecision {
            approved: tools.valid,
            names: claims,
            ..PinDecision::default()
        })
    }

    /// Forgets the claims of a server that is not configured any more. Tools of other servers that yielded to it do not
    /// get its names: the operator decides.
    pub(crate) fn release_names(&self, server: &SourceId) {
        self.names.lock().remove_source(server);
    }

    /// The claims of a server on the names of approved tools, which are made now if they are new, and on earlier names.
    fn claim_names(
        &self,
        source: &PinnedSource,
        decision: &PinDecision,
        record: Option<&ServerRecord>,
        name_users: NameUsers<'_>,
        (time, now_millis): (ClaimTime, i64),
    ) -> BTreeMap<String, NameClaim> {
        let before = record.and_then(stored_approvals).unwrap_or_default();
        let mut names = self.names.lock();
        // Another process may have changed the claims.
        before.names().for_each(|(name, claim)| names.restore(&name, &source.id, claim.clone()));
        let mut claims: BTreeMap<String, NameClaim> =
            before.names().map(|(name, claim)| (name.to_string(), claim.clone())).collect();
        for tool in &decision.approved {
            let name = &tool.spec.name;
            let outranked_by = name_users(name).filter(|user| user.precedes_servers).map(|user| user.source);
            claims.insert(name.to_string(), names.claim(name, &source.id, outranked_by, time, now_millis));
        }
        claims
    }

    /// Gives the bare names of these tools to a server, by decision of the operator. Returns the approvals of all
    /// configured servers whose claims changed.
    pub(crate) async fn give_names(
        &self,
        sources: &[PinnedSource],
        server: &SourceId,
        tools: &[String],
    ) -> Result<Vec<(SourceId, ToolApprovals)>, CacheError> {
        let mut changed: Vec<SourceId> = Vec::new();
        {
            let mut names = self.names.lock();
            // All or none.
            if let Some(tool) = tools.iter().find(|tool| names.get(tool, server).is_none()) {
                return Err(CacheError::UnknownTool { server: server.clone(), tool: tool.clone() });
            }
            tools.iter().for_each(|tool| changed.extend(names.give(tool, server)));
        }
        let mut approvals = Vec::new();
        for source in sources.iter().filter(|source| changed.contains(&source.id)) {
            let Some(mut pins) = self.pins(source).await? else { continue };
            for (name, claim) in &mut pins.decision.names {
                if let Some(given) = self.names.lock().get(name, &source.id) {
                    claim.clone_from(given);
                }
            }
            self.store_approvals(&source.id, &mut pins).await?;
            approvals.push((source.id.clone(), ToolApprovals::from_decision(pins.decision)));
        }
        Ok(approvals)
    }

    async fn store_approvals(&self, server: &SourceId, pins: &mut ServerPins) -> Result<(), CacheError> {
        pins.record.tool_approvals = ToolApprovals::to_stored(&pins.decision, &pins.record.cached_tools);
        self.servers.put_server(&pins.record).await.map_err(store_error(server))
    }

    /// The pins of a server; `None` if it was never seen as configured now.
    pub async fn pins(&self, source: &PinnedSource) -> Result<Option<ServerPins>, CacheError> {
        let Some(record) = self.servers.server(&source.key()).await.map_err(store_error(&source.id))? else {
            return Ok(None);
        };
        let history = self.definitions(source).await?;
        let tools = validate_tools(&record.cached_tools, source.validation_rules(record.revision_family));
        let name_user = |name: &str| self.names.lock().holder(name, &source.id).cloned();
        let policy = source.new_tools;
        let mut decision = decide_pins(&history, tools, policy, &name_user, record.seen_at);
        decision.names = stored_approvals(&record)
            .iter()
            .flat_map(ToolApprovals::names)
            .map(|(name, claim)| (name.to_string(), claim.clone()))
            .collect();
        Ok(Some(ServerPins { record, decision }))
    }

    /// Decides on the tools that a server sent, and stores both. Pins are written before the list, so that even after a
    /// crash no tool is approved without a stored definition.
    pub async fn update_tools(
        &self,
        source: &PinnedSource,
        revision_family: Option<RevisionFamily>,
        tools: Vec<RawJson>,
        name_users: NameUsers<'_>,
        now_millis: i64,
    ) -> Result<PinDecision, CacheError> {
        let history = self.definitions(source).await?;
        let valid = validate_tools(&tools, source.validation_rules(revision_family));
        let name_user = |name: &str| {
            let owner = self.names.lock().holder(name, &source.id).cloned();
            owner.or_else(|| name_users(name).map(|user| user.source))
        };
        let mut decision = decide_pins(&history, valid, source.new_tools, &name_user, now_millis);
        self.put_definitions(&source.key(), &decision.records).await?;
        let before = self.servers.server(&source.key()).await.map_err(store_error(&source.id))?;
        let time = if history.is_empty() { ClaimTime::FirstApproval } else { ClaimTime::Later };
        decision.names = self.claim_names(source, &decision, before.as_ref(), name_users, (time, now_millis));
        let record = ServerRecord {
            tool_approvals: ToolApprovals::to_stored(&decision, &tools),
            content: before.and_then(|before| before.content),
            id: source.key(),
            configuration: source.fingerprint,
            revision_family,
            cached_tools: tools,
            seen_at: now_millis,
        };
        self.servers.put_server(&record).await.map_err(store_error(&source.id))?;
        Ok(decision)
    }

    /// Stores the prompts, resources and skills of a server; does nothing if the server is not cached.
    pub async fn update_content(&self, source: &PinnedSource, content: RawJson) -> Result<(), CacheError> {
        let record = self.servers.server(&source.key()).await.map_err(store_error(&source.id))?;
        let Some(mut record) = record else { return Ok(()) };
        record.content = Some(content);
        self.servers.put_server(&record).await.map_err(store_error(&source.id))
    }

    /// Approves quarantined tools of the cached list: all, or these if their definitions are still the ones that were
    /// shown. Returns the pins after the approval.
    pub async fn approve(
        &self,
        source: &PinnedSource,
        tools: Option<&[(String, ContentHash)]>,
        name_users: NameUsers<'_>,
        now_millis: i64,
    ) -> Result<ServerPins, CacheError> {
        let unknown_server = || CacheError::UnknownServer(source.id.clone());
        let before = self.pins(source).await?.ok_or_else(unknown_server)?;
        let is_unchanged = |name: &str, pin: ContentHash| {
            let mut quarantined = before.decision.quarantined.iter().map(|quarantined| &quarantined.tool);
            quarantined.find(|tool| *tool.spec.name == *name).is_none_or(|tool| tool.hash == pin)
        };
        if let Some((name, _)) =
            tools.unwrap_or_default().iter().find(|(name, pin)| !is_unchanged(name, *pin))
        {
            return Err(CacheError::DefinitionChanged(name.clone()));
        }
        let names: Option<Vec<String>> =
            tools.map(|tools| tools.iter().map(|(name, _)| name.clone()).collect());
        self.put_definitions(&source.key(), &before.decision.approval_records(names.as_deref(), now_millis)?)
            .await?;
        let mut after = self.pins(source).await?.ok_or_else(unknown_server)?;
        after.decision.names = self.claim_names(
            source,
            &after.decision,
            Some(&after.record),
            name_users,
            (ClaimTime::Later, now_millis),
        );
        self.store_approvals(&source.id, &mut after).await?;
        Ok(after)
    }

    /// Every definition that a server ever sent as configured now, by tool, oldest first.
    pub async fn definitions(&self, source: &PinnedSource) -> Result<Vec<StoredDefinition>, CacheError> {
        self.servers.definitions(&source.key()).await.map_err(store_error(&source.id))
    }

    /// Removes a server and its pins, for all its configurations. Returns whether there was one.
    pub async fn remove(&self, server: &SourceId) -> Result<bool, CacheError> {
        let prefix = key_prefix(server);
        let mut removed = false;
        for record in self.servers.servers().await.map_err(store_error(server))? {
            if record.id.as_str().starts_with(&prefix) {
                removed |= self.servers.forget_server(&record.id).await.map_err(store_error(server))?;
            }
        }
        Ok(removed)
    }

    /// Writes concurrently, so that the store can group them into one commit.
    async fn put_definitions(
        &self,
        server: &SourceId,
        records: &[StoredDefinition],
    ) -> Result<(), CacheError> {
        let writes = records.iter().map(|record| self.servers.put_definition(server, record));
        try_join_all(writes).await.map_err(store_error(server)).map(drop)
    }
}

/// The hashes of the valid definitions in a list, as they are compared with pins.
pub(crate) fn definition_hashes(
    config: &McpServerConfig,
    family: RevisionFamily,
    tools: &[RawJson],
) -> HashMap<Arc<str>, ContentHash> {
    let valid = validate_tools(tools, config.pinned_source().validation_rules(Some(family)));
    valid.valid.into_iter().map(|tool| (tool.spec.name, tool.hash)).collect()
}

/// The approvals in a record; `None` if there are none or another version wrote them.
pub(super) fn stored_approvals(record: &ServerRecord) -> Option<ToolApprovals> {
    ToolApprovals::from_stored(record.tool_approvals.as_ref()?, &record.cached_tools)
}

/// The records with their approvals, read by as many threads as there are processors.
async fn with_approvals(
    records: Vec<ServerRecord>,
) -> Result<Vec<(ServerRecord, Option<ToolApprovals>)>, CacheError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part_length = records.len().div_ceil(threads).max(1);
    let (mut rest, mut parts) = (records.into_iter(), Vec::with_capacity(threads));
    while rest.len() > 0 {
        let part: Vec<ServerRecord> = rest.by_ref().take(part_length).collect();
        parts.push(tokio::task::spawn_blocking(move || read_all_approvals(part)));
    }
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.await.map_err(all_servers_error)?);
    }
    Ok(all)
}

fn read_all_approvals(records: Vec<ServerRecord>) -> Vec<(ServerRecord, Option<ToolApprovals>)> {
    records.into_iter().map(read_approvals).collect()
}

fn read_approvals(record: ServerRecord) -> (ServerRecord, Option<ToolApprovals>) {
    let approvals = stored_approvals(&record);
    (record, approvals)
}

pub(super) fn all_servers_error(error: impl Display) -> CacheError {
    CacheError::Store { subject: "all servers".to_owned(), message: error.to_string() }
}

pub(super) fn store_error(server: &SourceId) -> impl FnOnce(StorageError) -> CacheError {
    let subject = format!("server `{server}`");
    move |error| CacheError::Store { subject, message: error.to_string() }
}

#[cfg(test)]
#[path = "server_cache_tests.rs"]
mod tests;
