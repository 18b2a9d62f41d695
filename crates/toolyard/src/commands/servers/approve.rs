//! `toolyard servers approve`: shows changed tool definitions and approves them.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::ContentHash;
use toolyard_mcp_client::{ManagedServer, McpManager};

use super::print_unusable_tools;
use crate::{
    error::CliError,
    terminal::{Output, confirm, progress::with_progress},
};

/// Approves the named tools of a server, or all that await approval.
pub(super) async fn run(
    manager: &McpManager,
    server: &Arc<ManagedServer>,
    tools: &[String],
    yes: bool,
    output: &Output,
) -> Result<(), CliError> {
    let id = &server.config().id;
    // The current definitions are approved, not cached ones.
    with_progress(id.as_str(), manager.connect(id.as_str())).await?.map_err(|error| {
        CliError::unreachable(format!("{id}: {error}"))
            .with_hint(format!("show its log: toolyard servers logs {id}"))
    })?;
    let approvals = server.tool_approvals();
    let is_pending = |name: &String| approvals.quarantined.iter().any(|tool| tool.name == *name);
    if let Some(unknown) = tools.iter().find(|name| !is_pending(name)) {
        return Err(CliError::usage(format!("`{unknown}` of {id} does not await approval"))
            .with_hint(format!("list tools that do: toolyard servers show {id}")));
    }
    let pending: Vec<(String, ContentHash)> = approvals
        .quarantined
        .iter()
        .map(|tool| (tool.name.clone(), tool.pin))
        .filter(|(name, _)| tools.is_empty() || tools.contains(name))
        .collect();
    let names: Vec<&str> = pending.iter().map(|(name, _)| name.as_str()).collect();
    if pending.is_empty() {
        output.message(&format!("no tools of {id} await approval"));
        return Ok(());
    }
    if !output.is_json() {
        print_unusable_tools(&approvals, output);
    } else if !yes {
        return Err(CliError::usage("--json does not show the change to be approved")
            .with_hint(format!("review it with `toolyard servers show {id}`, then pass --yes")));
    }
    let not_approved = format!("no tools of {id} were approved");
    if !yes && !confirm(&format!("Approve {} as shown?", names.join(", ")), &not_approved)? {
        return Err(CliError::denied(not_approved));
    }
    server.approve(&pending).await?;
    let message =
        format!("approved {}; a definition that changes later must be approved again", names.join(", "));
    output.report(&json!({"server": id, "approved": names}), &message);
    Ok(())
}
