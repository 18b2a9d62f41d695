//! What a caller may call, if a policy decides that: only these tools are listed and found.

use std::sync::Arc;

use parking_lot::Mutex;
use toolyard_core::{CallPolicy, CallerIdentity, Catalogue, PolicySubject, SourceId};
use toolyard_hub::ToolCandidate;

use super::exposed_tools::{ExposedTool, ExposedTools};

/// Lists of tools that are remembered: those of the callers that asked last.
const MAX_CATALOGUES: usize = 64;

/// What one caller may call through one endpoint.
#[derive(Debug)]
pub(super) struct ToolPermissions {
    pub(super) policy: Arc<dyn CallPolicy>,
    pub(super) identity: Option<Arc<CallerIdentity>>,
    pub(super) profile: Arc<str>,
}

impl ToolPermissions {
    /// Whether there are arguments with which the caller may call the tool, or an equivalent that is called in its place.
    pub(super) fn may_call(&self, tool: &ExposedTool, exposed: &ExposedTools) -> bool {
        let subject = PolicySubject { identity: self.identity.as_ref(), agent: None, profile: &self.profile };
        let may_call =
            |candidate: &ToolCandidate| self.policy.may_be_called(&subject, candidate.policy_tool());
        let has_equivalent = || {
            let found = exposed.snapshot.find(&tool.candidate.name);
            tool.source.is_none()
                && found.is_some_and(|found| {
                    found.equivalents.iter().any(|candidate| !candidate.denied && may_call(candidate))
                })
        };
        may_call(&tool.candidate) || has_equivalent()
    }
}

/// The tools that one caller sees.
#[derive(Debug)]
pub(crate) struct VisibleTools {
    pub(super) exposed: Arc<ExposedTools>,
    /// `None` if no policy decides that.
    pub(super) permissions: Option<ToolPermissions>,
}

impl VisibleTools {
    pub(crate) fn exposed(&self) -> &ExposedTools {
        &self.exposed
    }

    pub(super) fn may_call(&self, tool: &ExposedTool) -> bool {
        self.permissions.as_ref().is_none_or(|permissions| permissions.may_call(tool, &self.exposed))
    }

    pub(super) fn find(&self, name: &str) -> Option<&ExposedTool> {
        self.exposed.find(name).filter(|tool| self.may_call(tool))
    }

    /// Whether the caller can call this tool through the endpoint.
    pub(crate) fn contains(&self, tool: &ToolCandidate) -> bool {
        self.exposed.find_candidate(tool).is_some_and(|tool| self.may_call(tool))
    }

    /// Whether the caller can call any tool of this source through the endpoint.
    pub(super) fn has_tools_of(&self, source: &SourceId) -> bool {
        let entry = self.exposed.snapshot.source(source.as_str());
        entry.is_some_and(|entry| entry.tools.iter().any(|tool| !tool.denied && self.contains(tool)))
    }

    /// The tools with this name of their own, under whichever name they are exposed.
    pub(super) fn with_own_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ExposedTool> {
        self.exposed.with_own_name(name).into_iter().filter(move |tool| self.may_call(tool))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ExposedTool> {
        self.exposed.tools.iter().filter(move |tool| self.may_call(tool))
    }
}

/// The parts of a catalogue that callers may call.
#[derive(Debug, Default)]
pub(super) struct PermittedCatalogues(Mutex<Vec<PermittedCatalogue>>);

#[derive(Debug)]
struct PermittedCatalogue {
    whole: Arc<Catalogue>,
    permissions: ToolPermissions,
    permitted: Arc<Catalogue>,
}

impl PermittedCatalogues {
    /// What the caller may call of a catalogue. The pointer stays the same until something changes.
    pub(super) fn get(
        &self,
        whole: Arc<Catalogue>,
        permissions: ToolPermissions,
        exposed: &ExposedTools,
    ) -> Arc<Catalogue> {
        let lock = || self.0.lock();
        let is_known = |known: &&PermittedCatalogue| {
            Arc::ptr_eq(&known.whole, &whole)
                && Arc::ptr_eq(&known.permissions.policy, &permissions.policy)
                && known.permissions.identity == permissions.identity
        };
        if let Some(known) = lock().iter().find(is_known) {
            return Arc::clone(&known.permitted);
        }
        let may_call =
            |name: &str| exposed.find(name).is_some_and(|tool| permissions.may_call(tool, exposed));
        let tools: Vec<_> = whole.tools.iter().filter(|tool| may_call(&tool.name)).cloned().collect();
        let permitted = match tools.len() == whole.tools.len() {
            true => Arc::clone(&whole),
            false => Arc::new(Catalogue { version: whole.version, tools }),
        };
        let mut catalogues = lock();
        if catalogues.len() >= MAX_CATALOGUES {
            catalogues.remove(0);
        }
        catalogues.push(PermittedCatalogue { whole, permissions, permitted: Arc::clone(&permitted) });
        permitted
    }
}

pub(super) fn is_same_policy(one: Option<&Arc<dyn CallPolicy>>, other: Option<&Arc<dyn CallPolicy>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}
