//! `toolyard call`: one call, and what went on inside.

use std::{io::Read as _, sync::Arc, time::Instant};

use serde_json::json;
use toolyard::{Toolyard, settings::JournalSetting};
use toolyard_core::{
    Capability, ErrorKind, RawJson, SourceKind, ToolCallRequest, ToolError, ToolOutput, ToolResult,
};
use toolyard_hub::{Budget, CallOptions, Decision, ToolCandidate, Trail, Watch};
use toolyard_mcp::client::{ConnectError, McpManager, Server, ServerState, Session};

use crate::{
    cli::CallArgs,
    commands::{discovery::discover, server_memory::ServerMemory, tools::with_source},
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    progress::waiting,
};

/// Calls a tool and prints its answer.
pub(crate) async fn run(
    mut call: CallArgs,
    yard: &Toolyard,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let arguments = read_arguments(&call.args)?;
    if let (Some(name), None) = (&call.name, &call.source)
        && let Some((tool, source)) = with_source(name, yard)
    {
        (call.name, call.source) = (Some(tool), Some(source));
    }
    let trail = call.explain.then(|| Arc::new(Trail::default()));
    ready(&call, yard, workplace, output).await?;
    let watch = Arc::new(Watch::default());
    let options = options(&call, yard, trail.as_ref()).with_watch(Arc::clone(&watch));
    let what = call.name.as_deref().or(call.capability.as_deref()).unwrap_or_default();
    let executed = waiting(what, execute(&call, arguments, yard, workplace, &options)).await;
    let outcome = match executed {
        Ok(outcome) => outcome.map_err(|error| with_servers_word(with_skill_hint(error, yard), what, yard)),
        // Stopped by a person while something with side effects was under way: it may have happened.
        Err(_stopped) if watch.is_unsettled() => {
            Err(ToolError::new(ErrorKind::Lost, "it was stopped").on_tool(what).outcome_unknown())
        }
        Err(stopped) => return Err(stopped),
    };
    let decisions = trail.map(|trail| trail.decisions()).unwrap_or_default();
    if let (true, Ok(ToolOutput { raw: Some(raw), .. })) = (call.raw, &outcome) {
        output.foreign(raw.get());
        return Ok(());
    }
    tell(outcome, &decisions, output)
}

/// Sees to it that whoever will answer is there: servers that were never seen are asked for their tools when nobody known
/// has this one, and the server of the tool is started before the time for the call begins to run.
async fn ready(
    call: &CallArgs,
    yard: &Toolyard,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let Some(manager) = yard.servers() else { return Ok(()) };
    let known = |name: &str| yard.hub().snapshot().find(name).is_some();
    let named = call.source.as_deref().and_then(|source| manager.server(source));
    if let Some(server) = named.filter(|server| server.state() == ServerState::Configured) {
        // Whoever names a server means it; how it fails is told with the call.
        let _ = connected(&server, manager, workplace).await?;
    } else if call.name.as_deref().is_none_or(|name| !known(name)) {
        discover(yard, workplace, output).await?;
    }
    let Some(name) = &call.name else { return Ok(()) };
    let snapshot = yard.hub().snapshot();
    let wanted = |tool: &Arc<ToolCandidate>| match &call.source {
        Some(source) => tool.source_id().as_str() == source,
        None => true,
    };
    let found = snapshot.find(name);
    let tool = found.as_ref().and_then(|found| found.all().find(|tool| wanted(tool)));
    let Some(tool) = tool.filter(|tool| tool.source.info.kind == SourceKind::Mcp) else { return Ok(()) };
    let Some(server) = manager.server(tool.source_id().as_str()) else { return Ok(()) };
    let started = Instant::now();
    let session = connected(&server, manager, workplace).await?;
    if let (true, Ok(session)) = (call.explain, session) {
        let (id, seconds) = (&server.config().id, started.elapsed().as_secs_f64());
        output.talk(&format!("connect   {id}   started, protocol {}   {seconds:.1} s", session.version()));
    }
    Ok(())
}

/// Starts a server if need be. One that answers is well, whatever is remembered of it.
async fn connected(
    server: &Server,
    manager: &McpManager,
    workplace: &Workplace,
) -> Result<Result<Arc<Session>, ConnectError>, Failure> {
    let id = server.config().id.as_str();
    let session = waiting(id, manager.connect(id)).await?;
    if session.is_ok() {
        ServerMemory::is_well(server.config(), workplace);
    }
    Ok(session)
}

async fn execute(
    call: &CallArgs,
    arguments: RawJson,
    yard: &Toolyard,
    workplace: &Workplace,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let capability = call.capability.as_deref().map(Capability::from);
    let request = call.name.as_deref().map(|name| {
        let mut request = ToolCallRequest::new(name, arguments.clone());
        request.source.clone_from(&call.source);
        request
    });
    match (request, capability) {
        (Some(request), Some(capability)) => {
            yard.hub().execute_or_by_capability(&request, &capability, options).await
        }
        (Some(request), None) if workplace.settings.journal == JournalSetting::Always => {
            journalled(&request, yard, options).await
        }
        (Some(request), None) => yard.hub().execute(&request, options).await,
        (None, capability) => {
            let capability = capability.unwrap_or_else(|| Capability::from(""));
            yard.hub().execute_by_capability(&capability, arguments, options).await
        }
    }
}

/// A call as a run of one step: written down before it is made and after.
async fn journalled(
    request: &ToolCallRequest,
    yard: &Toolyard,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let hint = "`journal = \"always\"` needs a store that can be written";
    let Some(store) = yard.store() else {
        let error =
            ToolError::new(ErrorKind::Refused, "it was not called: there is no store to journal it in");
        return Err(error.on_tool(&request.tool_name).with_hint(hint));
    };
    let owner = format!("cli-{}", std::process::id());
    let outcome = yard.hub().execute_journalled(store, &owner, request, options).await;
    outcome.map_err(|error| if error.kind() == ErrorKind::Refused { error.with_hint(hint) } else { error })
}

fn options(call: &CallArgs, yard: &Toolyard, trail: Option<&Arc<Trail>>) -> CallOptions {
    let mut options = yard.options().clone().on_behalf_of("cli").with_budget(match call.budget {
        _ if call.full || call.raw => Budget::Whole,
        Some(characters) => Budget::Characters(characters),
        None => Budget::ByKind,
    });
    if let Some(timeout) = call.timeout {
        options = options.with_timeout(timeout.0);
    }
    if let Some(request) = &call.request {
        options = options.for_request(request.as_str());
    }
    match trail {
        Some(trail) => options.with_trail(Arc::clone(trail)),
        None => options,
    }
}

/// The arguments themselves, `@FILE`, or `-` for standard input.
fn read_arguments(given: &str) -> Result<RawJson, Failure> {
    let unreadable = |what: &str, error: std::io::Error| {
        Failure::new(Code::BadUse, format!("failed to read {what}: {error}"))
    };
    let text = if given == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable("standard input", error))?;
        text
    } else if let Some(file) = given.strip_prefix('@') {
        std::fs::read_to_string(file).map_err(|error| unreadable(file, error))?
    } else {
        given.to_owned()
    };
    RawJson::parse(text).map_err(|error| {
        Failure::new(Code::BadUse, format!("failed to read --args: {error}"))
            .with_hint(r#"give a JSON object in single quotes: --args '{"expression":"1+1"}'"#)
    })
}

/// A tool that is not there may be a program that may not run yet.
fn with_skill_hint(error: ToolError, yard: &Toolyard) -> ToolError {
    let waiting: Vec<&str> = yard
        .skills()
        .skills
        .iter()
        .filter(|skill| !skill.trust.allows_programs() && !skill.problems.is_empty())
        .map(|skill| skill.name.as_str())
        .collect();
    if error.kind() != ErrorKind::UnknownTool || waiting.is_empty() {
        return error;
    }
    error.with_hint(format!(
        "programs of these skills wait for trust: {} (toolyard skills trust NAME)",
        waiting.join(", ")
    ))
}

/// A tool that is not there may be one that waits for approval, or one of a server that could not be asked.
fn with_servers_word(error: ToolError, tool: &str, yard: &Toolyard) -> ToolError {
    if !matches!(error.kind(), ErrorKind::UnknownTool | ErrorKind::UnknownSource) {
        return error;
    }
    let servers = yard.servers().map(McpManager::servers).unwrap_or_default();
    for server in &servers {
        let (id, shelf) = (&server.config().id, server.shelf());
        if let Some(waiting) = shelf.out_of_service.iter().find(|waiting| waiting.name == tool) {
            let hint = format!(
                "see what changed: toolyard servers show {id} · if that is as it should be: toolyard servers approve {id}"
            );
            return ToolError::new(ErrorKind::Refused, waiting.reason.clone())
                .with_hint(hint)
                .on_tool(tool)
                .on_source(id);
        }
    }
    let is_unknown = |server: &&Arc<Server>| {
        server.config().enabled
            && server.shelf().in_service.is_empty()
            && matches!(server.state(), ServerState::Configured | ServerState::Down { .. })
    };
    let unknown: Vec<&str> =
        servers.iter().filter(is_unknown).map(|server| server.config().id.as_str()).collect();
    if unknown.is_empty() {
        return error;
    }
    error.with_hint(format!("these servers could not be asked: {}", unknown.join(", ")))
}

/// The answer on stdout; with `--json` in the seeds' shape, failures too. Decisions go to stderr, or into the JSON.
fn tell(
    outcome: Result<ToolOutput, ToolError>,
    decisions: &[Decision],
    output: &Output,
) -> Result<(), Failure> {
    if output.wants_json() {
        let mut shape = json!(ToolResult::of(&outcome));
        if let (Some(shape), [_, ..]) = (shape.as_object_mut(), decisions) {
            shape.insert("explain".to_owned(), json!(decisions));
        }
        output.json(&shape);
        return outcome.map(|_| ()).map_err(|error| Failure::from(error).silent());
    }
    explain(decisions, output);
    output.foreign(&outcome?.to_text());
    Ok(())
}

fn explain(decisions: &[Decision], output: &Output) {
    let width = decisions.iter().map(|decision| decision.subject.chars().count()).max().unwrap_or(0).min(40);
    for decision in decisions {
        let time =
            decision.elapsed.map(|time| format!("  {:.1} ms", time.as_secs_f64() * 1e3)).unwrap_or_default();
        let Decision { stage, subject, detail, .. } = decision;
        output.talk(&harmless(&format!("{stage:<9} {subject:<width$}  {detail}{time}")));
    }
}
