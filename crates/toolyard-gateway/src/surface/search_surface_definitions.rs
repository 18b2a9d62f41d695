//! Definitions of the search surface's tools. They describe what can be found without quoting any server: only server ids,
//! which the operator chose, and capabilities of the built-in table.

use std::{cmp::Reverse, collections::BTreeSet};

use serde_json::json;
use toolyard_core::{CapabilityTable, ListedTool, RawJson, group_digits};

use super::exposed_tools::ExposedTools;
use crate::naming::tool_names::{CALL_TOOL, DESCRIBE_TOOL, SEARCH_TOOLS};

const MAX_NAMED_SOURCES: usize = 10;
const MAX_NAMED_CAPABILITIES: usize = 10;
const MAX_SOURCE_CHARS: usize = 24;
/// Search results that are shown with their parameters if the caller sets no limit.
pub(super) const DEFAULT_RESULTS: usize = 5;
pub(super) const MAX_RESULTS: usize = 25;

/// The tools of the search surface, sorted by name.
pub(super) fn search_surface(tools: &ExposedTools) -> Vec<ListedTool> {
    [CALL_TOOL, DESCRIBE_TOOL, SEARCH_TOOLS]
        .into_iter()
        .filter_map(|name| search_surface_tool(name, tools))
        .collect()
}

pub(super) fn search_surface_tool(name: &str, tools: &ExposedTools) -> Option<ListedTool> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let definition = match name {
        SEARCH_TOOLS => json!({
            "name": SEARCH_TOOLS,
            "description": search_description(tools),
            "inputSchema": {"type": "object", "required": ["query"], "properties": {
                "query": text("What is to be done, in your own words, in any language"),
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS},
            }},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
        DESCRIBE_TOOL => json!({
            "name": DESCRIBE_TOOL,
            "description": "Show a tool's whole definition, where what search_tools shows of its parameters is not enough.",
            "inputSchema": {"type": "object", "required": ["name"], "properties": {"name": text("As search_tools shows it")}},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
        CALL_TOOL => json!({
            "name": CALL_TOOL,
            "description": "Call a tool that search_tools found.",
            "inputSchema": {"type": "object", "required": ["name"], "properties": {
                "name": text("As search_tools shows it"),
                "arguments": {"type": "object", "description": "As its parameters say"},
            }},
        }),
        _ => return None,
    };
    Some(ListedTool { name: name.into(), definition: RawJson::from_value(&definition) })
}

/// What can be found, in at most about 150 tokens.
fn search_description(exposed: &ExposedTools) -> String {
    let tools = match exposed.tools.len() {
        1 => "1 tool".to_owned(),
        number => format!("{} tools", group_digits(number)),
    };
    let (sources, capabilities) = sources_and_capabilities(exposed);
    let from = match sources.as_slice() {
        [] => String::new(),
        _ => format!(" of {}", join_first(&sources, MAX_NAMED_SOURCES)),
    };
    let abilities = match capabilities.as_slice() {
        [] => String::new(),
        _ => format!(", for {}", join_first(&capabilities, MAX_NAMED_CAPABILITIES)),
    };
    format!(
        "Find tools: say what you want to do. There are {tools}{from}{abilities}. Brings their names and \
         parameters; call one with {CALL_TOOL}. Search before you say that something cannot be done."
    )
}

/// Sources and capabilities, those with the most tools first.
fn sources_and_capabilities(exposed: &ExposedTools) -> (Vec<String>, Vec<String>) {
    let built_in: BTreeSet<&str> = CapabilityTable::built_in().capabilities().collect();
    let sources = exposed.source_counts.iter().map(|(source, count)| (source.as_str(), *count));
    let capabilities =
        exposed.capability_counts.iter().map(|(capability, count)| (capability.as_str(), *count));
    let capabilities = capabilities.filter(|(capability, _)| built_in.contains(capability));
    let sources =
        sorted_by_count(sources).into_iter().map(|(id, tools)| format!("{} ({tools})", shortened(id)));
    (sources.collect(), sorted_by_count(capabilities).into_iter().map(|(name, _)| name.to_owned()).collect())
}

/// The most frequent first; those of one count stay in order.
fn sorted_by_count<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = counts.collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

fn shortened(id: &str) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    let shown: String = id.chars().filter(is_plain).take(MAX_SOURCE_CHARS).collect();
    if shown.len() == id.len() { shown } else { format!("{shown}…") }
}

fn join_first(words: &[String], max: usize) -> String {
    let (shown, rest) = words.split_at_checked(max).unwrap_or((words, &[]));
    match rest.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
