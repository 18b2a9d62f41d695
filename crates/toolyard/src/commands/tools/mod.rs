//! `toolyard tools`: lists, shows and searches tools.

mod experience;
mod search;

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::{ErrorKind, Param, RawJson, SourceId, StoredDefinition, ToolCallRequest, ToolError};
use toolyard_hub::{NameTarget, Snapshot, ToolCandidate, route};
use toolyard_mcp::definition::diff_definitions;

use self::experience::Experience;
use crate::{
    cli::ToolsCommand,
    error::CliError,
    terminal::{Output, pluralize},
};

pub(super) async fn run(command: ToolsCommand, toolyard: &Toolyard, output: &Output) -> Result<(), CliError> {
    match command {
        ToolsCommand::List { source, capability } => {
            let mut tools = match source {
                Some(source) => tools_of_source(toolyard, &source)?,
                None => listed_tools(toolyard),
            };
            if let Some(wanted) = capability {
                tools.retain(|tool| tool.capabilities.iter().any(|capability| capability.as_str() == wanted));
            }
            list(toolyard, &tools, output);
        }
        ToolsCommand::Search(arguments) => search::run(&arguments, toolyard, output),
        ToolsCommand::Show { name, history: true } => show_history(toolyard, &name, output).await?,
        ToolsCommand::Show { name, history: false } => show(toolyard, &name, output).await?,
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

/// Every tool that can be called, and denied ones; of equivalent tools the preferred one.
fn listed_tools(toolyard: &Toolyard) -> Vec<Arc<ToolCandidate>> {
    let snapshot = toolyard.hub().snapshot();
    let mut tools: Vec<Arc<ToolCandidate>> = Vec::new();
    for (_, found) in snapshot.candidates_by_name() {
        tools.extend(found.equivalents.iter().take(1).chain(found.non_equivalents()).map(Arc::clone));
    }
    tools.sort_by(|one, other| (&one.name, one.source_id()).cmp(&(&other.name, other.source_id())));
    tools
}

/// How many tools are known of how many sources: as many as `toolyard tools list` has rows.
pub(super) fn count_tools(toolyard: &Toolyard) -> String {
    let snapshot = toolyard.hub().snapshot();
    let has_name = |tool: &&Arc<ToolCandidate>| snapshot.callable_name(tool, None).is_some();
    let tools = pluralize(listed_tools(toolyard).iter().filter(has_name).count(), "tool");
    format!("{tools} from {}", pluralize(toolyard.hub().sources().len(), "source"))
}

/// Prints tools under the names by which they are called. A tool that no name reaches is left out.
fn list(toolyard: &Toolyard, tools: &[Arc<ToolCandidate>], output: &Output) {
    let snapshot = toolyard.hub().snapshot();
    let named = tools.iter().filter_map(|tool| Some((snapshot.callable_name(tool, None)?, tool)));
    if output.is_json() {
        output.json(&named.map(|(_, tool)| tool_json(&snapshot, tool)).collect::<Vec<_>>());
        return;
    }
    let row = |(name, tool): (Arc<str>, &Arc<ToolCandidate>)| {
        let description = tool.spec().description.to_string();
        [name.to_string(), tool.source_id().to_string(), effect(tool).to_owned(), description]
    };
    let rows: Vec<_> = named.map(row).collect();
    if rows.is_empty() {
        output.message("no tools match");
    } else {
        output.table(["NAME", "SOURCE", "EFFECT", "DESCRIPTION"], rows);
    }
}

/// What a call may change; `denied` if the operator's rules deny it.
fn effect(tool: &ToolCandidate) -> &'static str {
    if tool.denied { "denied" } else { tool.hints.label() }
}

fn tool_json(snapshot: &Snapshot, tool: &ToolCandidate) -> Value {
    json!({
        "name": tool.name,
        "call_as": snapshot.callable_name(tool, None),
        "distinction": snapshot.distinction(tool, None),
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
    match toolyard.hub().snapshot().resolve_name(name, None) {
        NameTarget::Callable(_) | NameTarget::Ambiguous(_) => return None,
        NameTarget::Qualified(tool) => return Some((tool.name.to_string(), tool.source_id().to_string())),
        // The server may be new or its tool held.
        NameTarget::Unknown => {}
    }
    let sources = toolyard.hub().sources();
    let servers = toolyard.servers().map(|manager| manager.servers()).unwrap_or_default();
    let is_source = |id: &str| {
        sources.iter().any(|source| source.info.id.as_str() == id)
            || servers.iter().any(|server| server.config().id.as_str() == id)
    };
    let dotted = name.match_indices('.').filter_map(|(at, _)| Some((name.get(at + 1..)?, name.get(..at)?)));
    let mut splits = name.rsplit_once('@').into_iter().chain(dotted);
    splits.find(|(_, source)| is_source(source)).map(|(tool, source)| (tool.to_owned(), source.to_owned()))
}

async fn show(toolyard: &Toolyard, name: &str, output: &Output) -> Result<(), CliError> {
    let qualified = split_qualified_name(name, toolyard);
    let (name, source) = match &qualified {
        Some((tool, source)) => (tool.as_str(), Some(source.as_str())),
        None => (name, None),
    };
    let snapshot = toolyard.hub().snapshot();
    let mut request = ToolCallRequest::new(name, json!({}));
    request.source = source.map(str::to_owned);
    let contenders = snapshot.contenders(name, None);
    if source.is_some() || contenders.is_empty() {
        // Routing reports an unknown tool, with suggestions.
        route(&snapshot, &request)?;
    }
    let Some(found) = snapshot.find(name) else { return Ok(()) };
    let is_selected = |tool: &&Arc<ToolCandidate>| source.is_none_or(|id| tool.source_id().as_str() == id);
    // Without a source, only equivalents are used; `all` lists them first. Of an ambiguous name none is.
    let used = match contenders.as_slice() {
        [] => found.equivalents.iter().filter(is_selected).count(),
        _ => 0,
    };
    let candidates: Vec<_> = found.all().filter(is_selected).collect();
    let experience = Experience::load(toolyard).await;
    if output.is_json() {
        let all: Vec<Value> = candidates
            .iter()
            .enumerate()
            .map(|(index, tool)| {
                json!({"used": index < used, "tool": tool_json(&snapshot, tool), "definition": definition(tool),
                    "learned": experience.json(tool, toolyard)})
            })
            .collect();
        output.json(&all);
        return Ok(());
    }
    for (index, tool) in candidates.iter().enumerate() {
        let note = match snapshot.callable_name(tool, None) {
            Some(callable) if index >= used && source.is_none() => format!("   (call it as {callable})"),
            _ => String::new(),
        };
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
        experience.print(tool, toolyard, output);
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
    for server in toolyard.servers().map(|manager| manager.servers()).unwrap_or_default() {
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
