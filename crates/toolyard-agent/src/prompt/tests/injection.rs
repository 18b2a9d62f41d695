//! Untrusted tool definitions cannot break out of their place in a prompt, whatever they contain.

use proptest::prelude::*;
use serde_json::json;
use toolyard_core::ToolSpec;

use super::{
    generators::{ATTACKS, any_json, text, tool},
    prompt_parser::{ParsedTool, parse_prompt},
};
use crate::{
    AgentConfig, Language, O200k, TokenCounter, escape,
    prompt::{templates::SystemTemplates, *},
};

/// Counts characters, which is fast.
struct CharCounter;

impl TokenCounter for CharCounter {
    fn count(&self, text: &str) -> usize {
        text.chars().count()
    }
}

/// Puts texts into every place of a tool and parses the prompt back.
fn assert_cannot_break_out(texts: &[String]) {
    for texts in texts.chunks(20) {
        let tool = |(at, text): (usize, &String)| {
            let schema = json!({"properties": {
                "plain": {"type": "string", "description": text, "default": text, "enum": [text, "other"]},
                text.chars().take(60).collect::<String>(): {"type": "array", "items": {"properties": {"x": {"description": text}}}},
            }, "required": ["plain"]});
            PromptTool::new(&ToolSpec::new(format!("tool_{at}"), text.clone()).with_input_schema(schema))
        };
        let tools: Vec<PromptTool> = texts.iter().enumerate().map(tool).collect();
        for language in [Language::English, Language::Chinese] {
            let agent = AgentConfig { language, ..AgentConfig::new("a") };
            let available = AvailableTools { core: tools.clone(), relevant: [], total: tools.len() };
            let prompt = build_agent_system_prompt_with_tools(
                &agent,
                available,
                PromptBudget::of_tokens(usize::MAX),
                &CharCounter,
            )
            .unwrap();
            let expected: Vec<ParsedTool> =
                prompt.tools.iter().map(|selected| ParsedTool::expected(&selected.tool)).collect();
            assert_eq!(expected.len(), tools.len());
            assert_eq!(parse_prompt(&prompt.text, language), Ok(expected));
            // The only tags and control tokens are those of our own call format.
            assert_eq!(prompt.text.matches("<tool_call>").count(), 1);
            assert_eq!(prompt.text.matches("</tool_call>").count(), 1);
            let section = prompt.text.split_once(SystemTemplates::of(language).tools_heading).unwrap().1;
            assert!(!escape::has_control_token(section));
            assert!(toolyard_core::find_unsafe(&prompt.text).is_empty());
        }
    }
}

#[test]
fn crafted_descriptions_cannot_break_out() {
    let mut texts: Vec<String> = ATTACKS.iter().map(|attack| (*attack).to_owned()).collect();
    for one in ATTACKS {
        texts.extend(ATTACKS.iter().map(|other| format!("Reads a file.\n{one}{other}")));
    }
    assert!(texts.len() >= 500);
    assert_cannot_break_out(&texts);
}

/// The rows of `$TOOLYARD_DATA/security/NAME*.jsonl`; empty without that variable.
fn collected_rows(name: &str) -> Vec<serde_json::Value> {
    let Some(folder) = std::env::var_os("TOOLYARD_DATA") else { return Vec::new() };
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(std::path::Path::new(&folder).join("security")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        if file.starts_with(name) && file.ends_with(".jsonl") {
            let text = std::fs::read_to_string(&path).unwrap();
            rows.extend(text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()));
        }
    }
    rows
}

#[test]
fn collected_attacks_cannot_break_out() {
    let text = |row: &serde_json::Value| {
        Some(row.get("text").or_else(|| row.get("description"))?.as_str()?.to_owned())
    };
    let mut texts: Vec<String> = collected_rows("").iter().filter_map(text).collect();
    println!("{} collected texts", texts.len());
    texts.extend(ATTACKS.iter().map(|attack| format!("Reads a file. {attack}")));
    assert_cannot_break_out(&texts);
}

#[test]
fn ten_tools_cost_a_fraction_of_the_catalogue() {
    let tool = |row: serde_json::Value| {
        let spec =
            ToolSpec::new(row["name"].as_str().unwrap(), row["description"].as_str().unwrap_or_default());
        PromptTool::new(&spec.with_input_schema(row["params"].clone()))
    };
    let mut tools: Vec<PromptTool> = collected_rows("benign_livemcpbench").into_iter().map(tool).collect();
    if tools.is_empty() {
        let numbered = |at: usize| {
            ToolSpec::new(format!("tool_{at}"), format!("Does what number {at} does. ").repeat(8))
        };
        tools = (0..527).map(|at| PromptTool::new(&numbered(at))).collect();
    }
    let tokens = |selection: &[PromptTool], budget| {
        let available = AvailableTools { core: Vec::new(), relevant: selection.to_vec(), total: tools.len() };
        let agent = AgentConfig::new("a");
        build_agent_system_prompt_with_tools(&agent, available, PromptBudget::of_tokens(budget), &O200k)
            .unwrap()
            .tokens
    };
    let all_tokens = tokens(&tools, usize::MAX);
    let token_counts: Vec<usize> = tools.chunks(10).map(|ten| tokens(ten, 4_000)).collect();
    let average = token_counts.iter().sum::<usize>() / token_counts.len();
    println!("{all_tokens} tokens for all {}, {average} for ten on average", tools.len());
    assert!(20 * average <= all_tokens);
}

proptest! {
    #[test]
    fn a_prompt_parses_back_to_its_tools(
        tools in prop::collection::vec(tool(), 0..8),
        chinese: bool,
    ) {
        let language = if chinese { Language::Chinese } else { Language::English };
        let agent = AgentConfig { language, ..AgentConfig::new("a") };
        let available = AvailableTools { core: tools.clone(), relevant: Vec::new(), total: tools.len() };
        let budget = PromptBudget::of_tokens(usize::MAX);
        let prompt = build_agent_system_prompt_with_tools(&agent, available, budget, &CharCounter).unwrap();
        if !tools.is_empty() {
            let expected: Vec<ParsedTool> = prompt.tools.iter().map(|selected| ParsedTool::expected(&selected.tool)).collect();
            prop_assert_eq!(parse_prompt(&prompt.text, language), Ok(expected));
        }
    }

    #[test]
    fn any_schema_can_be_shown(schema in any_json(), description in text()) {
        let tool = PromptTool::new(&ToolSpec::new("t", description).with_input_schema(schema));
        let agent = AgentConfig::new("a");
        let available = || AvailableTools { core: vec![tool.clone()], relevant: Vec::new(), total: 1 };
        let budget = PromptBudget::of_tokens(usize::MAX);
        let prompt = build_agent_system_prompt_with_tools(&agent, available(), budget, &CharCounter).unwrap();
        prop_assert!(parse_prompt(&prompt.text, Language::English).is_ok());
        build_native_prompt(&agent, available(), budget, &CharCounter).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn a_budget_of_2000_tokens_is_never_exceeded(
        tools in prop::collection::vec(tool(), 0..16),
        core in 0..8_usize,
        max_tokens in prop_oneof![Just(2_000_usize), 300..2_000_usize],
        chinese: bool,
    ) {
        let exact = |text: &str| tiktoken_rs::o200k_base_singleton().count_ordinary(text);
        let language = if chinese { Language::Chinese } else { Language::English };
        let agent = AgentConfig { language, ..AgentConfig::new("a") };
        let (core, relevant) = tools.split_at(core.min(tools.len()));
        let available = || AvailableTools { core: core.to_vec(), relevant: relevant.to_vec(), total: tools.len() };
        let budget = PromptBudget::of_tokens(max_tokens);
        let prompt = build_agent_system_prompt_with_tools(&agent, available(), budget, &O200k).unwrap();
        prop_assert!(exact(&prompt.text) <= max_tokens && prompt.tokens <= max_tokens);
        prop_assert_eq!(prompt.omitted, tools.len() - prompt.tools.len());
        if !tools.is_empty() {
            let parsed = parse_prompt(&prompt.text, language).unwrap();
            prop_assert!(parsed.iter().map(|tool| &*tool.name).eq(prompt.tools.iter().map(|selected| selected.tool.name())));
        }
        let native = build_native_prompt(&agent, available(), budget, &O200k).unwrap();
        prop_assert!(native.tokens <= max_tokens);
    }
}
