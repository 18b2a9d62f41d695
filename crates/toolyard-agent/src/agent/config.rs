//! [`AgentConfig`]: name, instructions and visible tools of an agent.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use toolyard_core::{ContentHash, ToolPattern};
use toolyard_hub::{Budget, Profile, ToolHub};

use crate::{ReviewRule, RunLimits};

/// Native tools that an agent without a tool list always shows to its model, as far as they exist.
const CORE_TOOLS: [&str; 4] = ["calculate", "get_conversation_history", "get_time", "search_web"];

/// The tool that reads the rest of a long result.
pub(crate) const READ_RESULT: &str = "read_result";

/// The tool by which a model finds tools that are not in its prompt.
pub(crate) const SEARCH_TOOLS: &str = "search_tools";

/// Name of the agent that exists without any settings.
pub const DEFAULT_AGENT: &str = "assistant";

/// One agent as its operator configured it; `AgentConfigPB` in the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// Name.
    pub name: String,
    /// Purpose in one sentence.
    pub description: String,
    /// Further instructions, added to its prompts as written.
    pub instructions: String,
    /// Tools it can use: names or patterns with `*`, optionally followed by `@SOURCE`. Empty means all.
    pub tools: Vec<String>,
    /// The profile of the endpoint it is reached through, which limits its tools further.
    pub profile: Option<Arc<Profile>>,
    /// Enabled features.
    pub capabilities: AgentCapabilities,
    /// Name of its model; the default model if absent.
    pub model: Option<String>,
    /// How long a tool call may go without progress; 2 minutes if absent.
    pub tool_timeout: Option<Duration>,
    /// Language of its prompts.
    pub language: Language,
    /// What each of its runs may use.
    pub limits: RunLimits,
    /// Whether its model judges results that pass verification by rule.
    pub judge: bool,
    /// When its model is asked whether an answer fulfils the request.
    pub review: ReviewRule,
}

/// Features of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Whether it can call tools.
    pub enable_tool_calling: bool,
}

impl Default for AgentCapabilities {
    fn default() -> Self {
        Self { enable_tool_calling: true }
    }
}

/// Language of prompts. Tool definitions are never translated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// The language to answer a question in: Chinese for a Chinese question, else `self`.
    #[must_use]
    pub fn for_question(self, question: &str) -> Self {
        let is_han = |letter: char| matches!(letter, '\u{4e00}'..='\u{9fff}');
        let is_kana = |letter: char| matches!(letter, '\u{3040}'..='\u{30ff}');
        let other_words = question.split(|letter: char| !letter.is_alphabetic() || is_han(letter));
        let other_words = other_words.filter(|word| !word.is_empty()).count();
        let is_chinese = question.chars().filter(|letter| is_han(*letter)).count() > other_words;
        if is_chinese && !question.contains(is_kana) { Self::Chinese } else { self }
    }
}

impl AgentConfig {
    /// An agent that can use every tool.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same agent for a run that belongs to no conversation: without the tools that need one.
    #[must_use]
    pub fn without_conversation(mut self, hub: &ToolHub) -> Self {
        let snapshot = hub.snapshot();
        let sources = snapshot.sources();
        let tools = sources.iter().flat_map(|entry| entry.tools.iter());
        let needing = tools.filter(|candidate| candidate.tool.needs_conversation());
        let deny: Vec<String> =
            needing.map(|candidate| format!("{}@{}", candidate.name, candidate.source_id())).collect();
        if !deny.is_empty() {
            let within = self.profile.take();
            self.profile = Some(Arc::new(Profile { deny, within, ..Profile::default() }));
        }
        self
    }

    /// Whether the agent can use this tool of this source.
    pub fn can_use(&self, tool: &str, source: &str) -> bool {
        let is_listed = || self.tools.iter().any(|pattern| ToolPattern::parse(pattern).matches(tool, source));
        (self.tools.is_empty() || is_listed())
            && self.profile.as_ref().is_none_or(|profile| profile.allows(tool, source))
    }

    /// The tools that the agent can use, as a profile.
    pub(crate) fn tool_profile(&self) -> Profile {
        // An empty pattern matches nothing, because no tool has an empty name.
        let tools =
            if self.capabilities.enable_tool_calling { self.tools.clone() } else { vec![String::new()] };
        Profile { tools, budget: Budget::Unlimited, within: self.profile.clone(), ..Profile::default() }
    }

    /// Whose arguments this agent learns from for an owner of runs: those of the same owner, agent, tools and profile. What
    /// was written for more tools is not shown where there are fewer.
    pub fn learning_scope(&self, owner: &str) -> String {
        let mut text = format!("{:?} {:?}", self.name, self.tools);
        let mut profile = self.profile.as_deref();
        while let Some(Profile { name, servers, tools, within, .. }) = profile {
            // A profile without a name only takes away tools that need a conversation.
            if !name.is_empty() || !servers.is_empty() || !tools.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(text, " {name:?} {servers:?} {tools:?}");
            }
            profile = within.as_deref();
        }
        ContentHash::of_parts([owner.as_bytes(), text.as_bytes()]).to_string()
    }

    /// Whether a usable tool is always part of the prompt: tools listed by name, or `CORE_TOOLS` if none is. Only
    /// native tools count as core tools, because a server can take any name.
    pub fn is_core(&self, tool: &str, is_native: bool) -> bool {
        let exact_entries =
            || self.tools.iter().map(|text| ToolPattern::parse(text)).filter(|pattern| pattern.is_exact());
        if exact_entries().next().is_none() {
            return is_native && CORE_TOOLS.contains(&tool);
        }
        exact_entries().any(|pattern| pattern.name == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(tools: &[&str]) -> AgentConfig {
        AgentConfig { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..AgentConfig::new("a") }
    }

    #[test]
    fn chinese_questions_are_answered_in_chinese() {
        for (question, expected) in [
            ("帮我读取 test.xlsx 的 Sheet1 工作表", Language::Chinese),
            ("现在上海几点了？", Language::Chinese),
            ("What does 你好 mean?", Language::English),
            ("東京の天気を教えて", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::English.for_question(question), expected, "{question}");
        }
        assert_eq!(Language::Chinese.for_question("Read it"), Language::Chinese);
    }

    #[test]
    fn without_a_tool_list_all_tools_are_usable_and_native_core_tools_are_core() {
        let agent = agent(&[]);
        assert!(agent.can_use("anything", "excel") && !agent.is_core("anything", true));
        assert!(agent.is_core("calculate", true) && !agent.is_core("calculate", false));
    }

    #[test]
    fn listed_names_are_core_and_patterns_only_make_usable() {
        let agent = agent(&["get_time", "read_*", "*@excel", "write@files"]);
        assert!(agent.can_use("get_time", "native") && agent.is_core("get_time", true));
        assert!(agent.can_use("read_file", "files") && !agent.is_core("read_file", true));
        assert!(agent.can_use("apply_formula", "excel") && !agent.can_use("apply_formula", "other"));
        assert!(
            agent.can_use("write", "files")
                && !agent.can_use("write", "excel2")
                && agent.is_core("write", true)
        );
        assert!(!agent.can_use("calculate", "native") && !agent.is_core("calculate", true));
    }

    #[test]
    fn the_profile_limits_usable_tools() {
        let profile = Profile { deny: vec!["delete_*".to_owned()], ..Profile::default() };
        let agent = AgentConfig { profile: Some(Arc::new(profile)), ..agent(&["*@excel"]) };
        assert!(agent.can_use("read", "excel") && !agent.can_use("read", "files"));
        assert!(!agent.can_use("delete_row", "excel"));
    }

    #[test]
    fn a_name_with_an_at_sign_is_no_tool_of_another_source() {
        let agent = agent(&["*@excel", "mail@home"]);
        assert!(!agent.can_use("upload@excel", "evil") && !agent.can_use("mail@home", "post"));
        assert!(!agent.is_core("mail@home", true));
    }
}
