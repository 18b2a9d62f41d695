//! `toolyard tools`: what there is.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_core::{ErrorKind, Param, RawJson, SourceId, ToolCallRequest, ToolDefinition, ToolError};
use toolyard_hub::{ToolCandidate, route};
use toolyard_mcp::{client::McpManager, definition::difference};

use super::search;
use crate::{
    cli::ToolsCommand,
    failure::{Code, Failure},
    output::{Output, harmless},
};

/// Lists, shows or searches.
pub(crate) async fn run(command: ToolsCommand, yard: &Toolyard, output: &Output) -> Result<(), Failure> {
    match command {
        ToolsCommand::List { source, capability } => {
            let mut tools = match source {
                Some(source) => of_source(yard, &source)?,
                None => yard.hub().specs(),
            };
            if let Some(wanted) = capability {
                tools.retain(|tool| tool.capabilities.iter().any(|known| known.as_str() == wanted));
            }
            list(&tools, output);
        }
        ToolsCommand::Search(arguments) => search::run(&arguments, yard, output),
        ToolsCommand::Show { name, history: true } => history(yard, &name, output).await?,
        ToolsCommand::Show { name, history: false } => show(yard, &name, output)?,
    }
    Ok(())
}

fn of_source(yard: &Toolyard, id: &str) -> Result<Vec<Arc<ToolCandidate>>, Failure> {
    let mut sources = yard.hub().sources();
    if let Some(at) = sources.iter().position(|source| source.info.id.as_str() == id) {
        return Ok(sources.swap_remove(at).tools);
    }
    let known: Vec<&str> = sources.iter().map(|source| source.info.id.as_str()).collect();
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{id}` does not exist"));
    Err(error.with_hint(format!("there are {}", known.join(", "))).into())
}

pub(super) fn list(tools: &[Arc<ToolCandidate>], output: &Output) {
    if output.wants_json() {
        output.json(&tools.iter().map(|tool| facts(tool)).collect::<Vec<_>>());
        return;
    }
    let row = |tool: &Arc<ToolCandidate>| {
        [
            harmless(&tool.name),
            tool.source_id().to_string(),
            tool.hints.word().to_owned(),
            harmless(&tool.spec().description),
        ]
    };
    if tools.is_empty() {
        output.talk("no tools match");
    } else {
        output.table(["NAME", "SOURCE", "EFFECT", "DESCRIPTION"], &tools.iter().map(row).collect::<Vec<_>>());
    }
}

pub(super) fn facts(tool: &ToolCandidate) -> Value {
    json!({
        "name": tool.name,
        "description": tool.spec().description,
        "source": tool.source_id(),
        "kind": tool.source.info.kind,
        "trusted": tool.source.info.trusted,
        "effect": tool.hints.word(),
        "capabilities": tool.capabilities,
    })
}

/// A tool and its source where a name says both: `TOOL@SOURCE` as in rules, `SOURCE.TOOL` as clients see it.
pub(super) fn with_source(name: &str, yard: &Toolyard) -> Option<(String, String)> {
    if yard.hub().snapshot().find(name).is_some() {
        return None;
    }
    let sources = yard.hub().sources();
    let servers = yard.servers().map(McpManager::servers).unwrap_or_default();
    let is_source = |id: &str| {
        sources.iter().any(|source| source.info.id.as_str() == id)
            || servers.iter().any(|server| server.config().id.as_str() == id)
    };
    let dotted = name.match_indices('.').filter_map(|(at, _)| Some((name.get(at + 1..)?, name.get(..at)?)));
    let mut ways = name.rsplit_once('@').into_iter().chain(dotted);
    ways.find(|(_, source)| is_source(source)).map(|(tool, source)| (tool.to_owned(), source.to_owned()))
}

fn show(yard: &Toolyard, name: &str, output: &Output) -> Result<(), Failure> {
    let both = with_source(name, yard);
    let (name, source) = match &both {
        Some((tool, source)) => (tool.as_str(), Some(source.as_str())),
        None => (name, None),
    };
    // Routing decides what exists and what was probably meant.
    let snapshot = yard.hub().snapshot();
    let mut request = ToolCallRequest::new(name, json!({}));
    request.source = source.map(str::to_owned);
    route(&snapshot, &request)?;
    let Some(found) = snapshot.find(name) else { return Ok(()) };
    let is_meant = |tool: &&Arc<ToolCandidate>| source.is_none_or(|id| tool.source_id().as_str() == id);
    let equals = found.used.iter().filter(is_meant).count();
    let candidates: Vec<_> = found.all().filter(is_meant).collect();
    if output.wants_json() {
        let all: Vec<Value> = candidates
            .iter()
            .enumerate()
            .map(|(at, tool)| json!({"used": at < equals, "facts": facts(tool), "definition": definition(tool)}))
            .collect();
        output.json(&all);
        return Ok(());
    }
    for (at, tool) in candidates.iter().enumerate() {
        let used = if at < equals { "" } else { "   (only when named as the source)" };
        output.line(&format!("{}   {tool}, {}{used}", harmless(&tool.name), tool.hints.word()));
        output.line(&indented(&harmless(tool.spec().description.trim())));
        let tags: Vec<&str> = tool.capabilities.iter().map(toolyard_core::Capability::as_str).collect();
        if !tags.is_empty() {
            output.line(&format!("  Capabilities: {}", tags.join(", ")));
        }
        if !tool.params().is_empty() {
            output.line("  Parameters:");
            output.line(harmless(&parameters(tool.params(), 2)).trim_end());
        }
    }
    Ok(())
}

/// A definition as its server sent it, else as we would send it.
fn definition(tool: &ToolCandidate) -> Value {
    let spec = tool.spec();
    spec.raw.as_ref().map_or_else(|| json!(spec), RawJson::to_value)
}

/// All definitions that servers ever sent under a name, the oldest first, and how each differs from the one before.
async fn history(yard: &Toolyard, name: &str, output: &Output) -> Result<(), Failure> {
    let mut all = Vec::new();
    for server in yard.servers().map(McpManager::servers).unwrap_or_default() {
        let id = &server.config().id;
        let definitions = server.definitions().await.map_err(|error| Failure::new(Code::Failed, error))?;
        let mut before: Option<ToolDefinition> = None;
        for known in definitions.into_iter().filter(|known| known.tool == name) {
            let lines =
                before.as_ref().and_then(|before| difference(&before.definition, &known.definition).ok());
            all.push((id.clone(), known.clone(), lines.unwrap_or_default()));
            before = Some(known);
        }
    }
    if all.is_empty() {
        let message = format!("no server ever sent a tool `{name}`");
        return Err(Failure::new(Code::BadUse, message).with_hint("list what there is: toolyard tools list"));
    }
    if output.wants_json() {
        let facts = |(server, known, lines): &(SourceId, ToolDefinition, Vec<String>)| {
            json!({"server": server, "first_seen_at": known.first_seen_at, "approved": known.approved,
                "hash": known.hash.to_string(), "difference": lines, "definition": known.definition.to_value()})
        };
        output.json(&all.iter().map(facts).collect::<Vec<_>>());
        return Ok(());
    }
    for (server, known, lines) in &all {
        let date = jiff::Timestamp::from_millisecond(known.first_seen_at).map(|time| time.to_string());
        let state = if known.approved { "approved" } else { "not approved" };
        output.line(&format!("{}   {server}, {state}, {}", date.unwrap_or_default(), known.hash));
        lines.iter().for_each(|line| output.line(&harmless(&format!("  {line}"))));
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {}", line.trim())).collect::<Vec<_>>().join("\n")
}

fn parameters(params: &[Param], depth: usize) -> String {
    let mut text = String::new();
    for param in params {
        let need = if param.required { "required" } else { "optional" };
        let description = param.description.as_deref().unwrap_or_default().replace('\n', " ");
        let choices: Vec<String> = param.choices.iter().map(ToString::to_string).collect();
        let choices =
            if choices.is_empty() { String::new() } else { format!(" one of {}", choices.join(", ")) };
        let default = param.default.as_ref().map(|value| format!(" (default {value})")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:indent$}- {} ({}): {description}{choices}{default} [{need}]",
            "",
            param.name,
            param.kind,
            indent = depth * 2
        );
        text.push_str(&parameters(&param.fields, depth + 1));
    }
    text
}
