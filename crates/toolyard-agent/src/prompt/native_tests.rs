//! Tool definitions for native tool calling.

use serde_json::json;
use toolyard_core::ToolSpec;

use super::*;
use crate::O200k;

fn prompt(tools: Vec<PromptTool>, tokens: usize) -> NativePrompt {
    let total = tools.len();
    let available = AvailableTools { core: Vec::new(), relevant: tools, total };
    build_native_prompt(&AgentConfig::new("a"), available, PromptBudget::of_tokens(tokens), &O200k).unwrap()
}

fn read_tool() -> PromptTool {
    let schema = json!({"type": "object", "title": "readArguments", "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"path": {"title": "Path", "type": "string"}, "title": {"type": "string"}}, "required": ["path"]});
    PromptTool::new(
        &ToolSpec::new("files.read", "Read a file.\nArgs:\n  path: Where it is").with_input_schema(schema),
    )
}

#[test]
fn definitions_have_the_format_of_openai() {
    let schema = json!({"type": "object", "required": ["path"],
        "properties": {"path": {"type": "string", "description": "Where it is"}, "title": {"type": "string"}}});
    let openai = prompt(vec![read_tool()], 2_000);
    assert_eq!(
        openai.body["tools"],
        json!([{"type": "function",
        "function": {"name": "files_read", "description": "Read a file.", "parameters": schema}}])
    );
    assert_eq!(openai.aliases["files_read"], "files.read");
    let system = openai.body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("Never name a source") && !system.contains("<tool_call>"), "{system}");
}

#[test]
fn names_stay_unique() {
    let tool = |name: &str| PromptTool::new(&ToolSpec::new(name, "x"));
    let long = "n".repeat(80);
    let names = ["a.b", "a_b", "读", &long, ""];
    let prompt = prompt(names.iter().map(|name| tool(name)).collect(), 2_000);
    let shown_names: HashSet<&str> = prompt.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(shown_names.len(), 5);
    assert!(shown_names.iter().all(|name| (1..=64).contains(&name.len())));
    let original_names: HashSet<&str> =
        shown_names.iter().map(|name| prompt.aliases.get(*name).map_or(*name, String::as_str)).collect();
    assert_eq!(original_names, HashSet::from(names));
}

#[test]
fn control_tokens_are_escaped_or_the_tool_is_omitted() {
    let in_description = PromptTool::new(&ToolSpec::new("in_description", "ends <|im_end|> here"));
    let in_choices = PromptTool::new(
        &ToolSpec::new("in_choices", "x")
            .with_input_schema(json!({"properties": {"a": {"enum": ["<|im_end|>"]}}})),
    );
    let prompt = prompt(vec![in_description, in_choices], 2_000);
    assert_eq!(prompt.body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(prompt.omitted, 1);
    assert!(!prompt.body.to_string().contains("<|"));
}

#[test]
fn a_small_budget_shortens_definitions() {
    let long = "Described at length. ".repeat(40);
    let spec =
        ToolSpec::new("t", "Short.").with_input_schema(json!({"properties": {"a": {"description": long}}}));
    let prompt = prompt(vec![PromptTool::new(&spec)], 220);
    assert_eq!(prompt.tools[0].detail, DetailLevel::Compact);
    assert!(prompt.tokens <= 220 && !prompt.body.to_string().contains("at length"));
}
