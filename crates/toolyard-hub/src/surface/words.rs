//! What the three tools that stand for all others say of themselves, made from what there is to find. Nothing that a
//! server wrote is in it: only the operator's names of servers, and capabilities of the built-in table.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::json;
use toolyard_core::{Capability, CapabilityTable, OfferedTool, RawJson, grouped};

use super::{
    names::{CALL_TOOL, DESCRIBE_TOOL, SEARCH_TOOLS},
    offer::Offer,
};

/// So many sources are named, those with most tools first.
const SOURCES: usize = 10;
/// So many capabilities are named, those of most tools first.
const CAPABILITIES: usize = 10;
/// No name of a source is shown beyond this many characters.
const LONGEST: usize = 24;
/// How many tools a search brings unless more are wanted.
pub(super) const FOUND: usize = 5;
/// How many tools a search may bring.
pub(super) const MOST_FOUND: usize = 25;

/// The three tools, by name.
pub(super) fn own_tools(offer: &Offer) -> Vec<OfferedTool> {
    [CALL_TOOL, DESCRIBE_TOOL, SEARCH_TOOLS].into_iter().filter_map(|name| own_tool(name, offer)).collect()
}

/// One of the three.
pub(super) fn own_tool(name: &str, offer: &Offer) -> Option<OfferedTool> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let definition = match name {
        SEARCH_TOOLS => json!({
            "name": SEARCH_TOOLS,
            "description": description(offer),
            "inputSchema": {"type": "object", "required": ["query"], "properties": {
                "query": text("What is to be done, in your own words, in any language"),
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND},
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
    Some(OfferedTool { name: name.into(), definition: RawJson::from_value(&definition) })
}

/// What can be found, in at most some 150 tokens.
fn description(offer: &Offer) -> String {
    let tools = match offer.tools.len() {
        1 => "1 tool".to_owned(),
        number => format!("{} tools", grouped(number)),
    };
    let (sources, capabilities) = counted(offer);
    let from = match sources.as_slice() {
        [] => String::new(),
        _ => format!(" of {}", listed(&sources, SOURCES)),
    };
    let abilities = match capabilities.as_slice() {
        [] => String::new(),
        _ => format!(", for {}", listed(&capabilities, CAPABILITIES)),
    };
    format!(
        "Find tools: say what you want to do. There are {tools}{from}{abilities}. Brings their names and \
         parameters; call one with {CALL_TOOL}. Search before you say that something cannot be done."
    )
}

/// Sources and capabilities, those of most tools first.
fn counted(offer: &Offer) -> (Vec<String>, Vec<String>) {
    let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
    let mut capabilities: BTreeMap<&str, usize> = BTreeMap::new();
    let known = known_capabilities();
    for tool in &offer.tools {
        *sources.entry(tool.candidate.source_id().as_str()).or_default() += 1;
        let of_tool: BTreeSet<&str> = tool.candidate.capabilities.iter().map(Capability::as_str).collect();
        for capability in of_tool.intersection(&known) {
            *capabilities.entry(capability).or_default() += 1;
        }
    }
    let sources = most_first(sources).into_iter().map(|(id, tools)| format!("{} ({tools})", short(id)));
    (sources.collect(), most_first(capabilities).into_iter().map(|(name, _)| name.to_owned()).collect())
}

fn known_capabilities() -> BTreeSet<&'static str> {
    CapabilityTable::built_in().capabilities().collect()
}

fn most_first(counts: BTreeMap<&str, usize>) -> Vec<(&str, usize)> {
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

fn short(id: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    let shown: String = id.chars().filter(|letter| plain(*letter)).take(LONGEST).collect();
    if shown.len() == id.len() { shown } else { format!("{shown}…") }
}

fn listed(words: &[String], most: usize) -> String {
    let (shown, rest) = words.split_at_checked(most).unwrap_or((words, &[]));
    match rest.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
