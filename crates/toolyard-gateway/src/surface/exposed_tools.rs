//! [`ExposedTools`]: the tools of a profile under their exposed names, the names that clients see: the tool's own name, or
//! `source.tool` where tools of several sources share a name and are not equivalent.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use toolyard_core::{Capability, ListedTool, SourceId, ToolCallRequest};
use toolyard_hub::{NameMatches, Profile, Snapshot, ToolCandidate};

use super::{
    definition::{definition, definition_size, distinguished},
    sorted_tools::SortedTools,
    surface_choice::ToolListSize,
};
use crate::naming::tool_names::{
    AssignedNames, UnnamedTool, assign_tool_names, first_choice, possible_names,
};

/// The tools that a profile exposes at one moment.
#[derive(Debug)]
pub(crate) struct ExposedTools {
    pub(crate) snapshot: Arc<Snapshot>,
    profile: Arc<Profile>,
    pub(crate) tools: SortedTools,
    pub(crate) size: ToolListSize,
    /// How many tools each source and each capability has.
    pub(crate) source_counts: BTreeMap<SourceId, usize>,
    pub(crate) capability_counts: BTreeMap<Capability, usize>,
    /// Names that several tools could have had, which therefore none has.
    rejected_names: HashSet<Arc<str>>,
    /// Whether the names were numbered. A numbered name depends on all other names, so every change can change all of them.
    are_numbered: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ExposedTool {
    pub(crate) name: Arc<str>,
    /// The source to call; none if the tool's own name is enough.
    pub(crate) source: Option<SourceId>,
    /// The candidate whose definition is shown.
    pub(crate) candidate: Arc<ToolCandidate>,
    /// What distinguishes it from the other tools of its name, from the settings of their sources.
    pub(crate) distinction: Option<Box<str>>,
}

impl ExposedTools {
    pub(crate) fn new(snapshot: Arc<Snapshot>, profile: &Arc<Profile>) -> Self {
        let mut unnamed = Vec::new();
        for (name, candidates) in snapshot.candidates_by_name() {
            add_unnamed_tools(&snapshot, profile, name, candidates, &mut unnamed);
        }
        let (unnamed, candidates): (Vec<UnnamedTool>, Vec<Arc<ToolCandidate>>) = unnamed.into_iter().unzip();
        let AssignedNames { names, rejected, are_numbered } = assign_tool_names(&unnamed);
        let tools = names.into_iter().zip(unnamed.into_iter().zip(candidates));
        let tools: Vec<ExposedTool> =
            tools.map(|(name, unnamed)| exposed_tool(&snapshot, profile, name, unnamed)).collect();
        let mut exposed = Self {
            snapshot,
            profile: Arc::clone(profile),
            tools: SortedTools::default(),
            size: ToolListSize::default(),
            source_counts: BTreeMap::new(),
            capability_counts: BTreeMap::new(),
            rejected_names: rejected,
            are_numbered,
        };
        tools.iter().for_each(|tool| exposed.count(tool));
        exposed.tools = SortedTools::new(tools);
        exposed
    }

    /// The tools that the profile exposes in a later snapshot, computed from the names that changed since this one. `None` if too
    /// many names changed, or if the change may affect the names of other tools: the list must then be made with [`Self::new`].
    pub(crate) fn updated(&self, snapshot: &Arc<Snapshot>) -> Option<Self> {
        let changed = snapshot.changed_names_since(&self.snapshot)?;
        if self.are_numbered || changed.len() > self.tools.len() / 4 {
            return None;
        }
        let (mut removed, mut added) = (HashSet::new(), Vec::new());
        let mut next = Self {
            snapshot: Arc::clone(snapshot),
            profile: Arc::clone(&self.profile),
            tools: SortedTools::default(),
            size: self.size,
            source_counts: self.source_counts.clone(),
            capability_counts: self.capability_counts.clone(),
            rejected_names: self.rejected_names.clone(),
            are_numbered: false,
        };
        for name in &changed {
            for (unnamed, _) in unnamed_tools(&self.snapshot, &self.profile, name) {
                let name = first_choice(&unnamed);
                // A rejected name is one that several tools could have had. If one of these tools goes, another may get the name.
                let tool = self.tools.find(&name).filter(|_| !self.rejected_names.contains(&name))?;
                next.uncount(tool);
                removed.insert(name);
            }
        }
        let mut added_names = HashSet::new();
        for name in changed {
            for unnamed in unnamed_tools(snapshot, &self.profile, name) {
                let name = first_choice(&unnamed.0);
                let is_taken = self.tools.find(&name).is_some() && !removed.contains(&name);
                if is_taken || self.rejected_names.contains(&name) || !added_names.insert(Arc::clone(&name)) {
                    return None;
                }
                let tool = exposed_tool(snapshot, &self.profile, name, unnamed);
                next.count(&tool);
                added.push(tool);
            }
        }
        next.tools = self.tools.changed(&removed, added);
        Some(next)
    }

    fn count(&mut self, tool: &ExposedTool) {
        self.size.tools += 1;
        self.size.bytes += definition_size(tool.candidate.spec());
        *self.source_counts.entry(tool.candidate.source_id().clone()).or_default() += 1;
        for capability in &tool.candidate.capabilities {
            *self.capability_counts.entry(capability.clone()).or_default() += 1;
        }
    }

    fn uncount(&mut self, tool: &ExposedTool) {
        fn decrement<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
            if let Some(count) = counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(key);
                }
            }
        }
        self.size.tools -= 1;
        self.size.bytes -= definition_size(tool.candidate.spec());
        decrement(&mut self.source_counts, tool.candidate.source_id());
        for capability in &tool.candidate.capabilities {
            decrement(&mut self.capability_counts, capability);
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&ExposedTool> {
        self.tools.find(name)
    }

    /// The call of a tool that awaits approval or is denied, if the name is `source.tool` or the tool's own.
    pub(crate) fn not_callable(&self, request: &ToolCallRequest) -> Option<ToolCallRequest> {
        let name = request.tool_name.as_str();
        let mut splits =
            name.match_indices('.').filter_map(|(dot, _)| Some((name.get(..dot)?, name.get(dot + 1..)?)));
        let is_not_callable = |(source, tool): &(&str, &str)| {
            self.snapshot.quarantined(tool).iter().any(|(id, _)| id.as_str() == *source)
                || self.snapshot.find_in(tool, source).is_some_and(|found| found.denied)
        };
        let quarantined = || Some(self.snapshot.quarantined(name).first()?.0.as_str());
        let denied = || {
            let denied = self.snapshot.find(name)?.all().find(|found| found.denied)?;
            Some(denied.source_id().as_str())
        };
        let own = || Some((quarantined().or_else(denied)?, name));
        let (source, tool) = splits.find(is_not_callable).or_else(own)?;
        Some(ToolCallRequest {
            tool_name: tool.to_owned(),
            source: Some(source.to_owned()),
            ..request.clone()
        })
    }

    /// How a candidate is exposed: by itself, or as an equivalent of the preferred tool of its name.
    pub(crate) fn find_candidate(&self, tool: &ToolCandidate) -> Option<&ExposedTool> {
        let find = |source: Option<SourceId>, preferred_source: SourceId| {
            self.find_unnamed(&UnnamedTool { tool: Arc::clone(&tool.name), source, preferred_source })
        };
        let own = tool.source_id();
        if let Some(found) = find(Some(own.clone()), own.clone()) {
            return Some(found);
        }
        let is_equivalent = |known: &&ExposedTool| {
            std::ptr::eq(Arc::as_ptr(&known.candidate), tool) || known.candidate.equivalent_to(tool)
        };
        let callable = callable_by_bare_name(&self.profile, self.snapshot.find(&tool.name)?)?;
        find(None, callable.source_id().clone()).filter(is_equivalent)
    }

    /// The tools with this name of their own, under whichever name they are exposed, by that name.
    pub(crate) fn with_own_name(&self, name: &str) -> Vec<&ExposedTool> {
        let of_name = unnamed_tools(&self.snapshot, &self.profile, name);
        let mut tools: Vec<&ExposedTool> =
            of_name.iter().filter_map(|(unnamed, _)| self.find_unnamed(unnamed)).collect();
        tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        tools
    }

    /// The tool under the name that it got.
    fn find_unnamed(&self, unnamed: &UnnamedTool) -> Option<&ExposedTool> {
        let is_same =
            |tool: &&ExposedTool| tool.candidate.name == unnamed.tool && tool.source == unnamed.source;
        if self.are_numbered {
            return self.tools.iter().find(is_same);
        }
        let first = first_choice(unnamed);
        if !self.rejected_names.contains(&first) {
            return self.tools.find(&first).filter(is_same);
        }
        possible_names(unnamed).find_map(|name| self.tools.find(&name).filter(is_same))
    }

    pub(crate) fn definitions(&self) -> Vec<ListedTool> {
        self.tools.iter().map(ExposedTool::definition).collect()
    }
}

impl ExposedTool {
    pub(crate) fn definition(&self) -> ListedTool {
        let definition = definition(self.candidate.spec(), &self.name, self.distinction.as_deref());
        ListedTool { name: Arc::clone(&self.name), definition }
    }

    /// The description as a model sees it.
    pub(crate) fn description(&self) -> String {
        distinguished(&self.candidate.spec().description, self.distinction.as_deref())
    }

    /// The request as the hub expects it: with the tool's own name and, if the name is not enough, its source.
    pub(crate) fn to_hub_request(&self, request: &ToolCallRequest) -> ToolCallRequest {
        ToolCallRequest {
            id: request.id.clone(),
            tool_name: self.candidate.name.to_string(),
            arguments: request.arguments.clone(),
            source: self.source.as_ref().map(ToString::to_string).or_else(|| request.source.clone()),
        }
    }
}

/// A tool without its exposed name, and the candidate whose definition is shown.
type UnnamedCandidate = (UnnamedTool, Arc<ToolCandidate>);

fn exposed_tool(
    snapshot: &Snapshot,
    profile: &Profile,
    name: Arc<str>,
    (unnamed, candidate): UnnamedCandidate,
) -> ExposedTool {
    let distinction = snapshot.distinction(&candidate, Some(profile)).map(Into::into);
    ExposedTool { name, source: unnamed.source, candidate, distinction }
}

/// The exposed tools of one name.
fn unnamed_tools(snapshot: &Snapshot, profile: &Profile, name: &str) -> Vec<UnnamedCandidate> {
    let mut tools = Vec::new();
    if let Some(candidates) = snapshot.find(name)
        && let Some(first) = candidates.all().next()
    {
        add_unnamed_tools(snapshot, profile, &first.name, candidates, &mut tools);
    }
    tools
}

/// Adds the candidate that has the bare name, which also represents its equivalents, and every candidate that is not equivalent to
/// it. If the bare name is ambiguous, no candidate has it. Denied tools are left out, but keep their name.
fn add_unnamed_tools(
    snapshot: &Snapshot,
    profile: &Profile,
    name: &Arc<str>,
    candidates: NameMatches<'_>,
    tools: &mut Vec<UnnamedCandidate>,
) {
    let bare = profile.bare_name_candidate(candidates);
    let mut add = |candidate: &Arc<ToolCandidate>, source| {
        // Calls of clients belong to no conversation; those of agents may.
        if candidate.tool.needs_conversation() {
            return;
        }
        let (tool, preferred_source) = (Arc::clone(name), candidate.source_id().clone());
        tools.push((UnnamedTool { tool, source, preferred_source }, Arc::clone(candidate)));
    };
    // Nobody decided which tool has the bare name, so each has its source in its name.
    if !snapshot.contenders(name, Some(profile)).is_empty() {
        let others = profile.non_equivalents(candidates);
        let offered = candidates.equivalents.iter().filter(|tool| profile.offers(tool)).chain(others);
        offered.filter(|tool| !tool.denied).for_each(|tool| add(tool, Some(tool.source_id().clone())));
        return;
    }
    if let Some(callable) = callable_by_bare_name(profile, candidates) {
        add(callable, None);
    }
    let others = profile
        .non_equivalents(candidates)
        .filter(|other| !other.denied && bare.is_none_or(|bare| !Arc::ptr_eq(bare, other)));
    others.for_each(|other| add(other, Some(other.source_id().clone())));
}

/// The candidate that a call by the bare name reaches, unless the name is ambiguous. An equivalent represents a denied tool.
fn callable_by_bare_name<'a>(
    profile: &'a Profile,
    candidates: NameMatches<'a>,
) -> Option<&'a Arc<ToolCandidate>> {
    let mut equivalents = candidates.equivalents.iter().filter(|tool| profile.offers(tool));
    let bare = profile.bare_name_candidate(candidates).filter(|bare| !bare.denied);
    bare.or_else(|| equivalents.find(|tool| !tool.denied))
}

#[cfg(test)]
#[path = "exposed_tools_tests.rs"]
mod tests;
