//! What an agent is: who it is for its model, what it is told, and which tools it may see.

use std::sync::Arc;

use toolyard_core::ToolPattern;
use toolyard_hub::surface::Profile;

/// The tools that every agent sees which nobody gave a list of its own, as far as they exist.
pub const CORE_TOOLS: [&str; 4] = ["calculate", "get_conversation_history", "get_time", "search_web"];

/// The tool by which a model finds the tools that it was not shown.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The name of the agent that exists without any settings.
pub const DEFAULT_AGENT: &str = "assistant";

/// The seeds' `AgentConfigPB`: one agent, as its operator described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// What it is called.
    pub name: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// What it is told beyond that, in the operator's own words.
    pub instructions: String,
    /// Which tools it may see: names, or patterns with `*`, or either with `@SOURCE` behind it. Empty means all.
    pub tools: Vec<String>,
    /// What is offered where it is asked; it may see nothing else. None: everything.
    pub within: Option<Arc<Profile>>,
    /// What it may do.
    pub capabilities: AgentCapabilities,
    /// The model it speaks with; the default one when absent.
    pub model: Option<String>,
    /// The language of the words around the tools.
    pub language: Language,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// Whether it is shown any tools.
    pub enable_tool_calling: bool,
}

impl Default for AgentCapabilities {
    fn default() -> Self {
        Self { enable_tool_calling: true }
    }
}

/// The languages in which a prompt can be written. What tools say of themselves stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// The language in which somebody who asks this is answered: Chinese where it is Chinese, this one otherwise.
    #[must_use]
    pub fn of_question(self, question: &str) -> Self {
        let is_han = |letter: char| matches!(letter, '\u{4e00}'..='\u{9fff}');
        let is_kana = |letter: char| matches!(letter, '\u{3040}'..='\u{30ff}');
        let others = question.split(|letter: char| !letter.is_alphabetic() || is_han(letter));
        let others = others.filter(|word| !word.is_empty()).count();
        let is_chinese = question.chars().filter(|letter| is_han(*letter)).count() > others;
        if is_chinese && !question.contains(is_kana) { Self::Chinese } else { self }
    }
}

impl AgentConfig {
    /// An agent of this name that may see every tool.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            instructions: String::new(),
            tools: Vec::new(),
            within: None,
            capabilities: AgentCapabilities::default(),
            model: None,
            language: Language::default(),
        }
    }

    /// Whether the agent may see a tool of this source.
    pub fn may_see(&self, tool: &str, source: &str) -> bool {
        let fits = || self.tools.iter().any(|pattern| ToolPattern::read(pattern).fits(tool, source));
        (self.tools.is_empty() || fits())
            && self.within.as_ref().is_none_or(|whole| whole.allows(tool, source))
    }

    /// Whether a tool that it may see is always shown: one that is named without `*`, or a usual one when none is. Only a
    /// native tool is a usual one: a server could take any name.
    pub fn is_core(&self, tool: &str, native: bool) -> bool {
        let named = || {
            self.tools.iter().map(|text| (text, ToolPattern::read(text))).filter(|(_, one)| one.names_one())
        };
        if named().next().is_none() {
            return native && CORE_TOOLS.contains(&tool);
        }
        named().any(|(text, pattern)| pattern.name == tool || text == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(tools: &[&str]) -> AgentConfig {
        AgentConfig { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..AgentConfig::new("a") }
    }

    #[test]
    fn who_asks_in_chinese_is_answered_in_chinese() {
        for (question, expected) in [
            ("帮我读取 test.xlsx 的 Sheet1 工作表", Language::Chinese),
            ("现在上海几点了？", Language::Chinese),
            ("What does 你好 mean?", Language::English),
            ("東京の天気を教えて", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(Language::English.of_question(question), expected, "{question}");
        }
        assert_eq!(Language::Chinese.of_question("Read it"), Language::Chinese);
    }

    #[test]
    fn without_a_list_everything_is_seen_and_the_usual_tools_always() {
        let agent = agent(&[]);
        assert!(agent.may_see("anything", "excel") && !agent.is_core("anything", true));
        assert!(agent.is_core("calculate", true) && !agent.is_core("calculate", false));
    }

    #[test]
    fn what_is_named_is_always_shown_and_what_fits_a_pattern_may_be() {
        let agent = agent(&["get_time", "read_*", "*@excel", "write@files"]);
        assert!(agent.may_see("get_time", "native") && agent.is_core("get_time", true));
        assert!(agent.may_see("read_file", "files") && !agent.is_core("read_file", true));
        assert!(agent.may_see("apply_formula", "excel") && !agent.may_see("apply_formula", "other"));
        assert!(
            agent.may_see("write", "files")
                && !agent.may_see("write", "excel2")
                && agent.is_core("write", true)
        );
        assert!(!agent.may_see("calculate", "native") && !agent.is_core("calculate", true));
    }

    #[test]
    fn nothing_is_seen_that_is_not_offered_where_it_is_asked() {
        let door = Profile { deny: vec!["delete_*".to_owned()], ..Profile::default() };
        let agent = AgentConfig { within: Some(Arc::new(door)), ..agent(&["*@excel"]) };
        assert!(agent.may_see("read", "excel") && !agent.may_see("read", "files"));
        assert!(!agent.may_see("delete_row", "excel"));
    }

    #[test]
    fn a_name_may_have_an_at_sign() {
        let agent = agent(&["mail@home"]);
        assert!(agent.may_see("mail@home", "post") && agent.is_core("mail@home", true));
    }
}
