//! Builds the audit record of a call.

use toolyard_core::{AuditRecord, ContentHash, SourceId, ToolError, ToolOutput, unix_millis};

use crate::execution::attempt::Call;

/// Longer names are truncated: clients choose them, and many records wait in memory while the store fails.
const MAX_NAME_BYTES: usize = 512;

/// Caller, tool, source and outcome of a call; arguments and result as hashes.
pub(crate) fn audit_record(call: &Call<'_>, outcome: &Result<ToolOutput, ToolError>) -> AuditRecord {
    let elapsed = call.elapsed();
    let sources: Vec<SourceId> = match outcome {
        Ok(output) => output.meta.sources.clone(),
        Err(error) => error.source_id().cloned().into_iter().collect(),
    };
    AuditRecord {
        at: unix_millis(),
        caller: bounded(call.caller_name),
        call: bounded(&call.request.id),
        tool: bounded(&call.request.tool_name),
        sources,
        arguments: ContentHash::of(call.request.arguments.get()),
        result: outcome.as_ref().ok().map(|output| ContentHash::of(output.to_text())),
        outcome: AuditRecord::outcome_label(outcome.as_ref().err().map(ToolError::kind)),
        milliseconds: i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX),
    }
}

fn bounded(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    format!("{}…", name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default())
}
