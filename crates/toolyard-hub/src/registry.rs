//! All tools by name and by capability, as an immutable snapshot that is swapped whole.
//!
//! The maps are persistent tries: replacing one source copies only the paths to its own tools, and readers go on
//! with the snapshot they hold. See `docs/design/0002-persistent-registry.md`.

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
    breaker::BreakerSettings,
    candidate::{Source, ToolCandidate},
    health::SourceState,
    names::{Found, NameEntry},
    rules::RoutingRules,
    suggest::{Shape, did_you_mean},
};

/// The tools of all sources; reading never waits for a change, and a change costs what its own tools cost.
#[derive(Debug)]
pub struct Registry {
    rules: RoutingRules,
    table: CapabilityTable,
    breaker: BreakerSettings,
    next_sequence: AtomicU64,
    /// Held by whoever changes the snapshot, never by who reads it.
    writing: Mutex<()>,
    current: ArcSwap<Snapshot>,
    /// How many changes there were, for whoever waits for one.
    changes: watch::Sender<u64>,
}

/// All tools at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    by_name: HashTrieMapSync<Arc<str>, NameEntry>,
    by_capability: HashTrieMapSync<Capability, HashTrieMapSync<SourceId, Candidates>>,
    sources: HashTrieMapSync<SourceId, SourceEntry>,
    collisions: HashTrieMapSync<Arc<str>, ()>,
}

type Candidates = Arc<[Arc<ToolCandidate>]>;

/// A source and the tools it has.
#[derive(Debug, Clone)]
pub struct SourceEntry {
    /// The source.
    pub source: Arc<Source>,
    /// Its tools, in the order it listed them.
    pub tools: Arc<[Arc<ToolCandidate>]>,
}

/// What became of the tools of one registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// How many tools the source now has.
    pub tools: usize,
    /// Names that other sources have too; see [`Snapshot::collisions`].
    pub collisions: Vec<Arc<str>>,
    /// Tools that were left out, with the reason.
    pub rejected: Vec<(Arc<str>, String)>,
}

/// One name that several sources have.
#[derive(Debug, Clone)]
pub struct Collision {
    /// The name.
    pub name: Arc<str>,
    /// Whoever is asked first, then its equals.
    pub used: Vec<Arc<ToolCandidate>>,
    /// Who is not asked unless named.
    pub passed_over: Vec<Arc<ToolCandidate>>,
}

impl Registry {
    /// An empty registry under these rules.
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

    /// The tools as they are now.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Tells of every change from now on; several may be told of at once.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change_to(&self, next: Snapshot) {
        self.current.store(Arc::new(next));
        self.changes.send_modify(|count| *count += 1);
    }

    /// Registers a source, or replaces all tools it had. What is known of its health stays. An id that only hints at
    /// native tools is for native tools: under any other source nothing is registered.
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
        let source = Arc::new(Source { info, state });
        let mut registration = Registration::default();
        let candidates = self.candidates(&source, tools, &mut registration);
        next.put_in(source, candidates, &mut registration);
        self.change_to(next);
        registration
    }

    /// Takes a source and its tools out. Whether there was one.
    pub fn remove(&self, source: &SourceId) -> bool {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.current.load());
        let Some(entry) = next.sources.get(source).cloned() else { return false };
        for tool in entry.tools.iter() {
            next.set_candidate(&tool.name, Some(tool), None);
        }
        next.forget_capabilities(&entry);
        next.sources.remove_mut(source);
        self.change_to(next);
        true
    }

    fn candidates(
        &self,
        source: &Arc<Source>,
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
                    .push((name, "the source lists this name twice; the first one counts".to_owned()));
            } else {
                candidates.push(Arc::new(ToolCandidate::new(source, tool, &self.rules, &self.table)));
            }
        }
        source.state.keep_only(|tool| seen.contains(tool));
        candidates
    }
}

impl Snapshot {
    /// The seeds' `find_tool_by_name`: all candidates of a name, and which of them may answer.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        self.by_name.get(name).map(NameEntry::found)
    }

    /// One source's tool of a name.
    pub fn find_in(&self, name: &str, source: &str) -> Option<&Arc<ToolCandidate>> {
        let standing = || {
            let entry = self.sources.get(source)?;
            Some((true, entry.tools.first()?.priority, entry.source.state.sequence))
        };
        self.by_name.get(name)?.of_source(source, standing())
    }

    /// All tools with a capability, whatever their names.
    pub fn find_by_capability(&self, capability: &str) -> Vec<Arc<ToolCandidate>> {
        let Some(by_source) = self.by_capability.get(capability) else { return Vec::new() };
        by_source.values().flat_map(|candidates| candidates.iter().map(Arc::clone)).collect()
    }

    /// Whether any source has this id.
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

    /// Every name with its candidates, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<str>, Found<'_>)> {
        self.by_name.iter().map(|(name, entry)| (name, entry.found()))
    }

    /// How many different names there are.
    pub fn names(&self) -> usize {
        self.by_name.size()
    }

    /// All capabilities that any tool has, by name.
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities: Vec<_> = self.by_capability.keys().cloned().collect();
        capabilities.sort();
        capabilities
    }

    /// Names that several sources have, by name.
    pub fn collisions(&self) -> Vec<Collision> {
        let mut collisions: Vec<_> = self
            .collisions
            .keys()
            .filter_map(|name| {
                let found = self.find(name)?;
                Some(Collision {
                    name: Arc::clone(name),
                    used: found.used.to_vec(),
                    passed_over: found.not_used().map(Arc::clone).collect(),
                })
            })
            .collect();
        collisions.sort_by(|one, other| one.name.cmp(&other.name));
        collisions
    }

    /// Tool names near to one that does not exist.
    pub fn names_near(&self, wanted: &str) -> Vec<&str> {
        did_you_mean(self.by_name.iter().map(|(name, entry)| (name.as_ref(), entry.shape)), wanted)
    }

    /// Ids near to one that does not exist, of sources that can be named.
    pub fn sources_near(&self, wanted: &str) -> Vec<&str> {
        let nameable = self.sources.keys().map(SourceId::as_str).filter(|id| !SourceId::is_native_hint(id));
        did_you_mean(nameable.map(|id| (id, Shape::of(id))), wanted)
    }

    /// Takes a source's tools out of the capabilities.
    fn forget_capabilities(&mut self, entry: &SourceEntry) {
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

    /// Puts a source's tools in place of those it had.
    fn put_in(
        &mut self,
        source: Arc<Source>,
        tools: Vec<Arc<ToolCandidate>>,
        registration: &mut Registration,
    ) {
        let id = source.info.id.clone();
        let before = self.sources.get(&id).cloned();
        let mut gone: HashMap<&str, &Arc<ToolCandidate>> = HashMap::new();
        if let Some(entry) = &before {
            self.forget_capabilities(entry);
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

    /// Replaces one source's candidate under a name, and keeps the list of collisions. Whether others have the name.
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

/// Nothing is registered, and every tool hears why; without tools, the source does.
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
#[path = "registry_tests.rs"]
mod tests;
