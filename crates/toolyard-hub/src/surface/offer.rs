//! Everything that one profile offers at one moment, by the names it is offered under.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use toolyard_core::{OfferedTool, SourceId, ToolCallRequest};

use super::{
    auto::Weight,
    definition::{definition, weight},
    names::{Wanted, offered_names},
    profile::Profile,
};
use crate::{candidate::ToolCandidate, registry::Snapshot};

/// A tool, and its source where that must be said.
type Target = (Arc<str>, Option<SourceId>);

/// What is offered at one moment.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) snapshot: Arc<Snapshot>,
    /// By name.
    pub(crate) tools: Vec<Offering>,
    pub(crate) weight: Weight,
    by_tool: OnceLock<HashMap<Target, usize>>,
}

/// One tool under the name it is offered by.
#[derive(Debug)]
pub(crate) struct Offering {
    pub(crate) name: Arc<str>,
    /// The source that must be asked; none where the tool's own name says enough.
    pub(crate) source: Option<SourceId>,
    /// Whose definition is shown.
    pub(crate) candidate: Arc<ToolCandidate>,
}

impl Offer {
    pub(crate) fn of(snapshot: Arc<Snapshot>, profile: &Profile) -> Self {
        let (wanted, candidates) = wanted(&snapshot, profile);
        let names = offered_names(&wanted);
        let bytes = candidates.iter().map(|candidate| weight(candidate.spec())).sum();
        let mut tools: Vec<Offering> = names
            .into_iter()
            .zip(wanted)
            .zip(candidates)
            .map(|((name, wanted), candidate)| Offering { name, source: wanted.source, candidate })
            .collect();
        tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self { snapshot, weight: Weight { tools: tools.len(), bytes }, tools, by_tool: OnceLock::new() }
    }

    /// What is offered under this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Offering> {
        let at = self.tools.binary_search_by(|known| (*known.name).cmp(name)).ok()?;
        self.tools.get(at)
    }

    /// Under which name a tool of this source is offered: by itself, or as one of the equals of its name.
    pub(crate) fn offering_of(&self, tool: &ToolCandidate) -> Option<&Offering> {
        let by_tool = self.by_tool.get_or_init(|| {
            let key = |known: &Offering| (Arc::clone(&known.candidate.name), known.source.clone());
            self.tools.iter().enumerate().map(|(at, known)| (key(known), at)).collect()
        });
        let of = |source| by_tool.get(&(Arc::clone(&tool.name), source)).and_then(|at| self.tools.get(*at));
        let equal = |known: &&Offering| {
            std::ptr::eq(Arc::as_ptr(&known.candidate), tool) || known.candidate.equivalent_to(tool)
        };
        of(Some(tool.source_id().clone())).or_else(|| of(None).filter(equal))
    }

    /// All tools as they are listed.
    pub(crate) fn listed(&self) -> Vec<OfferedTool> {
        self.tools.iter().map(Offering::listed).collect()
    }
}

impl Offering {
    pub(crate) fn listed(&self) -> OfferedTool {
        let definition = definition(self.candidate.spec(), &self.name);
        OfferedTool { name: Arc::clone(&self.name), definition }
    }

    /// The call that reaches exactly this tool.
    pub(crate) fn request(&self, request: &ToolCallRequest) -> ToolCallRequest {
        ToolCallRequest {
            id: request.id.clone(),
            tool_name: self.candidate.name.to_string(),
            arguments: request.arguments.clone(),
            source: self.source.as_ref().map(ToString::to_string).or_else(|| request.source.clone()),
        }
    }
}

/// All tools that need a name: of each name the first that is offered, for all that may stand in for it, and everybody
/// who must be named.
fn wanted(snapshot: &Snapshot, profile: &Profile) -> (Vec<Wanted>, Vec<Arc<ToolCandidate>>) {
    let (mut wanted, mut candidates) = (Vec::new(), Vec::new());
    for (tool, found) in snapshot.all() {
        let used = found.used.iter().find(|candidate| profile.offers(candidate));
        let mut others = profile.others(found);
        let Some(preferred) = used.or_else(|| others.next()) else { continue };
        let mut want = |candidate: &Arc<ToolCandidate>, source| {
            let (tool, preferred) = (Arc::clone(tool), preferred.source_id().clone());
            wanted.push(Wanted { tool, source, preferred });
            candidates.push(Arc::clone(candidate));
        };
        want(preferred, None);
        others.for_each(|other| want(other, Some(other.source_id().clone())));
    }
    (wanted, candidates)
}
