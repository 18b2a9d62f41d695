//! `toolyard tools`: lists, shows and searches tools.

mod search;

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::{ErrorKind, Param, RawJson, SourceId, StoredDefinition, ToolCallRequest, ToolError};
use toolyard_hub::{ToolCandidate, route};
use toolyard_mcp::definition::diff_definitions;
use toolyard_mcp_client::McpManager;

use crate::{cli::ToolsCommand, error::CliError, terminal::Output};

pub(super) async fn run(command: ToolsCommand, toolyard: &Toolyard, output: &Output) -> Result<(), CliError> {
    match command {
        ToolsCommand::List { source, capability } => {
            let mut tools = match source {
                Some(source) => tools_of_source(toolyard, &source)?,
                None => {
                    list_unowned(toolyard, output);
                    toolyard.hub().snapshot().preferred()
                }
            };
            if let Some(wanted) = capability {
                tools.retain(|tool| tool.capabilities.iter().any(|capability| capability.as_str() == wanted));
            }
            list(&tools, output);
        }
        ToolsCommand::Search(arguments) => search::run(&arguments, toolyard, output),
        ToolsCommand::Show { name, history: true } => show_history(toolyard, &name, output).await?,
        ToolsCommand::Show { name, history: false } => show(toolyard, &name, output)?,
    }
    Ok(())
}

fn tools_of_source(toolyard: &Toolyard, id: &str) -> Result<Vec<Arc<ToolCandidate>>, CliError> {
    let mut sources = toolyard.hub().sources();
    if let Some(at) = sources.iter().position(|source| source.info.id.as_str() == id) {
        return Ok(sources.swap_remove(at).tools);
    }
    let known: Vec<&str> = sources.iter().map(|source| source.info.id.as_str()).collect();
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{id}` does not exist"));
    Err(error.with_hint(format!("known sources: {}", known.join(", "))).into())
}

fn list(tools: &[Arc<ToolCandidate>], output: &Output) {
    if output.is_json() {
        output.json(&tools.iter().map(|tool| tool_json(tool)).collect::<Vec<_>>());
        return;
    }
    let row = |tool: &Arc<ToolCandidate>| {
        [
            tool.name.to_string(),
            tool.source_id().to_string(),
            effect(tool).to_owned(),
            tool.spec().description.to_string(),
        ]
    };
    if tools.is_empty() {
        output.message("no tools match");
    } else {
        output.table(["NAME", "SOURCE", "EFFECT", "DESCRIPTION"], tools.iter().map(row).collect());
    }
}

/// Names the tools that are callable only with their source, because their name belongs to another one.
fn list_unowned(toolyard: &Toolyard, output: &Output) {
    let snapshot = toolyard.hub().snapshot();
    let mut lines: Vec<String> = Vec::new();
    for (name, found) in snapshot.candidates_by_name() {
        let others = found.non_equivalents().filter(|tool| !tool.owns_name);
        lines.extend(others.filter_map(|tool| {
            let (source, owner) = (tool.source_id(), tool.yields_to.as_ref()?);
            Some(format!(
                "note: `{name}` of {source} is callable as {source}.{name}; the name belongs to {owner}"
            ))
        }));
    }
    lines.sort();
    lines.iter().for_each(|line| output.message(line));
}

/// What a call may change; `denied` if the operator's rules deny it.
fn effect(tool: &ToolCandidate) -> &'static str {
    if tool.denied { "denied" } else { tool.hints.label() }
}

fn tool_json(tool: &ToolCandidate) -> Value {
    json!({
        "name": tool.name,
        "description": tool.spec().description,
        "source": tool.source_id(),
        "kind": tool.source.info.kind,
        "trusted": tool.source.info.trusted,
        "effect": tool.hints.label(),
        "open_world": tool.hints.open_world,
        "denied": tool.denied,
        "capabilities": tool.capabilities,
    })
}

/// The tool and source of a qualified name: `TOOL@SOURCE` as in rules, or `SOURCE.TOOL` as clients see it.
pub(super) fn split_qualified_name(name: &str, toolyard: &Toolyard) -> Option<(String, String)> {
    if toolyard.hub().snapshot().find(name).is_some_and(|found| !found.equivalents.is_empty()) {
        return None;
    }
    let sources = toolyard.hub().sources();
    let servers = toolyard.servers().map(McpManager::servers).unwrap_or_default();
    let is_source = |id: &str| {
        sources.iter().any(|source| source.info.id.as_str() == id)
            || servers.iter().any(|server| server.config().id.as_str() == id)
    };
    let dotted = name.match_indices('.').filter_map(|(at, _)| Some((name.get(at + 1..)?, name.get(..at)?)));
    let mut splits = name.rsplit_once('@').into_iter().chain(dotted);
    splits.find(|(_, source)| is_source(source)).map(|(tool, source)| (tool.to_owned(), source.to_owned()))
}

fn show(toolyard: &Toolyard, name: &str, output: &Output) -> Result<(), CliError> {
    let qualified = split_qualified_name(name, toolyard);
    let (name, source) = match &qualified {
        Some((tool, source)) => (tool.as_str(), Some(source.as_str())),
        None => (name, None),
    };
    // Routing reports an unknown tool, with suggestions.
    let snapshot = toolyard.hub().snapshot();
    let mut request = ToolCallRequest::new(name, json!({}));
    request.source = source.map(str::to_owned);
    route(&snapshot, &request)?;
    let Some(found) = snapshot.find(name) else { return Ok(()) };
    let is_selected = |tool: &&Arc<ToolCandidate>| source.is_none_or(|id| tool.source_id().as_str() == id);
    // Without a source, only equivalents are used; `all` lists them first.
    let used = found.equivalents.iter().filter(is_selected).count();
    let candidates: Vec<_> = found.all().filter(is_selected).collect();
    if output.is_json() {
        let all: Vec<Value> = candidates
            .iter()
            .enumerate()
            .map(|(index, tool)| json!({"used": index < used, "tool": tool_json(tool), "definition": definition(tool)}))
            .collect();
        output.json(&all);
        return Ok(());
    }
    for (index, tool) in candidates.iter().enumerate() {
        let note = if index < used { "" } else { "   (used only with --source)" };
        let effect = if tool.denied { effect(tool).to_owned() } else { tool.hints.description() };
        output.line(&format!("{}   {tool}, {effect}{note}", tool.name));
        output.line(&indented(tool.spec().description.trim()));
        let capabilities: Vec<&str> =
            tool.capabilities.iter().map(toolyard_core::Capability::as_str).collect();
        if !capabilities.is_empty() {
            output.line(&format!("  Capabilities: {}", capabilities.join(", ")));
        }
        if !tool.params().is_empty() {
            output.line("  Parameters:");
            let depth = 2;
            output.line(parameter_lines(tool.params(), depth).trim_end());
        }
    }
    Ok(())
}

/// The definition as its server sent it, otherwise as Toolyard sends it.
fn definition(tool: &ToolCandidate) -> Value {
    let spec = tool.spec();
    spec.raw.as_ref().map_or_else(|| json!(spec), RawJson::to_value)
}

/// Shows every definition that servers have sent under a name, the oldest first, each with its difference to the previous.
async fn show_history(toolyard: &Toolyard, name: &str, output: &Output) -> Result<(), CliError> {
    let mut all = Vec::new();
    for server in toolyard.servers().map(McpManager::servers).unwrap_or_default() {
        let id = &server.config().id;
        let definitions = server.definitions().await?;
        let mut before: Option<StoredDefinition> = None;
        for sent in definitions.into_iter().filter(|sent| sent.tool == name) {
            let lines = before
                .as_ref()
                .and_then(|before| diff_definitions(&before.definition, &sent.definition).ok());
            all.push((id.clone(), sent.clone(), lines.unwrap_or_default()));
            before = Some(sent);
        }
    }
    if all.is_empty() {
        let message = format!("no server has ever had a tool `{name}`");
        return Err(CliError::usage(message).with_hint("list all tools: toolyard tools list"));
    }
    if output.is_json() {
        let entry = |(server, sent, lines): &(SourceId, StoredDefinition, Vec<String>)| {
            json!({"server": server, "first_seen_at": sent.first_seen_at, "approved": sent.approved,
                "hash": sent.hash.to_string(), "difference": lines, "definition": sent.definition.to_value()})
        };
        output.json(&all.iter().map(entry).collect::<Vec<_>>());
        return Ok(());
    }
    for (server, sent, lines) in &all {
        let date = jiff::Timestamp::from_millisecond(sent.first_seen_at).map(|time| time.to_string());
        let state = if sent.approved { "approved" } else { "not approved" };
        output.line(&format!("{}   {server}, {state}, {}", date.unwrap_or_default(), sent.hash));
        lines.iter().for_each(|line| output.line(&format!("  {line}")));
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {}", line.trim())).collect::<Vec<_>>().join("\n")
}

/// One line per parameter and field, indented by two spaces per level of depth.
fn parameter_lines(params: &[Param], depth: usize) -> String {
    let mut text = String::new();
    for param in params {
        let requirement = if param.required { "required" } else { "optional" };
        let description = param.description.as_deref().unwrap_or_default().replace('\n', " ");
        let choices: Vec<String> = param.choices.iter().map(ToString::to_string).collect();
        let choices =
            if choices.is_empty() { String::new() } else { format!(" one of {}", choices.join(", ")) };
        let default = param.default.as_ref().map(|value| format!(" (default {value})")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:indent$}- {} ({}): {description}{choices}{default} [{requirement}]",
            "",
            param.name,
            param.kind,
            indent = depth * 2
        );
        text.push_str(&parameter_lines(&param.fields, depth + 1));
    }
    text
}
