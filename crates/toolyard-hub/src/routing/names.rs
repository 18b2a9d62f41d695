//! What a name in a call stands for, and under which name a tool is called.
//!
//! A tool is called by its bare name if that reaches it, else as `source.tool`, else as `tool@source`. The last form is
//! always unambiguous, because no tool has an `@` in its name.

use std::sync::Arc;

use toolyard_core::{SourceId, SourceScope};

use crate::{
    registry::{candidate::ToolCandidate, name_entry::NameMatches, snapshot::Snapshot},
    routing::profile::Profile,
};

/// What a name stands for.
#[derive(Debug)]
pub enum NameTarget {
    /// A bare name: the candidates to call, which are equivalent.
    Callable(Vec<Arc<ToolCandidate>>),
    /// A bare name that several sources offer and no setting assigns to one of them.
    Ambiguous(Vec<Arc<ToolCandidate>>),
    /// A name with a source.
    Qualified(Arc<ToolCandidate>),
    /// No tool that can be called now.
    Unknown,
}

impl Snapshot {
    /// What a name stands for, within a profile.
    pub fn resolve_name(&self, name: &str, profile: Option<&Profile>) -> NameTarget {
        if let Some(found) = self.find(name) {
            let contenders = contenders(found, profile);
            if !contenders.is_empty() {
                return NameTarget::Ambiguous(contenders);
            }
            let candidates = match profile {
                Some(profile) => profile.candidates_to_call(found),
                None => found.equivalents.to_vec(),
            };
            if !candidates.is_empty() {
                return NameTarget::Callable(candidates);
            }
        }
        match self.find_qualified(name, profile) {
            Some(candidate) => NameTarget::Qualified(Arc::clone(candidate)),
            None => NameTarget::Unknown,
        }
    }

    /// The tool of a name of the form `source.tool` or `tool@source`; none if several tools have that name.
    pub(crate) fn find_qualified(
        &self,
        name: &str,
        profile: Option<&Profile>,
    ) -> Option<&Arc<ToolCandidate>> {
        let dotted =
            name.match_indices('.').filter_map(|(at, _)| Some((name.get(at + 1..)?, name.get(..at)?)));
        let splits = name.rsplit_once('@').into_iter().chain(dotted);
        let found = splits
            .filter(|(_, source)| !SourceId::is_native_hint(source))
            .filter_map(|(tool, source)| self.find_in(tool, source));
        let mut offered = found.filter(|tool| profile.is_none_or(|profile| profile.offers(tool)));
        let first = offered.next()?;
        offered.next().is_none().then_some(first)
    }

    /// The shortest name by which a call reaches this tool, within a profile; none if no name does.
    pub fn callable_name(&self, tool: &ToolCandidate, profile: Option<&Profile>) -> Option<Arc<str>> {
        if self.reaches(&tool.name, tool, profile) {
            return Some(Arc::clone(&tool.name));
        }
        let source = tool.source_id();
        let forms = [format!("{source}.{}", tool.name), format!("{}@{source}", tool.name)];
        forms.into_iter().find(|form| self.reaches(form, tool, profile)).map(Arc::from)
    }

    fn reaches(&self, name: &str, tool: &ToolCandidate, profile: Option<&Profile>) -> bool {
        let is_tool = |candidate: &Arc<ToolCandidate>| std::ptr::eq(Arc::as_ptr(candidate), tool);
        match self.resolve_name(name, profile) {
            NameTarget::Callable(candidates) => candidates.iter().any(is_tool),
            NameTarget::Qualified(candidate) => is_tool(&candidate),
            NameTarget::Ambiguous(_) | NameTarget::Unknown => false,
        }
    }

    /// The candidates between which a bare name does not decide, within a profile; none if it does.
    pub fn contenders(&self, name: &str, profile: Option<&Profile>) -> Vec<Arc<ToolCandidate>> {
        self.find(name).map(|found| contenders(found, profile)).unwrap_or_default()
    }

    /// What distinguishes a tool from those of the same name that are called by other names; none if it shares its name
    /// with no other, or if nothing of their settings tells them apart.
    pub fn distinction(&self, tool: &ToolCandidate, profile: Option<&Profile>) -> Option<String> {
        let found = self.find(&tool.name)?;
        if found.count() < 2 {
            return None;
        }
        let is_other = |other: &&Arc<ToolCandidate>| {
            !std::ptr::eq(Arc::as_ptr(other), tool)
                && !other.denied
                && !other.equivalent_to(tool)
                && profile.is_none_or(|profile| profile.offers(other))
        };
        let others: Vec<&SourceScope> =
            found.all().filter(is_other).map(|other| &other.source.info.scope).collect();
        if others.is_empty() {
            return None;
        }
        tool.source.info.scope.distinction(tool.source_id().as_str(), others.into_iter())
    }
}

/// The candidates between which a bare name does not decide; none if it does.
pub(crate) fn contenders(found: NameMatches<'_>, profile: Option<&Profile>) -> Vec<Arc<ToolCandidate>> {
    let (bare, others): (_, Vec<&Arc<ToolCandidate>>) = match profile {
        None if !found.is_contested => return Vec::new(),
        None => (found.equivalents.first(), found.non_equivalents().collect()),
        Some(profile) => (profile.bare_name_candidate(found), profile.non_equivalents(found).collect()),
    };
    let Some(bare) = bare else { return Vec::new() };
    let contending = others.into_iter().filter(|other| other.contends_with(bare)).map(Arc::clone);
    let contending: Vec<Arc<ToolCandidate>> = contending.collect();
    if contending.is_empty() {
        return contending;
    }
    std::iter::once(Arc::clone(bare)).chain(contending).collect()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
