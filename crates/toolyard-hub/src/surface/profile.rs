//! What one door offers to whoever comes in by it: which tools, in which form, within which limits.

use std::{sync::Arc, time::Duration};

use toolyard_core::{SourceId, ToolPattern, matches_wildcards};

use crate::{budget::Budget, candidate::ToolCandidate, names::Found};

/// How much of a result a client gets where nobody said how much. Most clients cut at some 25,000 tokens, or ask the
/// person whether so much may be taken in; this is about half of it.
pub const CLIENT_BUDGET: usize = 50_000;
/// How long a tool may be silent when a client calls it. Whoever reports progress may go on; clients have limits of their
/// own and cancel.
pub const CLIENT_PATIENCE: Duration = Duration::from_mins(2);
/// The tool that reads kept results. Whoever may get a part of a result may read the rest of it.
const READ_RESULT: &str = "read_result";

/// What is offered at one door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What it is called; empty for the one without a name.
    pub name: Arc<str>,
    /// In which form tools are offered.
    pub surface: Surface,
    /// Sources whose tools are offered, `*` stands for anything; empty means all.
    pub servers: Vec<String>,
    /// Tools that are offered, as [`ToolPattern`]s; empty means all.
    pub tools: Vec<String>,
    /// Tools that are not offered, whatever else is said.
    pub deny: Vec<String>,
    /// How much of a result is shown.
    pub budget: Budget,
    /// How long a call may take without a sign of life.
    pub timeout: Duration,
    /// What this one is a part of: nothing is offered that is not offered there.
    pub within: Option<Arc<Self>>,
}

/// In which form tools are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Surface {
    /// All of them, one by one.
    Full,
    /// Three tools by which the others are found and called.
    Search,
    /// Whichever costs less.
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
            budget: Budget::Characters(CLIENT_BUDGET),
            timeout: CLIENT_PATIENCE,
            within: None,
        }
    }
}

impl Profile {
    /// Whether every tool of every source is offered.
    pub fn is_open(&self) -> bool {
        let within = self.within.as_ref().is_none_or(|whole| whole.is_open());
        within && self.servers.is_empty() && self.tools.is_empty() && self.deny.is_empty()
    }

    /// Whether a tool of this source is offered.
    pub fn allows(&self, tool: &str, source: &str) -> bool {
        let fits =
            |patterns: &[String]| patterns.iter().any(|text| ToolPattern::read(text).fits(tool, source));
        let of_servers =
            || self.servers.is_empty() || self.servers.iter().any(|server| matches_wildcards(server, source));
        let within = || self.within.as_ref().is_none_or(|whole| whole.allows(tool, source));
        !fits(&self.deny) && of_servers() && (self.tools.is_empty() || fits(&self.tools)) && within()
    }

    /// Whether tools of this source may be offered.
    pub fn reaches(&self, source: &str) -> bool {
        let within = self.within.as_ref().is_none_or(|whole| whole.reaches(source));
        let fits = || self.servers.iter().any(|server| matches_wildcards(server, source));
        within && (self.servers.is_empty() || fits())
    }

    /// Whether prompts and resources of the sources it reaches are offered too: not where only single tools are.
    pub fn offers_content(&self) -> bool {
        let within = self.within.as_ref().is_none_or(|whole| whole.offers_content());
        within && (self.tools.is_empty() || !self.servers.is_empty())
    }

    /// Whether a candidate is offered.
    pub fn offers(&self, candidate: &ToolCandidate) -> bool {
        self.is_open()
            || self.allows(&candidate.name, candidate.source_id().as_str())
            || self.reads_results(candidate)
    }

    /// Who may answer for a name: the offered ones among the equals, or else the first of the others that can be named.
    pub(crate) fn chosen(&self, found: Found<'_>) -> Vec<Arc<ToolCandidate>> {
        let used: Vec<_> =
            found.used.iter().filter(|candidate| self.offers(candidate)).map(Arc::clone).collect();
        if !used.is_empty() {
            return used;
        }
        self.others(found).next().map(Arc::clone).into_iter().collect()
    }

    /// Those of a name that are offered and no equals of whoever goes first. A native tool that another goes before
    /// cannot be named, and is not offered.
    pub(crate) fn others<'a>(&'a self, found: Found<'a>) -> impl Iterator<Item = &'a Arc<ToolCandidate>> {
        let can_be_named =
            |other: &&Arc<ToolCandidate>| !SourceId::is_native_hint(other.source_id().as_str());
        found.not_used().filter(can_be_named).filter(|other| self.offers(other))
    }

    fn reads_results(&self, candidate: &ToolCandidate) -> bool {
        let source = candidate.source_id().as_str();
        let denied = || self.deny.iter().any(|text| ToolPattern::read(text).fits(READ_RESULT, source));
        *candidate.name == *READ_RESULT
            && source == SourceId::NATIVE
            && self.budget != Budget::Whole
            && !denied()
            && self.within.as_ref().is_none_or(|whole| whole.offers(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(servers: &[&str], tools: &[&str], deny: &[&str]) -> Profile {
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Profile { servers: texts(servers), tools: texts(tools), deny: texts(deny), ..Profile::default() }
    }

    #[test]
    fn everything_is_offered_unless_something_is_said() {
        assert!(Profile::default().is_open() && Profile::default().allows("any", "where"));
    }

    #[test]
    fn servers_tools_and_what_is_denied_all_count() {
        let office = profile(&["excel", "word*"], &["read_*", "write_*@word2"], &["*_secret"]);
        assert!(office.allows("read_cells", "excel") && office.allows("write_page", "word2"));
        assert!(!office.allows("write_page", "word1") && !office.allows("read_cells", "files"));
        assert!(!office.allows("read_secret", "excel"));
        assert!(office.reaches("excel") && !office.reaches("files") && office.offers_content());
        assert!(!profile(&[], &["read_*"], &[]).offers_content());
    }

    #[test]
    fn a_part_offers_nothing_that_the_whole_does_not() {
        let office = Arc::new(profile(&["excel"], &[], &["delete_*"]));
        let all = Profile { within: Some(Arc::clone(&office)), ..Profile::default() };
        assert!(!all.is_open() && all.allows("read_cells", "excel") && all.reaches("excel"));
        assert!(
            !all.allows("delete_row", "excel") && !all.allows("read_cells", "files") && !all.reaches("files")
        );
        let readers = Profile { within: Some(office), ..profile(&[], &["read_*", "delete_*"], &[]) };
        assert!(readers.allows("read_cells", "excel") && !readers.allows("write_cells", "excel"));
        assert!(!readers.allows("delete_row", "excel") && !readers.offers_content());
    }
}
