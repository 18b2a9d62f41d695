//! Builds the audit record of a call.

use toolyard_core::{AuditRecord, ContentHash, SourceId, ToolError, ToolOutput, unix_millis};

use crate::execution::attempt::Call;

/// Caller, tool, source and outcome of a call; arguments and result as hashes.
pub(crate) fn audit_record(
    call: &Call<'_>,
    caller_name: &str,
    outcome: &Result<ToolOutput, ToolError>,
) -> AuditRecord {
    let elapsed = call.elapsed();
    let sources: Vec<SourceId> = match outcome {
        Ok(output) => output.meta.sources.clone(),
        Err(error) => error.source_id().cloned().into_iter().collect(),
    };
    AuditRecord {
        at: unix_millis(),
        caller: caller_name.to_owned(),
        call: call.request.id.clone(),
        tool: call.request.tool_name.clone(),
        sources,
        arguments: ContentHash::of(call.request.arguments.get()),
        result: outcome.as_ref().ok().map(|output| ContentHash::of(output.to_text())),
        outcome: AuditRecord::outcome_label(outcome.as_ref().err().map(ToolError::kind)),
        milliseconds: i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX),
    }
}
