//! All tools by name and by capability, as an immutable snapshot that is swapped atomically.
//!
//! The maps are persistent tries: replacing one source copies only the paths to its own tools, and readers keep the
//! snapshot they hold. See `docs/design/0002-persistent-registry.md`.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use rpds::HashTrieMapSync;
use tokio::sync::watch;
use toolyard_core::{Capability, CapabilityTable, SourceId, SourceInfo, SourceKind, Tool};

use crate::{
    registry::{
        candidate::{RegisteredSource, ToolCandidate},
        name_entry::{NameEntry, NameMatches},
        name_suggestions::{NameSignature, did_you_mean},
    },
    resilience::{breaker::BreakerSettings, health::SourceState},
    routing::rules::RoutingRules,
};

/// The tools of all sources. Reads never block; the cost of a change depends on the changed source only.
#[derive(Debug)]
pub struct Registry {
    rules: RoutingRules,
    table: CapabilityTable,
    breaker: BreakerSettings,
    next_sequence: AtomicU64,
    /// Held by writers only.
    writing: Mutex<()>,
    current: ArcSwap<Snapshot>,
    /// Number of changes so far, for subscribers.
    changes: watch::Sender<u64>,
}

/// An immutable view of all tools.
#[derive(Debug, Clone)]
pub struct Snapshot {
    by_name: HashTrieMapSync<Arc<str>, NameEntry>,
    by_capability: HashTrieMapSync<Capability, HashTrieMapSync<SourceId, Candidates>>,
    sources: HashTrieMapSync<SourceId, SourceEntry>,
    collisions: HashTrieMapSync<Arc<str>, ()>,
}

type Candidates = Arc<[Arc<ToolCandidate>]>;

/// A source with its tools.
#[derive(Debug, Clone)]
pub struct SourceEntry {
    /// The source.
    pub source: Arc<RegisteredSource>,
    /// Its tools, in the order it listed them.
    pub tools: Arc<[Arc<ToolCandidate>]>,
}

/// Result of registering a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Number of registered tools.
    pub tools: usize,
    /// Names that other sources also have; see [`Snapshot::collisions`].
    pub collisions: Vec<Arc<str>>,
    /// Rejected tools with the reason.
    pub rejected: Vec<(Arc<str>, String)>,
}

/// A name shared by several sources.
#[derive(Debug, Clone)]
pub struct Collision {
    /// The name.
    pub name: Arc<str>,
    /// The preferred candidate, then its equivalents.
    pub used: Vec<Arc<ToolCandidate>>,
    /// Candidates that are called only if their source is named.
    pub skipped: Vec<Arc<ToolCandidate>>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new(rules: RoutingRules, table: CapabilityTable, breaker: BreakerSettings) -> Self {
        let empty = Snapshot {
            by_name: HashTrieMapSync::new_sync(),
            by_capability: HashTrieMapSync::new_sync(),
            sources: HashTrieMapSync::new_sync(),
            collisions: HashTrieMapSync::new_sync(),
        };
        Self {
            rules,
            table,
            breaker,
            next_sequence: AtomicU64::new(0),
            writing: Mutex::new(()),
            current: ArcSwap::from_pointee(empty),
            changes: watch::Sender::new(0),
        }
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Notifies of changes from now on; several changes may be coalesced.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change_to(&self, next: Snapshot) {
        self.current.store(Arc::new(next));
        self.changes.send_modify(|count| *count += 1);
    }

    /// Registers a source, or replaces all its tools; its health state is kept. Ids that are reserved as hints for native
    /// tools are rejected for other sources.
    pub fn replace(&self, info: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        if SourceId::is_native_hint(info.id.as_str()) && info.kind != SourceKind::Native {
            return reserved(&info.id, &tools);
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.current.load());
        let state = match next.sources.get(&info.id) {
            Some(entry) => Arc::clone(&entry.source.state),
            None => {
                let sequence = self.next_sequence.fetch_add(1, Ordering::Relaxed);
                Arc::new(SourceState::new(sequence, &info.id, self.breaker))
            }
        };
        let source = Arc::new(RegisteredSource { info, state });
        let mut registration = Registration::default();
        let candidates = self.candidates(&source, tools, &mut registration);
        next.put_in(source, candidates, &mut registration);
        self.change_to(next);
        registration
    }

    /// Removes a source; returns whether it existed.
    pub fn remove(&self, source: &SourceId) -> bool {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.current.load());
        let Some(entry) = next.sources.get(source).cloned() else { return false };
        for tool in entry.tools.iter() {
            next.set_candidate(&tool.name, Some(tool), None);
        }
        next.remove_capabilities(&entry);
        next.sources.remove_mut(source);
        self.change_to(next);
        true
    }

    fn candidates(
        &self,
        source: &Arc<RegisteredSource>,
        tools: Vec<Arc<dyn Tool>>,
        registration: &mut Registration,
    ) -> Vec<Arc<ToolCandidate>> {
        let mut seen = HashSet::with_capacity(tools.len());
        let mut candidates = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = Arc::clone(&tool.spec().name);
            if name.is_empty() {
                registration.rejected.push((name, "a tool needs a name".to_owned()));
            } else if !seen.insert(Arc::clone(&name)) {
                registration
                    .rejected
                    .push((name, "the source lists this name twice; the first one is used".to_owned()));
            } else {
                candidates.push(Arc::new(ToolCandidate::new(source, tool, &self.rules, &self.table)));
            }
        }
        source.state.retain_tools(|tool| seen.contains(tool));
        candidates
    }
}

impl Snapshot {
    /// The candidates of a name (`find_tool_by_name` in the specification).
    pub fn find(&self, name: &str) -> Option<NameMatches<'_>> {
        self.by_name.get(name).map(NameEntry::found)
    }

    /// The tool of this name in one source.
    pub fn find_in(&self, name: &str, source: &str) -> Option<&Arc<ToolCandidate>> {
        let standing = || {
            let entry = self.sources.get(source)?;
            Some((true, entry.tools.first()?.priority, entry.source.state.sequence))
        };
        self.by_name.get(name)?.of_source(source, standing())
    }

    /// All tools with a capability.
    pub fn find_by_capability(&self, capability: &str) -> Vec<Arc<ToolCandidate>> {
        let Some(by_source) = self.by_capability.get(capability) else { return Vec::new() };
        by_source.values().flat_map(|candidates| candidates.iter().map(Arc::clone)).collect()
    }

    /// Whether a source with this id is registered.
    pub fn has_source(&self, id: &str) -> bool {
        self.sources.contains_key(id)
    }

    /// One source with its tools.
    pub fn source(&self, id: &str) -> Option<&SourceEntry> {
        self.sources.get(id)
    }

    /// All sources with their tools, by id.
    pub fn sources(&self) -> Vec<SourceEntry> {
        let mut sources: Vec<_> = self.sources.values().cloned().collect();
        sources.sort_by(|one, other| one.source.info.id.cmp(&other.source.info.id));
        sources
    }

    /// The preferred candidate of every name, by name.
    pub fn preferred(&self) -> Vec<Arc<ToolCandidate>> {
        let mut tools: Vec<_> =
            self.by_name.values().filter_map(NameEntry::preferred).map(Arc::clone).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools
    }

    /// Every name with its candidates, unordered.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<str>, NameMatches<'_>)> {
        self.by_name.iter().map(|(name, entry)| (name, entry.found()))
    }

    /// Number of distinct names.
    pub fn names(&self) -> usize {
        self.by_name.size()
    }

    /// All capabilities of all tools, sorted.
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities: Vec<_> = self.by_capability.keys().cloned().collect();
        capabilities.sort();
        capabilities
    }

    /// Names shared by several sources, sorted.
    pub fn collisions(&self) -> Vec<Collision> {
        let mut collisions: Vec<_> = self
            .collisions
            .keys()
            .filter_map(|name| {
                let found = self.find(name)?;
                Some(Collision {
                    name: Arc::clone(name),
                    used: found.used.to_vec(),
                    skipped: found.not_used().map(Arc::clone).collect(),
                })
            })
            .collect();
        collisions.sort_by(|one, other| one.name.cmp(&other.name));
        collisions
    }

    /// Tool names similar to an unknown one.
    pub fn similar_names(&self, wanted: &str) -> Vec<&str> {
        did_you_mean(self.by_name.iter().map(|(name, entry)| (name.as_ref(), entry.shape)), wanted)
    }

    /// Source ids similar to an unknown one.
    pub fn similar_sources(&self, wanted: &str) -> Vec<&str> {
        let nameable = self.sources.keys().map(SourceId::as_str).filter(|id| !SourceId::is_native_hint(id));
        did_you_mean(nameable.map(|id| (id, NameSignature::of(id))), wanted)
    }

    /// Removes a source's tools from the capability index.
    fn remove_capabilities(&mut self, entry: &SourceEntry) {
        let capabilities: HashSet<&Capability> =
            entry.tools.iter().flat_map(|tool| &tool.capabilities).collect();
        for capability in capabilities {
            let Some(mut by_source) = self.by_capability.get(capability).cloned() else { continue };
            by_source.remove_mut(&entry.source.info.id);
            if by_source.is_empty() {
                self.by_capability.remove_mut(capability);
            } else {
                self.by_capability.insert_mut(capability.clone(), by_source);
            }
        }
    }

    /// Replaces the tools of a source.
    fn put_in(
        &mut self,
        source: Arc<RegisteredSource>,
        tools: Vec<Arc<ToolCandidate>>,
        registration: &mut Registration,
    ) {
        let id = source.info.id.clone();
        let before = self.sources.get(&id).cloned();
        let mut gone: HashMap<&str, &Arc<ToolCandidate>> = HashMap::new();
        if let Some(entry) = &before {
            self.remove_capabilities(entry);
            gone.extend(entry.tools.iter().map(|tool| (tool.name.as_ref(), tool)));
        }
        let mut by_capability: HashMap<&Capability, Vec<Arc<ToolCandidate>>> = HashMap::new();
        for tool in &tools {
            let old = gone.remove(tool.name.as_ref());
            if self.set_candidate(&tool.name, old, Some(tool)) {
                registration.collisions.push(Arc::clone(&tool.name));
            }
            for capability in &tool.capabilities {
                by_capability.entry(capability).or_default().push(Arc::clone(tool));
            }
        }
        for old in gone.into_values() {
            self.set_candidate(&old.name, Some(old), None);
        }
        for (capability, candidates) in by_capability {
            let known = self.by_capability.get(capability);
            let mut by_source = known.cloned().unwrap_or_else(HashTrieMapSync::new_sync);
            by_source.insert_mut(id.clone(), candidates.into());
            self.by_capability.insert_mut(capability.clone(), by_source);
        }
        registration.tools = tools.len();
        self.sources.insert_mut(id, SourceEntry { source, tools: tools.into() });
    }

    /// Replaces one source's candidate under a name and updates the collisions. Returns whether other sources have the name.
    fn set_candidate(
        &mut self,
        name: &Arc<str>,
        old: Option<&Arc<ToolCandidate>>,
        new: Option<&Arc<ToolCandidate>>,
    ) -> bool {
        let changed = NameEntry::changed(self.by_name.get(name), old.map(AsRef::as_ref), new);
        let collides = changed.as_ref().is_some_and(|entry| entry.found().count() > 1);
        match changed {
            Some(entry) => self.by_name.insert_mut(Arc::clone(name), entry),
            None => {
                self.by_name.remove_mut(name);
            }
        }
        if collides && !self.collisions.contains_key(name) {
            self.collisions.insert_mut(Arc::clone(name), ());
        } else if !collides && self.collisions.contains_key(name) {
            self.collisions.remove_mut(name);
        }
        collides
    }
}

/// Rejects every tool of a source with a reserved id.
fn reserved(id: &SourceId, tools: &[Arc<dyn Tool>]) -> Registration {
    let reason = format!("the source id `{id}` is reserved for native tools; give the source another id");
    let mut names: Vec<Arc<str>> = tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
    if names.is_empty() {
        names.push(id.as_str().into());
    }
    let rejected = names.into_iter().map(|name| (name, reason.clone())).collect();
    Registration { rejected, ..Registration::default() }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
