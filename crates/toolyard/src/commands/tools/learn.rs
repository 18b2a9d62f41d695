//! `toolyard tools learn`: lets the configured model write example requests for every tool, which search then knows.

use std::sync::Arc;

use serde_json::json;
use toolyard::Toolyard;
use toolyard_agent::{example_requests_request, parse_example_requests, prompt::PromptTool};
use toolyard_core::{ExampleRequests as _, ToolExampleRequests};
use toolyard_hub::{ToolCandidate, ToolHub, definition_hash};
use toolyard_model::{Model, collect_observed_reply};
use toolyard_store::StoredExampleRequests;

use super::tools_of_source;
use crate::{
    cli::LearnToolsArgs,
    error::CliError,
    terminal::{Output, pluralize, progress::with_progress},
};

pub(super) async fn run(
    arguments: &LearnToolsArgs,
    toolyard: &Toolyard,
    output: &Output,
) -> Result<(), CliError> {
    let Some(stored) = toolyard.example_requests() else {
        return Err(CliError::usage("example requests are kept in the store, and there is none"));
    };
    let tools = selected_tools(arguments, toolyard)?;
    let (known, missing): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| is_known(tool, stored));
    if arguments.dry_run {
        let names: Vec<String> =
            missing.iter().map(|tool| format!("{}@{}", tool.name, tool.source_id())).collect();
        let data = json!({"missing": missing.len(), "known": known.len(), "tools": names});
        let message = format!(
            "{} without example requests, {} with; nothing was sent to a model",
            pluralize(missing.len(), "tool"),
            known.len()
        );
        output.report(&data, &message);
        return Ok(());
    }
    let model = toolyard.agents().models().get(arguments.model.as_deref())?;
    let total = missing.len().min(arguments.limit.unwrap_or(usize::MAX));
    let (mut written, mut failed) = (Vec::new(), Vec::new());
    for (number, tool) in (1..).zip(missing.iter().take(total)) {
        let name = format!("{}@{}", tool.name, tool.source_id());
        let requests = with_progress(&name, write_requests(tool, model.as_ref(), toolyard.hub())).await??;
        let outcome = match requests.as_slice() {
            [] => "nothing that can be used".to_owned(),
            requests => pluralize(requests.len(), "request"),
        };
        output.message(&format!("{number} of {total}   {name}: {outcome}"));
        if requests.is_empty() {
            failed.push(name);
            continue;
        }
        // Stored at once, so that an interrupted command continues where it was.
        stored.record(example_requests(tool, requests, model.as_ref())).await?;
        written.push(name);
    }
    let left = missing.len() - written.len();
    let message = format!(
        "wrote example requests for {}; {} known before, {left} left",
        pluralize(written.len(), "tool"),
        known.len()
    );
    output
        .report(&json!({"written": written, "failed": failed, "known": known.len(), "left": left}), &message);
    Ok(())
}

/// The tools that may be called, of one source or of all.
fn selected_tools(
    arguments: &LearnToolsArgs,
    toolyard: &Toolyard,
) -> Result<Vec<Arc<ToolCandidate>>, CliError> {
    let mut tools = match &arguments.server {
        Some(server) => tools_of_source(toolyard, server)?,
        None => toolyard.hub().sources().into_iter().flat_map(|source| source.tools).collect(),
    };
    tools.retain(|tool| !tool.denied);
    tools.sort_by(|one, other| (one.source_id(), &one.name).cmp(&(other.source_id(), &other.name)));
    Ok(tools)
}

/// Whether there are example requests for the current definition of a tool.
fn is_known(tool: &ToolCandidate, stored: &StoredExampleRequests) -> bool {
    let known = stored.of_tool(tool.source_id(), &tool.name);
    known.is_some_and(|known| known.definition == definition_hash(tool.spec()))
}

async fn write_requests(
    tool: &ToolCandidate,
    model: &dyn Model,
    hub: &ToolHub,
) -> Result<Vec<String>, CliError> {
    let request = example_requests_request(&PromptTool::from_candidate(tool));
    let reply = collect_observed_reply(model, &request, hub.telemetry(), None, |_| {}).await?;
    Ok(parse_example_requests(&reply))
}

fn example_requests(tool: &ToolCandidate, requests: Vec<String>, model: &dyn Model) -> ToolExampleRequests {
    ToolExampleRequests {
        source: tool.source_id().clone(),
        tool: tool.name.to_string(),
        definition: definition_hash(tool.spec()),
        requests,
        model: model.name().to_owned(),
    }
}
