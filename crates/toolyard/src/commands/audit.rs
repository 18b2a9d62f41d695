//! `toolyard audit`: shows, verifies and exports the audit log.

use std::{
    future::pending,
    io::{IsTerminal as _, Write as _},
    path::Path,
    pin::pin,
    time::Duration,
};

use serde_json::json;
use tokio::time::sleep;
use toolyard_core::ContentHash;
use toolyard_store::{AuditEntry, AuditQuery, AuditVerification, Store};

use crate::{
    cli::{AuditCommand, AuditFilter},
    config::files::create_private,
    error::CliError,
    terminal::{
        Output, pluralize,
        progress::{termination_signal, with_progress},
    },
};

const RECORDS_PER_PAGE: i64 = 10_000;
/// How often an export that follows the log looks for further records.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
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
        AuditCommand::Export { file, after, since, follow } => {
            let selection = AuditQuery {
                after,
                since,
                from_earliest: true,
                limit: RECORDS_PER_PAGE,
                ..AuditQuery::default()
            };
            export(&file, selection, follow, store, output).await
        }
    }
}

/// Writes records to a file, or to stdout if it is called `-`; with `follow` also those that come later, until Ctrl-C.
async fn export(
    file: &Path,
    mut selection: AuditQuery,
    follow: bool,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    // Registered before the first page: a signal that comes while records are written is not lost.
    let termination = follow.then(termination_signal);
    let mut interrupt = pin!(async move {
        match termination {
            Some(signal) => signal.await,
            None => pending().await,
        }
    });
    let write_error =
        |error: std::io::Error| CliError::usage(format!("failed to write {}: {error}", file.display()));
    let is_stdout = file.as_os_str() == "-";
    // A closed pipe is an error. A terminal gets escaped text.
    let mut target: Option<Box<dyn std::io::Write>> = match is_stdout {
        true if std::io::stdout().is_terminal() => None,
        true => Some(Box::new(std::io::BufWriter::new(std::io::stdout()))),
        false => Some(Box::new(std::io::BufWriter::new(create_private(file).map_err(write_error)?))),
    };
    let (mut count, mut has_failed) = (0, false);
    loop {
        let page = tokio::select! {
            page = store.query_audit(&selection) => page,
            () = &mut interrupt => break,
        };
        let page = match page {
            Err(error) if follow => {
                if !has_failed {
                    output.message(&format!("warning: {error}; the export goes on when the store answers"));
                }
                has_failed = true;
                Vec::new()
            }
            page => {
                has_failed = false;
                page?
            }
        };
        for entry in &page {
            match &mut target {
                Some(target) => {
                    let line = serde_json::to_string(entry).unwrap_or_default();
                    writeln!(target, "{line}").map_err(write_error)?;
                }
                None => output.json_line(entry),
            }
        }
        if let Some(target) = &mut target {
            target.flush().map_err(write_error)?;
        }
        count += page.len();
        selection.after = page.last().map_or(selection.after, |last| Some(last.number));
        if i64::try_from(page.len()).is_ok_and(|length| length < selection.limit) {
            if !follow {
                // Later records belong to the next export.
                break;
            }
            tokio::select! {
                () = &mut interrupt => break,
                () = sleep(FOLLOW_INTERVAL) => {}
            }
        }
    }
    let next =
        selection.after.map(|last| format!("; continue later with --after {last}")).unwrap_or_default();
    output.message(&format!("exported {}{next}", pluralize(count, "record")));
    Ok(())
}

fn query(filter: AuditFilter, limit: i64) -> AuditQuery {
    let AuditFilter { tool, caller, outcome, since, until } = filter;
    AuditQuery { tool, caller, outcome, since, until, limit, ..AuditQuery::default() }
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
