//! All tools by name and by capability, as an immutable snapshot that is swapped atomically.
//!
//! The maps are persistent tries: replacing one source copies only the paths to its own tools, and readers keep the
//! snapshot they hold. See `docs/design/0002-persistent-registry.md`.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rpds::HashTrieMapSync;
use tokio::sync::watch;
use toolyard_core::{
    Capability, CapabilityTable, QuarantineNotice, SourceId, SourceInfo, SourceKind, SourceTools, Tool,
};

use crate::{
    registry::{
        candidate::{RegisteredSource, ToolCandidate},
        name_entry::{NameEntry, NameMatches},
        name_suggestions::{NameSummary, did_you_mean},
        recent_changes::{ChangedNames, RecentChanges},
        registration::{BuiltSource, PreparedSource, Registration, RegistrationRules, reject_reserved_id},
    },
    resilience::{breaker::BreakerSettings, health::SourceState},
    routing::rules::RoutingRules,
};

/// The tools of all sources. Reads never block; the cost of a change depends on the changed source only.
#[derive(Debug)]
pub struct Registry {
    rules: ArcSwap<RegistrationRules>,
    breaker: BreakerSettings,
    next_sequence: AtomicU64,
    /// Held by writers only.
    write_lock: Mutex<()>,
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
    /// Names that several sources have.
    collisions: HashTrieMapSync<Arc<str>, ()>,
    recent_changes: RecentChanges,
}

type Candidates = Arc<[Arc<ToolCandidate>]>;

/// A source with its tools.
#[derive(Debug, Clone)]
pub struct SourceEntry {
    /// The source.
    pub source: Arc<RegisteredSource>,
    /// Its tools, in the order it listed them.
    pub tools: Arc<[Arc<ToolCandidate>]>,
    /// Tools that it offers and that await approval.
    pub quarantined: Arc<[QuarantineNotice]>,
}

/// A name shared by several sources.
#[derive(Debug, Clone)]
pub struct Collision {
    /// The name.
    pub name: Arc<str>,
    /// The preferred candidate, then its equivalents.
    pub equivalents: Vec<Arc<ToolCandidate>>,
    /// Candidates that are called only if their source is named.
    pub others: Vec<Arc<ToolCandidate>>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new(rules: RoutingRules, capability_table: CapabilityTable, breaker: BreakerSettings) -> Self {
        Self {
            rules: ArcSwap::from_pointee(RegistrationRules {
                routing: rules,
                capabilities: capability_table,
            }),
            breaker,
            next_sequence: AtomicU64::new(0),
            write_lock: Mutex::new(()),
            current: ArcSwap::from_pointee(Snapshot::empty()),
            changes: watch::Sender::new(0),
        }
    }

    /// The capabilities that a name and a description mention.
    pub fn mentioned_capabilities(&self, name: &str, description: &str) -> Vec<Capability> {
        self.rules.load().capabilities.extract(name, description)
    }

    /// Replaces the rules and applies them to all registered tools. Sources keep their health. Returns whether the rules
    /// changed; subscribers are notified in any case.
    pub fn reconfigure(&self, rules: RoutingRules, capability_table: CapabilityTable) -> bool {
        let _write_lock = self.write_lock.lock();
        let known = self.rules.load();
        if known.routing == rules && known.capabilities == capability_table {
            let mut next = Snapshot::clone(&self.current.load());
            next.recent_changes.add(ChangedNames::default());
            self.publish(next);
            return false;
        }
        let rules = Arc::new(RegistrationRules { routing: rules, capabilities: capability_table });
        self.rules.store(Arc::clone(&rules));
        let current = self.current.load();
        let mut next = Snapshot::empty();
        // The collisions are known and were logged.
        let mut registration = Registration::default();
        for entry in current.sources.values() {
            let tools = entry.tools.iter().map(|candidate| Arc::clone(&candidate.tool)).collect();
            let candidates = rules.candidates(&entry.source, tools, &mut registration);
            let source = Arc::clone(&entry.source);
            next.put_source(source, candidates, entry.quarantined.to_vec(), &mut registration);
        }
        next.recent_changes = current.recent_changes.clone();
        next.recent_changes.add_all_names();
        self.publish(next);
        true
    }

    /// The priority of sources of this kind; smaller is preferred.
    pub fn priority(&self, kind: SourceKind) -> u8 {
        self.rules.load().routing.prefer.priority(kind)
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Notifies of changes from now on; several changes may be coalesced.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn publish(&self, next: Snapshot) {
        self.current.store(Arc::new(next));
        self.changes.send_modify(|count| *count += 1);
    }

    /// Registers a source, or replaces all its tools; its health state is kept. Ids that are reserved as hints for native
    /// tools are rejected for other sources.
    pub fn replace(&self, info: SourceInfo, tools: Vec<Arc<dyn Tool>>) -> Registration {
        self.replace_with_quarantined(info, tools, Vec::new())
    }

    /// Like [`Self::replace`], for a source that also offers tools which await approval.
    pub fn replace_with_quarantined(
        &self,
        info: SourceInfo,
        tools: Vec<Arc<dyn Tool>>,
        quarantined: Vec<QuarantineNotice>,
    ) -> Registration {
        self.replace_all(vec![SourceTools { source: info, tools, quarantined }]).pop().unwrap_or_default()
    }

    /// Registers many sources with different ids in one change; each as [`Self::replace_with_quarantined`] would, in this order.
    pub fn replace_all(&self, sources: Vec<SourceTools>) -> Vec<Registration> {
        let _write_lock = self.write_lock.lock();
        let mut next = Snapshot::clone(&self.current.load());
        let mut changed_names = ChangedNames::default();
        let prepare = |SourceTools { source: info, tools, quarantined }| {
            if SourceId::is_native_hint(info.id.as_str()) && info.kind != SourceKind::Native {
                return PreparedSource::Rejected(reject_reserved_id(&info.id, &tools));
            }
            let state = match next.sources.get(&info.id) {
                Some(entry) => Arc::clone(&entry.source.state),
                None => {
                    let sequence = self.next_sequence.fetch_add(1, Ordering::Relaxed);
                    Arc::new(SourceState::new(sequence, &info.id, self.breaker))
                }
            };
            PreparedSource::New { source: Arc::new(RegisteredSource { info, state }), tools, quarantined }
        };
        let prepared: Vec<PreparedSource> = sources.into_iter().map(prepare).collect();
        let mut registrations = Vec::with_capacity(prepared.len());
        let mut is_changed = false;
        for built in self.rules.load().build_candidates(prepared) {
            let BuiltSource { source, candidates, quarantined, mut registration } = match built {
                Ok(built) => built,
                Err(registration) => {
                    registrations.push(registration);
                    continue;
                }
            };
            let before = next.sources.get(&source.info.id).map(|entry| Arc::clone(&entry.tools));
            changed_names.add(before.iter().flat_map(|tools| tools.iter()).map(|tool| &tool.name));
            changed_names.add(candidates.iter().map(|tool| &tool.name));
            next.put_source(source, candidates, quarantined, &mut registration);
            registrations.push(registration);
            is_changed = true;
        }
        if is_changed {
            next.recent_changes.add(changed_names);
            self.publish(next);
        }
        registrations
    }

    /// Closes the circuit breaker of a source that reported that it is ready.
    pub fn report_ready(&self, source: &SourceId) {
        if let Some(entry) = self.current.load().sources.get(source) {
            entry.source.state.shared.breaker.close();
        }
    }

    /// Removes a source; returns whether it existed.
    pub fn remove(&self, source: &SourceId) -> bool {
        let _write_lock = self.write_lock.lock();
        let mut next = Snapshot::clone(&self.current.load());
        let Some(entry) = next.sources.get(source).cloned() else { return false };
        for tool in entry.tools.iter() {
            next.set_candidate(&tool.name, Some(tool), None);
        }
        next.remove_capabilities(&entry);
        next.sources.remove_mut(source);
        let mut changed_names = ChangedNames::default();
        changed_names.add(entry.tools.iter().map(|tool| &tool.name));
        next.recent_changes.add(changed_names);
        self.publish(next);
        true
    }
}

impl Snapshot {
    fn empty() -> Self {
        Self {
            by_name: HashTrieMapSync::new_sync(),
            by_capability: HashTrieMapSync::new_sync(),
            sources: HashTrieMapSync::new_sync(),
            collisions: HashTrieMapSync::new_sync(),
            recent_changes: RecentChanges::default(),
        }
    }

    /// The names whose candidates may differ from those of an earlier snapshot of the same registry; `None` if all may.
    pub fn changed_names_since(&self, earlier: &Self) -> Option<Vec<&Arc<str>>> {
        self.recent_changes.names_since(&earlier.recent_changes)
    }

    /// The candidates of a name (`find_tool_by_name` in the specification).
    pub fn find(&self, name: &str) -> Option<NameMatches<'_>> {
        self.by_name.get(name).map(NameEntry::matches)
    }

    /// The tool of this name in one source.
    pub fn find_in(&self, name: &str, source: &str) -> Option<&Arc<ToolCandidate>> {
        match self.by_name.get(name)?.in_source(source) {
            (None, true) => self.sources.get(source)?.tools.iter().find(|tool| *tool.name == *name),
            (found, _) => found,
        }
    }

    /// All tools with a capability.
    pub fn find_by_capability(&self, capability: &str) -> Vec<Arc<ToolCandidate>> {
        let Some(by_source) = self.by_capability.get(capability) else { return Vec::new() };
        by_source.values().flat_map(|candidates| candidates.iter().map(Arc::clone)).collect()
    }

    /// The sources that offer a tool of this name which awaits approval, with the reason, by id.
    pub fn quarantined(&self, name: &str) -> Vec<(&SourceId, &QuarantineNotice)> {
        let notices = self.sources.iter().flat_map(|(id, entry)| {
            entry.quarantined.iter().filter(|notice| notice.tool == name).map(move |notice| (id, notice))
        });
        let mut notices: Vec<_> = notices.collect();
        notices.sort_by_key(|(id, _)| *id);
        notices
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

    /// Every tool that can be called, by name; of equivalent ones the preferred one that is not denied.
    pub fn callable(&self) -> Vec<Arc<ToolCandidate>> {
        let can_be_named =
            |tool: &&Arc<ToolCandidate>| !tool.denied && !SourceId::is_native_hint(tool.source_id().as_str());
        let mut tools: Vec<Arc<ToolCandidate>> = Vec::new();
        for entry in self.by_name.values() {
            let found = entry.matches();
            tools.extend(found.equivalents.iter().find(|tool| !tool.denied).map(Arc::clone));
            tools.extend(found.non_equivalents().filter(can_be_named).map(Arc::clone));
        }
        // A stable sort keeps the preferred tool of a name first.
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools
    }

    /// Every name with its candidates, unordered.
    pub fn candidates_by_name(&self) -> impl Iterator<Item = (&Arc<str>, NameMatches<'_>)> {
        self.by_name.iter().map(|(name, entry)| (name, entry.matches()))
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
                    equivalents: found.equivalents.to_vec(),
                    others: found.non_equivalents().map(Arc::clone).collect(),
                })
            })
            .collect();
        collisions.sort_by(|one, other| one.name.cmp(&other.name));
        collisions
    }

    /// Tool names similar to an unknown one.
    pub fn similar_names(&self, unknown: &str) -> Vec<&str> {
        did_you_mean(self.by_name.iter().map(|(name, entry)| (name.as_ref(), entry.summary)), unknown)
    }

    /// Source ids similar to an unknown one.
    pub fn similar_sources(&self, unknown: &str) -> Vec<&str> {
        let selectable = self.sources.keys().map(SourceId::as_str).filter(|id| !SourceId::is_native_hint(id));
        did_you_mean(selectable.map(|id| (id, NameSummary::of(id))), unknown)
    }

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

    fn put_source(
        &mut self,
        source: Arc<RegisteredSource>,
        tools: Vec<Arc<ToolCandidate>>,
        quarantined: Vec<QuarantineNotice>,
        registration: &mut Registration,
    ) {
        let id = source.info.id.clone();
        let before = self.sources.get(&id).cloned();
        let mut removed_tools: HashMap<&str, &Arc<ToolCandidate>> = HashMap::new();
        if let Some(entry) = &before {
            self.remove_capabilities(entry);
            removed_tools.extend(entry.tools.iter().map(|tool| (tool.name.as_ref(), tool)));
        }
        let mut by_capability: HashMap<&Capability, Vec<Arc<ToolCandidate>>> = HashMap::new();
        for tool in &tools {
            let old = removed_tools.remove(tool.name.as_ref());
            if self.set_candidate(&tool.name, old, Some(tool)) {
                registration.collisions.push(Arc::clone(&tool.name));
            }
            for capability in &tool.capabilities {
                by_capability.entry(capability).or_default().push(Arc::clone(tool));
            }
        }
        for old in removed_tools.into_values() {
            self.set_candidate(&old.name, Some(old), None);
        }
        for (capability, candidates) in by_capability {
            let known = self.by_capability.get(capability);
            let mut by_source = known.cloned().unwrap_or_else(HashTrieMapSync::new_sync);
            by_source.insert_mut(id.clone(), candidates.into());
            self.by_capability.insert_mut(capability.clone(), by_source);
        }
        registration.tools = tools.len();
        let entry = SourceEntry { source, tools: tools.into(), quarantined: quarantined.into() };
        self.sources.insert_mut(id, entry);
    }

    /// Replaces one source's candidate of a name and updates the collisions. Returns whether several sources have the name.
    fn set_candidate(
        &mut self,
        name: &Arc<str>,
        old: Option<&Arc<ToolCandidate>>,
        new: Option<&Arc<ToolCandidate>>,
    ) -> bool {
        let entry = NameEntry::updated(self.by_name.get(name), old.map(AsRef::as_ref), new);
        let collides = entry.as_ref().is_some_and(|entry| entry.matches().count() > 1);
        match entry {
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

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
