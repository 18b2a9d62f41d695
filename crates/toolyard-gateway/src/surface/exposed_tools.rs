//! [`ExposedTools`]: the tools of a profile under their exposed names, the names that clients see: the tool's own name, or
//! `source.tool` where tools of several sources share a name and are not equivalent.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use toolyard_core::{ListedTool, SourceId, ToolCallRequest};
use toolyard_hub::{Profile, Snapshot, ToolCandidate};

use super::{
    definition::{definition, definition_size, distinguished},
    surface_choice::ToolListSize,
};
use crate::naming::tool_names::{UnnamedTool, assign_tool_names};

/// A tool name and, unless it is the preferred tool of that name, its source.
type ToolKey = (Arc<str>, Option<SourceId>);

/// The tools that a profile exposes at one moment.
#[derive(Debug)]
pub(crate) struct ExposedTools {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Sorted by exposed name.
    pub(crate) tools: Vec<ExposedTool>,
    pub(crate) size: ToolListSize,
    /// Indices of `tools`, built at the first search.
    by_tool: OnceLock<HashMap<ToolKey, usize>>,
}

#[derive(Debug)]
pub(crate) struct ExposedTool {
    pub(crate) name: Arc<str>,
    /// The source to call; none if the tool's own name is enough.
    pub(crate) source: Option<SourceId>,
    /// The candidate whose definition is shown.
    pub(crate) candidate: Arc<ToolCandidate>,
    /// What distinguishes it from the other tools of its name, from the settings of their sources.
    pub(crate) distinction: Option<String>,
}

impl ExposedTools {
    pub(crate) fn new(snapshot: Arc<Snapshot>, profile: &Profile) -> Self {
        let (unnamed, candidates) = unnamed_tools(&snapshot, profile);
        let names = assign_tool_names(&unnamed);
        let bytes = candidates.iter().map(|candidate| definition_size(candidate.spec())).sum();
        let mut tools: Vec<ExposedTool> = names
            .into_iter()
            .zip(unnamed)
            .zip(candidates)
            .map(|((name, tool), candidate)| {
                let distinction = snapshot.distinction(&candidate, Some(profile));
                ExposedTool { name, source: tool.source, candidate, distinction }
            })
            .collect();
        tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self { snapshot, size: ToolListSize { tools: tools.len(), bytes }, tools, by_tool: OnceLock::new() }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&ExposedTool> {
        let index = self.tools.binary_search_by(|known| (*known.name).cmp(name)).ok()?;
        self.tools.get(index)
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
        let by_tool = self.by_tool.get_or_init(|| {
            let key = |known: &ExposedTool| (Arc::clone(&known.candidate.name), known.source.clone());
            self.tools.iter().enumerate().map(|(index, known)| (key(known), index)).collect()
        });
        let find =
            |source| by_tool.get(&(Arc::clone(&tool.name), source)).and_then(|index| self.tools.get(*index));
        let is_equivalent = |known: &&ExposedTool| {
            std::ptr::eq(Arc::as_ptr(&known.candidate), tool) || known.candidate.equivalent_to(tool)
        };
        find(Some(tool.source_id().clone())).or_else(|| find(None).filter(is_equivalent))
    }

    /// The tools with this name of their own, under whichever name they are exposed.
    pub(crate) fn with_own_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ExposedTool> {
        self.tools.iter().filter(move |tool| *tool.candidate.name == *name)
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

/// For each tool name, the candidate that has the bare name, which also represents its equivalents, and every candidate
/// that is not equivalent to it. If the bare name is ambiguous, no candidate has it. Denied tools are left out, but keep their name. The two lists have the same order.
fn unnamed_tools(snapshot: &Snapshot, profile: &Profile) -> (Vec<UnnamedTool>, Vec<Arc<ToolCandidate>>) {
    let (mut tools, mut candidates) = (Vec::new(), Vec::new());
    for (name, candidates_of_name) in snapshot.candidates_by_name() {
        let bare = profile.bare_name_candidate(candidates_of_name);
        let mut add = |candidate: &Arc<ToolCandidate>, source| {
            // Calls of clients belong to no conversation; those of agents may.
            if candidate.tool.needs_conversation() {
                return;
            }
            let (tool, preferred_source) = (Arc::clone(name), candidate.source_id().clone());
            tools.push(UnnamedTool { tool, source, preferred_source });
            candidates.push(Arc::clone(candidate));
        };
        // Nobody decided which tool has the bare name, so each has its source in its name.
        if !snapshot.contenders(name, Some(profile)).is_empty() {
            let others = profile.non_equivalents(candidates_of_name);
            let offered =
                candidates_of_name.equivalents.iter().filter(|tool| profile.offers(tool)).chain(others);
            offered.filter(|tool| !tool.denied).for_each(|tool| add(tool, Some(tool.source_id().clone())));
            continue;
        }
        // An equivalent represents a denied tool.
        let mut equivalents = candidates_of_name.equivalents.iter().filter(|tool| profile.offers(tool));
        let callable = bare.filter(|bare| !bare.denied).or_else(|| equivalents.find(|tool| !tool.denied));
        if let Some(callable) = callable {
            add(callable, None);
        }
        let others = profile
            .non_equivalents(candidates_of_name)
            .filter(|other| !other.denied && bare.is_none_or(|bare| !Arc::ptr_eq(bare, other)));
        others.for_each(|other| add(other, Some(other.source_id().clone())));
    }
    (tools, candidates)
}
