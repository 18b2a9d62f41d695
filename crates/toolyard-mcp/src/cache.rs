//! What is remembered of servers between processes: their lists, their pins, and every definition they ever had.
//!
//! A server is remembered together with the hash of how it is reached. One that is configured anew is a server never
//! seen: nothing of the old one counts for it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::try_join_all;
use toolyard_core::{
    BoxFuture, ContentHash, ProtocolEra, RawJson, ServerRecord, Servers, SourceId, ToolDefinition,
    TrustDecision,
};

use crate::{
    config::{HttpKind, McpServerConfig, TransportConfig},
    definition::{FirstSight, JudgeRules, NotBlocked, PinDecision, decide, judge_list},
    shelf::Shelf,
};

/// Why something could not be remembered or found.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The store failed.
    #[error("the store failed to remember or find server {server}: {message}")]
    Store {
        /// Which server; `all` for the list of them.
        server: String,
        /// What the store said.
        message: String,
    },
    /// There is no list of tools to approve.
    #[error("server {0} was never seen as it is configured; connect it first")]
    NeverSeen(SourceId),
    /// Nothing to approve.
    #[error(transparent)]
    NotBlocked(#[from] NotBlocked),
    /// What would be approved is not what was shown.
    #[error("{0} changed again since it was shown; look at it once more")]
    ChangedAgain(String),
}

/// A server as it was last seen, and what follows from that for its tools.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// What was stored.
    pub record: ServerRecord,
    /// Which of its tools serve, wait, or are quarantined.
    pub decision: PinDecision,
}

/// What is needed of a server that is not running.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) era: Option<ProtocolEra>,
    pub(crate) shelf: Shelf,
    pub(crate) content: Option<RawJson>,
}

/// Remembers servers by way of a store.
#[derive(Clone)]
pub struct ServerCache {
    servers: Arc<dyn Servers>,
}

impl std::fmt::Debug for ServerCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCache").finish_non_exhaustive()
    }
}

impl ServerCache {
    /// A cache over this store.
    pub fn new(servers: Arc<dyn Servers>) -> Self {
        Self { servers }
    }

    /// A cache that forgets everything when the process ends.
    pub fn in_memory() -> Self {
        Self::new(Arc::<MemoryServers>::default())
    }

    async fn decided(
        &self,
        config: &McpServerConfig,
        record: ServerRecord,
    ) -> Result<Remembered, CacheError> {
        let history = self.definitions(config).await?;
        let list = judge_list(&record.cached_tools, rules(config, record.era));
        let decision = decide(&history, list, first_sight(config), record.seen_at);
        Ok(Remembered { record, decision })
    }

    /// The tools of all servers of these that were seen as they are configured now, as it was decided on them then:
    /// nothing is judged anew, because nothing of it changed.
    pub(crate) async fn shelves(
        &self,
        configs: &[McpServerConfig],
    ) -> Result<HashMap<SourceId, Kept>, CacheError> {
        let records = self.servers.servers().await.map_err(failed("all"))?;
        let by_key: HashMap<SourceId, &McpServerConfig> =
            configs.iter().map(|config| (key(config), config)).collect();
        let mut shelves = HashMap::new();
        for record in records {
            let Some(config) = by_key.get(&record.id) else { continue };
            let kept = record.shelf.as_ref().and_then(|kept| Shelf::kept(kept, &record.cached_tools));
            let shelf = match kept {
                Some(shelf) => shelf,
                // It was remembered by an earlier version.
                None => match self.recall(config).await? {
                    Some(remembered) => Shelf::of(remembered.decision),
                    None => continue,
                },
            };
            let kept = Kept { era: record.era, shelf, content: record.content };
            shelves.insert(config.id.clone(), kept);
        }
        Ok(shelves)
    }

    /// One server, if it was seen as it is configured now.
    pub async fn recall(&self, config: &McpServerConfig) -> Result<Option<Remembered>, CacheError> {
        match self.servers.server(&key(config)).await.map_err(failed(&config.id))? {
            Some(record) => self.decided(config, record).await.map(Some),
            None => Ok(None),
        }
    }

    /// Decides on the list that a server just sent and remembers it. Pins are written before the list, so that no tool
    /// ever serves, now or after a crash, with a definition that is not remembered.
    pub async fn take_in(
        &self,
        config: &McpServerConfig,
        era: Option<ProtocolEra>,
        tools: Vec<RawJson>,
        now: i64,
    ) -> Result<PinDecision, CacheError> {
        let history = self.definitions(config).await?;
        let decision = decide(&history, judge_list(&tools, rules(config, era)), first_sight(config), now);
        self.put(&key(config), &decision.records).await?;
        let shelf = Shelf::keep(&decision, &tools);
        let before = self.servers.server(&key(config)).await.map_err(failed(&config.id))?;
        let record = ServerRecord {
            shelf,
            content: before.and_then(|before| before.content),
            id: key(config),
            configuration: config.fingerprint(),
            era,
            cached_tools: tools,
            seen_at: now,
        };
        self.servers.put_server(&record).await.map_err(failed(&config.id))?;
        Ok(decision)
    }

    /// Remembers what a server offers besides tools; none where the server itself is not remembered.
    pub async fn keep_content(&self, config: &McpServerConfig, content: RawJson) -> Result<(), CacheError> {
        let record = self.servers.server(&key(config)).await.map_err(failed(&config.id))?;
        let Some(mut record) = record else { return Ok(()) };
        record.content = Some(content);
        self.servers.put_server(&record).await.map_err(failed(&config.id))
    }

    /// Approves what waits for a person in the remembered list: everything, or these tools if they are still what was
    /// shown. The answer is how things stand afterwards.
    pub async fn approve(
        &self,
        config: &McpServerConfig,
        tools: Option<&[(String, ContentHash)]>,
        now: i64,
    ) -> Result<Remembered, CacheError> {
        let never_seen = || CacheError::NeverSeen(config.id.clone());
        let before = self.recall(config).await?.ok_or_else(never_seen)?;
        let shown = |name: &str, pin: ContentHash| {
            let waiting = before.decision.blocked.iter().find(|blocked| *blocked.tool.spec.name == *name);
            waiting.is_none_or(|blocked| blocked.tool.hash == pin)
        };
        if let Some((name, _)) = tools.unwrap_or_default().iter().find(|(name, pin)| !shown(name, *pin)) {
            return Err(CacheError::ChangedAgain(name.clone()));
        }
        let names: Option<Vec<String>> =
            tools.map(|tools| tools.iter().map(|(name, _)| name.clone()).collect());
        self.put(&key(config), &before.decision.approval(names.as_deref(), now)?).await?;
        let mut after = self.recall(config).await?.ok_or_else(never_seen)?;
        after.record.shelf = Shelf::keep(&after.decision, &after.record.cached_tools);
        self.servers.put_server(&after.record).await.map_err(failed(&config.id))?;
        Ok(after)
    }

    /// Every definition a server ever had as it is configured now, by tool and oldest first, with dates.
    pub async fn definitions(&self, config: &McpServerConfig) -> Result<Vec<ToolDefinition>, CacheError> {
        self.servers.definitions(&key(config)).await.map_err(failed(&config.id))
    }

    /// Forgets a server and its pins, however it was configured; whether there was one.
    pub async fn forget(&self, server: &SourceId) -> Result<bool, CacheError> {
        let start = format!("{server}{SEPARATOR}");
        let mut found = false;
        for record in self.servers.servers().await.map_err(failed(server))? {
            if record.id.as_str().starts_with(&start) {
                found |= self.servers.forget_server(&record.id).await.map_err(failed(server))?;
            }
        }
        Ok(found)
    }

    /// All at once, so that a store can make one commit of them.
    async fn put(&self, server: &SourceId, records: &[ToolDefinition]) -> Result<(), CacheError> {
        let writes = records.iter().map(|record| self.servers.put_definition(server, record));
        try_join_all(writes).await.map_err(failed(server)).map(drop)
    }
}

/// Between a server's name and how it is reached; it cannot be part of a name.
const SEPARATOR: char = '#';

/// Under what a server is remembered: its name and how it is reached. Two projects may use one name for two servers, and
/// neither must undo what was approved for the other.
fn key(config: &McpServerConfig) -> SourceId {
    format!("{}{SEPARATOR}{}", config.id, config.fingerprint()).into()
}

/// What a list is judged by: mirrored headers exist in the modern era over Streamable HTTP only.
fn rules(config: &McpServerConfig, era: Option<ProtocolEra>) -> JudgeRules {
    let streamable =
        matches!(config.transport, TransportConfig::Http { kind: HttpKind::Auto | HttpKind::Streamable, .. });
    JudgeRules { mirrored_headers: streamable && era == Some(ProtocolEra::Modern) }
}

fn first_sight(config: &McpServerConfig) -> FirstSight {
    if config.strict { FirstSight::Ask } else { FirstSight::Trust }
}

fn failed(server: &(impl ToString + ?Sized)) -> impl FnOnce(String) -> CacheError {
    let server = server.to_string();
    move |message| CacheError::Store { server, message }
}

/// Servers remembered as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryServers(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    servers: BTreeMap<SourceId, ServerRecord>,
    definitions: BTreeMap<SourceId, BTreeMap<(String, ContentHash), ToolDefinition>>,
    trust: BTreeMap<(String, String), TrustDecision>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, String>>;

impl MemoryServers {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T: Send + 'static>(&self, act: impl FnOnce(&mut Memory) -> T) -> Answer<'static, T> {
        let answer = act(&mut self.memory());
        Box::pin(async { Ok(answer) })
    }
}

impl Servers for MemoryServers {
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> Answer<'a, ()> {
        self.answer(|memory| {
            memory.servers.insert(server.id.clone(), server.clone());
        })
    }

    fn servers(&self) -> Answer<'_, Vec<ServerRecord>> {
        self.answer(|memory| memory.servers.values().cloned().collect())
    }

    fn server<'a>(&'a self, id: &'a SourceId) -> Answer<'a, Option<ServerRecord>> {
        self.answer(|memory| memory.servers.get(id).cloned())
    }

    fn forget_server<'a>(&'a self, id: &'a SourceId) -> Answer<'a, bool> {
        self.answer(|memory| {
            memory.definitions.remove(id);
            memory.servers.remove(id).is_some()
        })
    }

    fn put_definition<'a>(&'a self, server: &'a SourceId, definition: &'a ToolDefinition) -> Answer<'a, ()> {
        self.answer(|memory| {
            let known = memory.definitions.entry(server.clone()).or_default();
            let key = (definition.tool.clone(), definition.hash);
            known.entry(key).or_insert_with(|| definition.clone()).approved |= definition.approved;
        })
    }

    fn definitions<'a>(&'a self, server: &'a SourceId) -> Answer<'a, Vec<ToolDefinition>> {
        self.answer(|memory| {
            let known = memory.definitions.get(server).into_iter().flat_map(BTreeMap::values);
            let mut known: Vec<ToolDefinition> = known.cloned().collect();
            known.sort_by(|one, other| {
                (&one.tool, one.first_seen_at, one.hash).cmp(&(&other.tool, other.first_seen_at, other.hash))
            });
            known
        })
    }

    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> Answer<'a, ()> {
        self.answer(|memory| {
            memory.trust.insert((decision.kind.clone(), decision.subject.clone()), decision.clone());
        })
    }

    fn remove_trust<'a>(&'a self, kind: &'a str, subject: &'a str) -> Answer<'a, bool> {
        self.answer(|memory| memory.trust.remove(&(kind.to_owned(), subject.to_owned())).is_some())
    }

    fn trusted<'a>(&'a self, kind: &'a str) -> Answer<'a, Vec<TrustDecision>> {
        self.answer(|memory| {
            memory.trust.values().filter(|decision| decision.kind == kind).cloned().collect()
        })
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
