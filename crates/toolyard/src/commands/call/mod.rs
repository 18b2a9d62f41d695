//! `toolyard call`: one tool call.

mod running_hub;
mod save;

use std::{io::Read as _, sync::Arc, time::Instant};

use serde_json::json;
use toolyard::{Toolyard, settings::JournalSetting};
use toolyard_core::{
    Capability, ErrorKind, RawJson, SourceKind, ToolCallRequest, ToolError, ToolOutput, ToolResult,
    group_digits,
};
use toolyard_hub::{Budget, CallOptions, Decision, DecisionLog, PendingEffect, ToolCandidate, route};
use toolyard_mcp_client::{ConnectError, ManagedServer, McpManager, ServerState, Session};
use unicode_width::UnicodeWidthStr as _;

use self::save::save;
use crate::{
    cli::CallArgs,
    commands::{
        servers::{discovery::discover, failure_cache::ServerFailures},
        setup::{close, open},
        tools::split_qualified_name,
    },
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize, progress::with_progress, stdout_size},
};

/// Calls a tool through the running hub if there is one, otherwise in this process.
pub(crate) async fn run(call: CallArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if let Some(toolyard) = running_hub::open(&call, context).await {
        let outcome = call_tool(call, &toolyard, context, output).await;
        toolyard.close().await?;
        return outcome;
    }
    let toolyard = open(context).await?;
    let outcome = call_tool(call, &toolyard, context, output).await;
    close(&toolyard, context).await?;
    outcome
}

async fn call_tool(
    mut call: CallArgs,
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let arguments = read_arguments(take_arguments(&mut call).as_deref().unwrap_or("{}"))?;
    if let (Some(name), None) = (&call.name, &call.source)
        && let Some((tool, source)) = split_qualified_name(name, toolyard)
    {
        (call.name, call.source) = (Some(tool), Some(source));
    }
    let decision_log = call.explain.then(|| Arc::new(DecisionLog::default()));
    prepare_servers(&call, &arguments, toolyard, context, output).await?;
    let pending_effect = Arc::new(PendingEffect::default());
    let options =
        options(&call, toolyard, decision_log.as_ref()).with_pending_effect(Arc::clone(&pending_effect));
    let subject = call.name.as_deref().or(call.capability.as_deref()).unwrap_or_default();
    let waited = with_progress(subject, execute(&call, arguments, toolyard, context, &options)).await;
    let outcome = match waited {
        Ok(outcome) => outcome.map_err(|error| with_server_hint(with_skill_hint(error, toolyard), toolyard)),
        // Interrupted during a call with side effects, which may have taken effect.
        Err(_interrupted) if pending_effect.is_pending() => {
            Err(ToolError::new(ErrorKind::ResponseLost, "the call was interrupted")
                .on_tool(subject)
                .outcome_unknown())
        }
        Err(interrupted) => return Err(interrupted),
    };
    let decisions = decision_log.map(|decision_log| decision_log.decisions()).unwrap_or_default();
    if let (true, Ok(ToolOutput { raw: Some(raw), .. })) = (call.raw, &outcome) {
        output.untrusted_text(raw.get());
        return Ok(());
    }
    if let (Some(path), Ok(result)) = (&call.output, &outcome) {
        print_decisions(&decisions, output);
        return save(result, path, output);
    }
    print_outcome(outcome, &decisions, output)
}

/// Discovers new servers if no known one has the tool, and starts the tool's server before the call's timeout begins.
async fn prepare_servers(
    call: &CallArgs,
    arguments: &RawJson,
    toolyard: &Toolyard,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let Some(manager) = toolyard.servers() else { return Ok(()) };
    let is_known = |name: &str| {
        let snapshot = toolyard.hub().snapshot();
        // A name whose owner is not known yet is not known either.
        snapshot.find(name).is_some_and(|found| call.source.is_some() || !found.equivalents.is_empty())
    };
    let named_server = call.source.as_deref().and_then(|source| manager.server(source));
    if let Some(server) = named_server.filter(|server| server.state() == ServerState::Configured) {
        // A failure is reported by the call itself.
        let _ = connect(&server, manager, context).await?;
    } else if call.name.as_deref().is_none_or(|name| !is_known(name)) {
        discover(toolyard, context, output).await?;
    }
    let Some(name) = &call.name else { return Ok(()) };
    let mut request = ToolCallRequest::new(name, arguments.clone());
    request.source.clone_from(&call.source);
    let reached = || {
        let route = route(&toolyard.hub().snapshot(), &request).ok()?;
        route.candidates.into_iter().next().filter(|tool| tool.source.info.kind == SourceKind::Mcp)
    };
    let Some(tool) = reached() else { return Ok(()) };
    if call.source.is_none() {
        connect_unseen_instances(&tool, toolyard, manager, context).await?;
    }
    // Another instance of the program may have the tool as well.
    let Some(tool) = reached() else { return Ok(()) };
    let Some(server) = manager.server(tool.source_id().as_str()) else { return Ok(()) };
    let started = Instant::now();
    let session = connect(&server, manager, context).await?;
    if let (true, Ok(session)) = (call.explain, session) {
        let (id, seconds) = (&server.config().id, started.elapsed().as_secs_f64());
        output
            .message(&format!("connect   {id}   started, protocol {}   {seconds:.1} s", session.revision()));
    }
    Ok(())
}

/// Connects to instances of a tool's program whose tools are not known yet: they have the same tools, and the call may be
/// meant for one of them.
async fn connect_unseen_instances(
    tool: &ToolCandidate,
    toolyard: &Toolyard,
    manager: &McpManager,
    context: &CliContext,
) -> Result<(), CliError> {
    let scope = &tool.source.info.scope;
    for entry in toolyard.hub().snapshot().sources() {
        let info = &entry.source.info;
        let is_unseen = entry.tools.is_empty() && entry.quarantined.is_empty();
        if !is_unseen || !info.scope.is_other_instance(scope) {
            continue;
        }
        let server = manager.server(info.id.as_str());
        if let Some(server) = server.filter(|server| server.state() == ServerState::Configured) {
            // Without its tools, the call reaches the known server.
            let _ = connect(&server, manager, context).await?;
        }
    }
    Ok(())
}

/// Connects to a server, and clears its recorded failure if it answers.
async fn connect(
    server: &ManagedServer,
    manager: &McpManager,
    context: &CliContext,
) -> Result<Result<Arc<Session>, ConnectError>, CliError> {
    let id = server.config().id.as_str();
    let session = with_progress(id, manager.connect(id)).await?;
    if session.is_ok() {
        ServerFailures::clear(server.config(), context);
    }
    Ok(session)
}

async fn execute(
    call: &CallArgs,
    arguments: RawJson,
    toolyard: &Toolyard,
    context: &CliContext,
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
            toolyard.hub().execute_or_by_capability(&request, &capability, options).await
        }
        (Some(request), None) if context.settings.journal == JournalSetting::Always => {
            execute_journaled(&request, toolyard, options).await
        }
        (Some(request), None) => toolyard.hub().execute(&request, options).await,
        (None, capability) => {
            let capability = capability.unwrap_or_else(|| Capability::from(""));
            toolyard.hub().execute_by_capability(&capability, arguments, options).await
        }
    }
}

/// A call as a run of one step, journalled before and after.
async fn execute_journaled(
    request: &ToolCallRequest,
    toolyard: &Toolyard,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let hint = "`journal = \"always\"` needs a writable store";
    let Some(store) = toolyard.store() else {
        let error =
            ToolError::new(ErrorKind::Refused, "the call was not made: no store is available to journal it");
        return Err(error.on_tool(&request.tool_name).with_operator_hint(hint));
    };
    let owner = format!("cli-{}", std::process::id());
    let outcome = toolyard.hub().execute_journaled(store, &owner, request, options).await;
    // Other refusals have hints of their own.
    let is_unrecorded = |error: &ToolError| error.kind() == ErrorKind::Refused && error.hint().is_none();
    outcome.map_err(|error| if is_unrecorded(&error) { error.with_operator_hint(hint) } else { error })
}

fn options(call: &CallArgs, toolyard: &Toolyard, decision_log: Option<&Arc<DecisionLog>>) -> CallOptions {
    let mut options = toolyard.options().clone().on_behalf_of("cli").with_budget(match call.limit {
        Some(characters) => Budget::Characters(characters),
        None => Budget::Unlimited,
    });
    if let Some(timeout) = call.timeout {
        options = options.with_timeout(timeout.0);
    }
    if let Some(task) = &call.task {
        options = options.for_user_request(task.as_str());
    }
    match decision_log {
        Some(decision_log) => options.with_decision_log(Arc::clone(decision_log)),
        None => options,
    }
}

/// The arguments as given: by position or with `--args`. With `--capability` alone, the first position may be theirs.
fn take_arguments(call: &mut CallArgs) -> Option<String> {
    let given = call.arguments.take().or_else(|| call.args.take());
    let is_name = |name: &str| !name.trim_start().starts_with('{');
    if given.is_none() && call.capability.is_some() && call.name.as_deref().is_some_and(|name| !is_name(name))
    {
        return call.name.take();
    }
    given
}

/// Reads arguments: literal JSON, `@FILE`, or `-` for standard input.
fn read_arguments(argument: &str) -> Result<RawJson, CliError> {
    let unreadable =
        |subject: &str, error: std::io::Error| CliError::usage(format!("failed to read {subject}: {error}"));
    let text = if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable("standard input", error))?;
        text
    } else if let Some(file) = argument.strip_prefix('@') {
        std::fs::read_to_string(file).map_err(|error| unreadable(file, error))?
    } else {
        argument.to_owned()
    };
    RawJson::parse(text).map_err(|error| {
        CliError::usage(format!("failed to parse the arguments: {error}")).with_hint(
            r#"pass a JSON object in single quotes: toolyard call calculate '{"expression":"1+1"}'"#,
        )
    })
}

/// An unknown tool may belong to a skill that is not trusted yet.
fn with_skill_hint(error: ToolError, toolyard: &Toolyard) -> ToolError {
    let untrusted: Vec<&str> = toolyard
        .skills()
        .skills
        .iter()
        .filter(|skill| !skill.trust.allows_programs() && !skill.problems.is_empty())
        .map(|skill| skill.name.as_str())
        .collect();
    if error.kind() != ErrorKind::UnknownTool || untrusted.is_empty() {
        return error;
    }
    error.with_operator_hint(format!(
        "programs of these skills are not trusted: {} (toolyard skills trust NAME)",
        untrusted.join(", ")
    ))
}

/// An unknown tool may await approval, or belong to a server that could not be reached.
fn with_server_hint(error: ToolError, toolyard: &Toolyard) -> ToolError {
    if let (ErrorKind::Quarantined, Some(id)) = (error.kind(), error.source_id().cloned()) {
        return error.with_operator_hint(format!("accept it: toolyard servers approve {id}"));
    }
    if !matches!(error.kind(), ErrorKind::UnknownTool | ErrorKind::UnknownSource) {
        return error;
    }
    let servers = toolyard.servers().map(|manager| manager.servers()).unwrap_or_default();
    let lacks_tools = |server: &&Arc<ManagedServer>| {
        server.config().enabled
            && server.tool_approvals().approved().is_empty()
            && matches!(server.state(), ServerState::Configured | ServerState::Down { .. })
    };
    let unreached: Vec<&str> =
        servers.iter().filter(lacks_tools).map(|server| server.config().id.as_str()).collect();
    if unreached.is_empty() {
        return error;
    }
    error.with_operator_hint(format!("servers that could not be reached: {}", unreached.join(", ")))
}

/// Prints the output on stdout and decisions on stderr. With `--json`, prints one object with the output or error,
/// as the specification defines it, and the decisions.
fn print_outcome(
    outcome: Result<ToolOutput, ToolError>,
    decisions: &[Decision],
    output: &Output,
) -> Result<(), CliError> {
    if output.is_json() {
        let mut result = json!(ToolResult::of(&outcome));
        if let (Some(fields), [_, ..]) = (result.as_object_mut(), decisions) {
            fields.insert("explain".to_owned(), json!(decisions));
        }
        output.json(&result);
        return outcome.map(|_| ()).map_err(|error| CliError::from(error).without_message());
    }
    print_decisions(decisions, output);
    let mut result = outcome?;
    let truncation = result.meta.truncation.take();
    if let Some(notice) = truncation.as_ref().map(ToString::to_string) {
        // The notice for models; a person gets another one.
        result.content.retain(|block| block.as_text() != Some(notice.as_str()));
    }
    let text = result.to_text();
    output.untrusted_text(&text);
    if let Some(truncation) = truncation {
        let [kept, total] = [truncation.kept, truncation.total].map(group_digits);
        output.message(&format!(
            "note: truncated to {kept} of {total} characters; without --limit, all are printed"
        ));
    }
    if let Some(note) = stdout_size().and_then(|size| scrolled_note(&text, size)) {
        output.message(&note);
    }
    if let files @ 1.. = save::count_files(&result) {
        let them = if files == 1 { "it" } else { "them" };
        output.message(&format!(
            "note: {} not shown; save {them} with --output FILE",
            pluralize(files, "image or file")
        ));
    }
    Ok(())
}

/// How much of a text does not fit on the terminal's screen; `None` if all of it does.
fn scrolled_note(text: &str, (columns, rows): (usize, usize)) -> Option<String> {
    let lines: usize = text.lines().map(|line| line.width().div_ceil(columns.max(1)).max(1)).sum();
    // The note and the next prompt take a line each.
    let hidden = lines.saturating_sub(rows.saturating_sub(2));
    let (lines, characters) = (pluralize(hidden, "more line"), group_digits(text.chars().count()));
    let note = format!(
        "note: {lines} above, {characters} characters in all; shorten with --limit N, or save with --output FILE"
    );
    (hidden > 0).then_some(note)
}

fn print_decisions(decisions: &[Decision], output: &Output) {
    let width = decisions.iter().map(|decision| decision.subject.chars().count()).max().unwrap_or(0).min(40);
    for decision in decisions {
        let time =
            decision.elapsed.map(|time| format!("  {:.1} ms", time.as_secs_f64() * 1e3)).unwrap_or_default();
        let Decision { stage, subject, detail, .. } = decision;
        output.message(&format!("{stage:<9} {subject:<width$}  {detail}{time}"));
    }
}
