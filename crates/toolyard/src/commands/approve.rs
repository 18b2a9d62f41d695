//! `toolyard servers approve`: shows what changed in a server's tools, and puts them into service as they are now.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::ContentHash;
use toolyard_mcp::client::{McpManager, Server};

use crate::{
    commands::{servers::tell_trouble, trust::confirmed},
    failure::{Code, Failure},
    output::Output,
    progress::waiting,
};

/// Approves all tools of a server that wait for it, or those that are named.
pub(crate) async fn run(
    manager: &McpManager,
    server: &Arc<Server>,
    tools: &[String],
    yes: bool,
    output: &Output,
) -> Result<(), Failure> {
    let id = &server.config().id;
    // What is approved is what the server says now, not what it said some day.
    waiting(id.as_str(), manager.connect(id.as_str())).await?.map_err(|error| {
        Failure::new(Code::Unreachable, format!("{id}: {error}"))
            .with_hint(format!("see what it said: toolyard servers logs {id}"))
    })?;
    let shelf = server.shelf();
    let known = |name: &String| shelf.out_of_service.iter().any(|tool| tool.name == *name);
    if let Some(unknown) = tools.iter().find(|name| !known(name)) {
        return Err(Failure::new(Code::BadUse, format!("`{unknown}` of {id} does not wait for approval"))
            .with_hint(format!("see what does: toolyard servers show {id}")));
    }
    let waiting: Vec<(String, ContentHash)> = shelf
        .out_of_service
        .iter()
        .map(|tool| (tool.name.clone(), tool.pin))
        .filter(|(name, _)| tools.is_empty() || tools.contains(name))
        .collect();
    let names: Vec<&str> = waiting.iter().map(|(name, _)| name.as_str()).collect();
    if waiting.is_empty() {
        output.talk(&format!("nothing of {id} waits for approval"));
        return Ok(());
    }
    if !output.wants_json() {
        tell_trouble(&shelf, output);
    } else if !yes {
        return Err(Failure::new(Code::BadUse, "with --json nothing is shown that could be agreed to")
            .with_hint(format!("look at it with `toolyard servers show {id}`, then say it with --yes")));
    }
    if !yes && !confirmed(&format!("Put {} into service as shown?", names.join(", ")))? {
        return Err(Failure::new(Code::Refused, format!("nothing of {id} was approved")));
    }
    server.approve(&waiting).await.map_err(|error| Failure::new(Code::Failed, error))?;
    if output.wants_json() {
        output.json(&json!({"server": id, "approved": names}));
    } else {
        output.talk(&format!("approved {} as it is now; a change must be approved again", names.join(", ")));
    }
    Ok(())
}
