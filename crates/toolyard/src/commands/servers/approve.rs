//! `toolyard servers approve`: shows new and changed tool definitions and approves them.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{AuditedDecision, ContentHash, SourceId, SourceKind};
use toolyard_mcp_client::{ManagedServer, McpManager, ToolApprovals};

use super::{names_of_others, print_unusable_tools, yielded_names};
use crate::{
    config::{CliContext, record_decision},
    error::CliError,
    terminal::{Output, confirm, progress::with_progress},
};

/// What to approve.
pub(super) struct ApprovalRequest<'a> {
    /// The tools; all that await approval if empty.
    pub(super) tools: &'a [String],
    /// Whether the tools also get their bare names.
    pub(super) take_names: bool,
    /// Whether to skip the confirmation.
    pub(super) yes: bool,
}

/// Approves the named tools of a server, or all that await approval.
pub(super) async fn run(
    manager: &McpManager,
    server: &Arc<ManagedServer>,
    request: &ApprovalRequest<'_>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let id = &server.config().id;
    // The current definitions are approved, not cached ones.
    with_progress(id.as_str(), manager.connect(id.as_str())).await?.map_err(|error| {
        let error = CliError::unreachable(format!("{id}: {error}"));
        match server.config().has_log() {
            true => error.with_hint(format!("show its log: toolyard servers logs {id}")),
            false => error,
        }
    })?;
    let approved = approve_tools(server, request, context, output).await?;
    let taken = if request.take_names {
        take_names(manager, server, request, context, output).await?
    } else {
        print_shared_names(server, &approved, output);
        Vec::new()
    };
    if output.is_json() {
        output.json(&json!({"server": id, "approved": approved, "names": taken}));
    }
    Ok(())
}

/// Approves tools that await it, after confirmation, and returns their names.
async fn approve_tools(
    server: &Arc<ManagedServer>,
    request: &ApprovalRequest<'_>,
    context: &CliContext,
    output: &Output,
) -> Result<Vec<String>, CliError> {
    let (id, approvals) = (&server.config().id, server.tool_approvals());
    let confirmed = confirm_tools(id, &approvals, request, context, output).await?;
    let names: Vec<String> = confirmed.iter().map(|(name, _)| name.clone()).collect();
    if !confirmed.is_empty() {
        server.approve(&confirmed).await?;
        let names_text = names.join(", ");
        output.message(&format!(
            "approved {names_text}; a definition that changes later must be approved again"
        ));
    }
    Ok(names)
}

/// Shows the tools that await approval and asks for it. Returns those to approve; the decision is recorded.
pub(super) async fn confirm_tools(
    id: &SourceId,
    approvals: &ToolApprovals,
    request: &ApprovalRequest<'_>,
    context: &CliContext,
    output: &Output,
) -> Result<Vec<(String, ContentHash)>, CliError> {
    let is_pending = |name: &str| approvals.quarantined.iter().any(|tool| tool.name == name);
    let is_approved = |name: &str| approvals.approved().iter().any(|tool| *tool.spec.name == *name);
    let is_valid = |name: &String| is_pending(name) || (request.take_names && is_approved(name));
    if let Some(unknown) = request.tools.iter().find(|name| !is_valid(name)) {
        return Err(CliError::usage(format!("`{unknown}` of {id} does not await approval"))
            .with_hint(format!("list tools that do: toolyard servers show {id}")));
    }
    let pending: Vec<(String, ContentHash)> = approvals
        .quarantined
        .iter()
        .map(|tool| (tool.name.clone(), tool.pin))
        .filter(|(name, _)| request.tools.is_empty() || request.tools.contains(name))
        .collect();
    let names: Vec<String> = pending.iter().map(|(name, _)| name.clone()).collect();
    if pending.is_empty() {
        if !request.take_names {
            output.message(&format!("no tools of {id} await approval"));
        }
        return Ok(pending);
    }
    if !output.is_json() {
        print_unusable_tools(approvals, output);
    } else if !request.yes {
        return Err(CliError::usage("--json does not show the change to be approved")
            .with_hint(format!("review it with `toolyard servers show {id}`, then pass --yes")));
    }
    let not_approved = format!("no tools of {id} were approved");
    if !request.yes && !confirm(&format!("Approve {} as shown?", names.join(", ")), &not_approved)? {
        return Err(CliError::denied(not_approved));
    }
    for (name, pin) in &pending {
        record_decision(AuditedDecision::ApproveDefinition, &format!("{name}@{id}"), *pin, context).await?;
    }
    Ok(pending)
}

/// Gives the requested tools their bare names, after confirmation, and returns those that changed hands.
async fn take_names(
    manager: &McpManager,
    server: &Arc<ManagedServer>,
    request: &ApprovalRequest<'_>,
    context: &CliContext,
    output: &Output,
) -> Result<Vec<String>, CliError> {
    let id = &server.config().id;
    let is_requested = |name: &str| request.tools.iter().any(|tool| *tool == *name);
    let others = contesting_servers(manager, id);
    // As stored: a name stays with the source that claimed it first, also while that may not offer it.
    let stored = yielded_names(server, |tool| tool.claim.clone());
    let mut shared: Vec<(String, SourceId)> =
        stored.into_iter().chain(others).filter(|(name, _)| is_requested(name)).collect();
    shared.sort_by(|one, other| one.0.cmp(&other.0));
    shared.dedup_by(|one, other| one.0 == other.0);
    let names: Vec<String> = shared.iter().map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        output.message(&format!("{id} already has the names of these tools"));
        return Ok(names);
    }
    if let Some((name, owner)) = shared.iter().find(|(_, owner)| owner.kind() != SourceKind::Mcp) {
        return Err(CliError::usage(format!("`{name}` belongs to {owner}, which precedes servers"))
            .with_hint(format!("pin it in toolyard.toml: [routing.pin] {name} = \"{id}\"")));
    }
    let moves: Vec<String> = shared.iter().map(|(name, owner)| format!("`{name}` from {owner}")).collect();
    let kept = format!("{id} did not get {}", names.join(", "));
    let question = format!("Give {} to {id}? Calls by name alone then reach {id}.", moves.join(", "));
    if !request.yes && !confirm(&question, &kept)? {
        return Err(CliError::denied(kept));
    }
    for name in &names {
        let subject = format!("{name}@{id}");
        record_decision(AuditedDecision::GiveName, &subject, ContentHash::of(""), context).await?;
    }
    manager.give_names(id.as_str(), &names).await?;
    output.message(&format!("{} now reaches {id}", names.join(", ")));
    Ok(names)
}

/// Names that other servers contest, with those; the names of this server may be among them.
fn contesting_servers(manager: &McpManager, server: &SourceId) -> Vec<(String, SourceId)> {
    let mut contested = Vec::new();
    for other in manager.servers().iter().filter(|other| other.config().id != *server) {
        let approvals = other.tool_approvals();
        let tools = approvals
            .approved()
            .iter()
            .filter(|tool| tool.claim.contests && tool.claim.yields_to.as_ref() == Some(server));
        contested.extend(tools.map(|tool| (tool.spec.name.to_string(), other.config().id.clone())));
    }
    contested
}

/// Says how approved tools are called whose names belong to other sources.
fn print_shared_names(server: &ManagedServer, approved: &[String], output: &Output) {
    let id = &server.config().id;
    for (name, owner) in names_of_others(server).into_iter().filter(|(name, _)| approved.contains(name)) {
        output.message(&format!("  `{name}` belongs to {owner}: call it as {id}.{name}"));
        if owner.kind() == SourceKind::Mcp {
            let command = format!("toolyard servers approve {id} {name} --take-names");
            output.message(&format!("  hint: give it the name: {command}"));
        }
    }
}
