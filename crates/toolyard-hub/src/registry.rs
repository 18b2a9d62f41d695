//! All tools by name and by capability, as an immutable snapshot that is swapped whole.
//!
//! The maps are persistent tries: replacing one source copies only the paths to its own tools, and readers go on
//! with the snapshot they hold. See `docs/design/0002-persistent-registry.md`.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use rpds::HashTrieMapSync;
use toolyard_core::{Capability, CapabilityTable, SourceId, SourceInfo, Tool};

use crate::{
    breaker::BreakerSettings,
    candidate::{Source, SourceState, ToolCandidate},
    rules::RoutingRules,
    suggest::did_you_mean,
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

/// One name: the preferred candidate, its equals right behind it, then the others.
#[derive(Debug, Clone)]
struct NameEntry {
    candidates: Candidates,
    equals: usize,
}

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
        }
    }

    /// The tools as they are now.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Registers a source, or replaces all tools it had. What is known of its health stays.
    pub fn replace(&self, info: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.current.load());
        let state = match next.sources.get(&info.id) {
            Some(entry) => Arc::clone(&entry.source.state),
            None => {
                let sequence = self.next_sequence.fetch_add(1, Ordering::Relaxed);
                Arc::new(SourceState::new(sequence, self.breaker))
            }
        };
        let source = Arc::new(Source { info, state });
        let mut registration = Registration::default();
        let candidates = self.candidates(&source, tools, &mut registration);
        next.take_out(&source.info.id, &candidates);
        next.put_in(source, candidates, &mut registration);
        self.current.store(Arc::new(next));
        registration
    }

    /// Takes a source and its tools out. Whether there was one.
    pub fn remove(&self, source: &SourceId) -> bool {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Snapshot::clone(&self.current.load());
        let known = next.sources.contains_key(source);
        next.take_out(source, &[]);
        next.sources.remove_mut(source);
        self.current.store(Arc::new(next));
        known
    }

    fn candidates(
        &self,
        source: &Arc<Source>,
        tools: Vec<Arc<dyn Tool>>,
        registration: &mut Registration,
    ) -> Vec<Arc<ToolCandidate>> {
        let mut seen = std::collections::HashSet::with_capacity(tools.len());
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
        candidates
    }
}

impl Snapshot {
    /// The seeds' `find_tool_by_name`: all candidates of a name, and how many of the first are equals.
    pub fn find(&self, name: &str) -> Option<(&[Arc<ToolCandidate>], usize)> {
        let entry = self.by_name.get(name)?;
        Some((&entry.candidates, entry.equals))
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

    /// All sources with their tools, by id.
    pub fn sources(&self) -> Vec<SourceEntry> {
        let mut sources: Vec<_> = self.sources.values().cloned().collect();
        sources.sort_by(|one, other| one.source.info.id.cmp(&other.source.info.id));
        sources
    }

    /// The preferred candidate of every name, by name.
    pub fn preferred(&self) -> Vec<Arc<ToolCandidate>> {
        let mut tools: Vec<_> =
            self.by_name.values().filter_map(|entry| entry.candidates.first()).map(Arc::clone).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools
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
                let entry = self.by_name.get(name)?;
                let (used, passed_over) = entry.candidates.split_at_checked(entry.equals)?;
                Some(Collision {
                    name: Arc::clone(name),
                    used: used.to_vec(),
                    passed_over: passed_over.to_vec(),
                })
            })
            .collect();
        collisions.sort_by(|one, other| one.name.cmp(&other.name));
        collisions
    }

    /// Tool names near to one that does not exist.
    pub fn names_near(&self, wanted: &str) -> Vec<&str> {
        did_you_mean(self.by_name.keys().map(AsRef::as_ref), wanted)
    }

    /// Source ids near to one that does not exist.
    pub fn sources_near(&self, wanted: &str) -> Vec<&str> {
        did_you_mean(self.sources.keys().map(SourceId::as_str), wanted)
    }

    /// Takes a source's tools out of all indexes; names that `staying` has too are left for `put_in` to replace.
    fn take_out(&mut self, id: &SourceId, staying: &[Arc<ToolCandidate>]) {
        let Some(entry) = self.sources.get(id).cloned() else { return };
        let staying: std::collections::HashSet<&str> =
            staying.iter().map(|tool| tool.name.as_ref()).collect();
        for tool in entry.tools.iter().filter(|tool| !staying.contains(tool.name.as_ref())) {
            self.set_candidate(&tool.name, id, None);
        }
        let capabilities: std::collections::HashSet<&Capability> =
            entry.tools.iter().flat_map(|tool| &tool.capabilities).collect();
        for capability in capabilities {
            let Some(mut by_source) = self.by_capability.get(capability).cloned() else { continue };
            by_source.remove_mut(id);
            if by_source.is_empty() {
                self.by_capability.remove_mut(capability);
            } else {
                self.by_capability.insert_mut(capability.clone(), by_source);
            }
        }
    }

    fn put_in(
        &mut self,
        source: Arc<Source>,
        tools: Vec<Arc<ToolCandidate>>,
        registration: &mut Registration,
    ) {
        let id = source.info.id.clone();
        let mut by_capability: std::collections::HashMap<&Capability, Vec<Arc<ToolCandidate>>> =
            std::collections::HashMap::new();
        for tool in &tools {
            if self.set_candidate(&tool.name, &id, Some(tool)) {
                registration.collisions.push(Arc::clone(&tool.name));
            }
            for capability in &tool.capabilities {
                by_capability.entry(capability).or_default().push(Arc::clone(tool));
            }
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
        source: &SourceId,
        tool: Option<&Arc<ToolCandidate>>,
    ) -> bool {
        let known: &[Arc<ToolCandidate>] =
            self.by_name.get(name).map_or(&[], |entry| entry.candidates.as_ref());
        let others = known.iter().filter(|candidate| candidate.source_id() != source);
        let candidates: Vec<Arc<ToolCandidate>> = others.chain(tool).map(Arc::clone).collect();
        let collides = candidates.len() > 1;
        if candidates.is_empty() {
            self.by_name.remove_mut(name);
        } else {
            self.by_name.insert_mut(Arc::clone(name), NameEntry::new(candidates));
        }
        if collides && !self.collisions.contains_key(name) {
            self.collisions.insert_mut(Arc::clone(name), ());
        } else if !collides && self.collisions.contains_key(name) {
            self.collisions.remove_mut(name);
        }
        collides
    }
}

impl NameEntry {
    /// Between candidates that are not equals, the operator's pin and the priority decide, never past success.
    fn new(mut candidates: Vec<Arc<ToolCandidate>>) -> Self {
        candidates.sort_by_key(|candidate| (!candidate.pinned, candidate.priority, candidate.sequence()));
        let (mut equals, mut others) = (Vec::with_capacity(candidates.len()), Vec::new());
        for candidate in candidates {
            match equals.first() {
                None => equals.push(candidate),
                Some(preferred) if candidate.equivalent_to(preferred) => equals.push(candidate),
                Some(_) => others.push(candidate),
            }
        }
        let count = equals.len();
        equals.append(&mut others);
        Self { candidates: equals.into(), equals: count }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
