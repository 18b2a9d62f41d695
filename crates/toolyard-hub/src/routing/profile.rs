//! Profiles: which tools an endpoint offers, on which surface, within which limits.

use std::{sync::Arc, time::Duration};

use toolyard_core::{SourceId, ToolPattern, matches_wildcards};

use crate::{
    output::budget::Budget,
    registry::{candidate::ToolCandidate, name_entry::NameMatches},
};

/// Default output budget for MCP clients, in characters. Most clients truncate or ask the user at about 25,000 tokens;
/// this is about half of that.
pub const CLIENT_OUTPUT_BUDGET_CHARS: usize = 50_000;
/// Default idle timeout for calls of MCP clients; progress restarts it. Clients have limits of their own and cancel.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// The tool that reads stored results; offered wherever outputs may be truncated.
const READ_RESULT: &str = "read_result";

/// What one endpoint offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name; empty for the default profile.
    pub name: Arc<str>,
    /// How tools are listed.
    pub surface: Surface,
    /// Ids of offered sources, with `*` as wildcard; empty means all.
    pub servers: Vec<String>,
    /// Offered tools, as [`ToolPattern`]s; empty means all.
    pub tools: Vec<String>,
    /// Denied tools, as [`ToolPattern`]s; takes precedence over `tools`.
    pub deny: Vec<String>,
    /// Output budget.
    pub budget: Budget,
    /// Idle timeout of a call.
    pub timeout: Duration,
    /// Enclosing profile: nothing is offered that it does not offer.
    pub within: Option<Arc<Self>>,
}

/// How tools are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    /// All tools.
    Full,
    /// Three tools that find and call the others.
    Search,
    /// Whichever costs fewer tokens.
    #[default]
    Auto,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: Arc::from(""),
            surface: Surface::default(),
            servers: Vec::new(),
            tools: Vec::new(),
            deny: Vec::new(),
            budget: Budget::Characters(CLIENT_OUTPUT_BUDGET_CHARS),
            timeout: CLIENT_IDLE_TIMEOUT,
            within: None,
        }
    }
}

impl Profile {
    /// Whether every tool of every source is allowed.
    pub fn allows_everything(&self) -> bool {
        let within = self.within.as_ref().is_none_or(|enclosing| enclosing.allows_everything());
        within && self.servers.is_empty() && self.tools.is_empty() && self.deny.is_empty()
    }

    /// Whether servers and patterns allow this tool of this source.
    pub fn allows(&self, tool: &str, source: &str) -> bool {
        let matches_any =
            |patterns: &[String]| patterns.iter().any(|text| ToolPattern::parse(text).matches(tool, source));
        let is_of_servers =
            || self.servers.is_empty() || self.servers.iter().any(|server| matches_wildcards(server, source));
        let within = || self.within.as_ref().is_none_or(|enclosing| enclosing.allows(tool, source));
        !matches_any(&self.deny)
            && is_of_servers()
            && (self.tools.is_empty() || matches_any(&self.tools))
            && within()
    }

    /// Whether the profile includes this source, apart from its patterns of tools.
    pub fn includes_source(&self, source: &str) -> bool {
        let within = self.within.as_ref().is_none_or(|enclosing| enclosing.includes_source(source));
        let matches = || self.servers.iter().any(|server| matches_wildcards(server, source));
        within && (self.servers.is_empty() || matches())
    }

    /// Whether prompts and resources of its sources are offered too; not if only individual tools are.
    pub fn includes_content(&self) -> bool {
        let within = self.within.as_ref().is_none_or(|enclosing| enclosing.includes_content());
        within && (self.tools.is_empty() || !self.servers.is_empty())
    }

    /// Whether a candidate is offered: it is allowed, or reads the results that this profile truncates.
    pub fn offers(&self, candidate: &ToolCandidate) -> bool {
        self.allows_everything()
            || self.allows(&candidate.name, candidate.source_id().as_str())
            || self.is_needed_result_reader(candidate)
    }

    /// The candidates to call for a name: the offered ones among the equivalents, else the first other offered candidate,
    /// unless the name belongs to a source that the profile allows.
    pub fn candidates_to_call(&self, found: NameMatches<'_>) -> Vec<Arc<ToolCandidate>> {
        let equivalents: Vec<_> =
            found.equivalents.iter().filter(|candidate| self.offers(candidate)).map(Arc::clone).collect();
        if !equivalents.is_empty() {
            return equivalents;
        }
        self.bare_name_candidate(found).map(Arc::clone).into_iter().collect()
    }

    /// The candidate that is offered under the bare name; none if the name belongs to a source that the profile allows and
    /// that does not offer it now.
    pub fn bare_name_candidate<'a>(&'a self, found: NameMatches<'a>) -> Option<&'a Arc<ToolCandidate>> {
        let belongs_here = |other: &&Arc<ToolCandidate>| {
            let owner = other.yields_to.as_ref().filter(|_| !other.owns_name);
            owner.is_some_and(|owner| self.allows(&other.name, owner.as_str()))
        };
        let equivalent = found.equivalents.iter().find(|candidate| self.offers(candidate));
        equivalent.or_else(|| self.non_equivalents(found).find(|other| !belongs_here(other)))
    }

    /// Offered candidates of a name that are not equivalent to the preferred one. A native tool that is not preferred cannot
    /// be named, so it is not offered.
    pub fn non_equivalents<'a>(
        &'a self,
        found: NameMatches<'a>,
    ) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        let can_be_named =
            |other: &&Arc<ToolCandidate>| !SourceId::is_native_hint(other.source_id().as_str());
        found.non_equivalents().filter(can_be_named).filter(|other| self.offers(other))
    }

    fn is_needed_result_reader(&self, candidate: &ToolCandidate) -> bool {
        let source = candidate.source_id().as_str();
        let denied = || self.deny.iter().any(|text| ToolPattern::parse(text).matches(READ_RESULT, source));
        *candidate.name == *READ_RESULT
            && source == SourceId::NATIVE
            && self.budget != Budget::Unlimited
            && !denied()
            && self.within.as_ref().is_none_or(|enclosing| enclosing.offers(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(servers: &[&str], tools: &[&str], deny: &[&str]) -> Profile {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Profile { servers: owned(servers), tools: owned(tools), deny: owned(deny), ..Profile::default() }
    }

    #[test]
    fn a_default_profile_allows_everything() {
        assert!(Profile::default().allows_everything() && Profile::default().allows("any", "where"));
    }

    #[test]
    fn servers_tools_and_deny_rules_all_apply() {
        let office = profile(&["excel", "word*"], &["read_*", "write_*@word2"], &["*_secret"]);
        assert!(office.allows("read_cells", "excel") && office.allows("write_page", "word2"));
        assert!(!office.allows("write_page", "word1") && !office.allows("read_cells", "files"));
        assert!(!office.allows("read_secret", "excel"));
        assert!(!profile(&[], &["*@excel"], &[]).allows("upload@excel", "evil"), "a name is no source");
        assert!(
            office.includes_source("excel") && !office.includes_source("files") && office.includes_content()
        );
        assert!(!profile(&[], &["read_*"], &[]).includes_content());
    }

    #[test]
    fn a_nested_profile_allows_nothing_that_its_parent_denies() {
        let office = Arc::new(profile(&["excel"], &[], &["delete_*"]));
        let all = Profile { within: Some(Arc::clone(&office)), ..Profile::default() };
        assert!(
            !all.allows_everything() && all.allows("read_cells", "excel") && all.includes_source("excel")
        );
        assert!(
            !all.allows("delete_row", "excel")
                && !all.allows("read_cells", "files")
                && !all.includes_source("files")
        );
        let readers = Profile { within: Some(office), ..profile(&[], &["read_*", "delete_*"], &[]) };
        assert!(readers.allows("read_cells", "excel") && !readers.allows("write_cells", "excel"));
        assert!(!readers.allows("delete_row", "excel") && !readers.includes_content());
    }
}
