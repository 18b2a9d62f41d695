//! `toolyard audit`: shows, verifies and exports the audit log.

use std::io::Write as _;

use serde_json::json;
use toolyard_core::ContentHash;
use toolyard_store::{AuditEntry, AuditQuery, AuditVerification, Store};

use crate::{
    cli::{AuditCommand, AuditFilter},
    config::files::create_private,
    error::CliError,
    terminal::{Output, progress::with_progress},
};

const RECORDS_PER_PAGE: i64 = 10_000;
/// What no check of the log can find.
const NOT_DETECTABLE: &str = "not detectable: calls that a killed process made but did not record (with `audit = \"required\"`, it returned no result of them)";

pub(super) async fn run(command: AuditCommand, store: &Store, output: &Output) -> Result<(), CliError> {
    match command {
        AuditCommand::Tail { limit } => {
            print_entries(&store.query_audit(&AuditQuery { limit, ..AuditQuery::default() }).await?, output);
            Ok(())
        }
        AuditCommand::Search { filter, limit } => {
            print_entries(&store.query_audit(&query(filter, limit)).await?, output);
            Ok(())
        }
        AuditCommand::Verify { expect } => verify(expect.as_deref(), store, output).await,
        AuditCommand::Export { file } => {
            let write_error = |error: std::io::Error| {
                CliError::usage(format!("failed to write {}: {error}", file.display()))
            };
            let mut target = std::io::BufWriter::new(create_private(&file).map_err(write_error)?);
            let mut before = None;
            let mut pages = Vec::new();
            // Pages are read from the newest to the oldest and written in reverse.
            loop {
                let page = store
                    .query_audit(&AuditQuery { before, limit: RECORDS_PER_PAGE, ..AuditQuery::default() })
                    .await?;
                let Some(oldest) = page.first() else { break };
                before = Some(oldest.number);
                pages.push(page);
            }
            for entry in pages.iter().rev().flatten() {
                let line = serde_json::to_string(entry).unwrap_or_default();
                writeln!(target, "{line}").map_err(write_error)?;
            }
            target.flush().map_err(write_error)?;
            output.message(&format!("exported {} records", pages.iter().map(Vec::len).sum::<usize>()));
            Ok(())
        }
    }
}

fn query(filter: AuditFilter, limit: i64) -> AuditQuery {
    AuditQuery { tool: filter.tool, caller: filter.caller, outcome: filter.outcome, before: None, limit }
}

fn print_entries(entries: &[AuditEntry], output: &Output) {
    if output.is_json() {
        output.json(&entries);
        return;
    }
    let row = |entry: &AuditEntry| {
        let sources: Vec<&str> = entry.record.sources.iter().map(toolyard_core::SourceId::as_str).collect();
        let at =
            jiff::Timestamp::from_millisecond(entry.record.at).map(|at| at.to_string()).unwrap_or_default();
        [
            entry.number.to_string(),
            at,
            entry.record.caller.clone(),
            entry.record.tool.clone(),
            sources.join(", "),
            format!("{} ms", entry.record.milliseconds),
            entry.record.outcome.clone(),
        ]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    output.table(["NUMBER", "AT", "CALLER", "TOOL", "SOURCES", "DURATION", "OUTCOME"], rows);
}

/// Verifies the whole hash chain, and that it still contains an earlier checkpoint.
async fn verify(expected: Option<&str>, store: &Store, output: &Output) -> Result<(), CliError> {
    let checkpoint = expected.map(parse_checkpoint).transpose()?;
    let verdict = with_progress("the audit log", store.verify_audit(checkpoint)).await??;
    if output.is_json() {
        output.json(&json!({ "verdict": verdict }));
    }
    match verdict {
        AuditVerification::Intact { records, head, lost } => {
            if !output.is_json() {
                let removed = store.removed_audit_records().await?;
                let note = match removed {
                    0 => String::new(),
                    removed => format!("; the first {removed} were removed by [retention]"),
                };
                output.line(&format!("{records} records, none missing or altered{note}"));
                if lost > 0 {
                    output.line(&format!("{lost} calls have no record, as the records themselves say"));
                }
                output.line(NOT_DETECTABLE);
                output.line(&format!(
                    "checkpoint for a later --expect, to be stored elsewhere: {records}:{head}"
                ));
            }
            Ok(())
        }
        AuditVerification::Broken { number, reason } => {
            let failure = CliError::failed(format!("the audit log is corrupt at record {number}: {reason}"));
            Err(if output.is_json() { failure.without_message() } else { failure })
        }
    }
}

fn parse_checkpoint(text: &str) -> Result<(i64, ContentHash), CliError> {
    let parsed =
        text.split_once(':').and_then(|(number, hash)| Some((number.parse().ok()?, hash.parse().ok()?)));
    parsed.ok_or_else(|| {
        CliError::usage("--expect takes NUMBER:HASH as `toolyard audit verify` prints it".to_owned())
    })
}
