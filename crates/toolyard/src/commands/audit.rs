//! `toolyard audit`: who called what, and is the log still what was written.

use std::io::Write as _;

use serde_json::json;
use toolyard_core::ContentHash;
use toolyard_store::{AuditEntry, AuditQuery, Store, Verdict};

use crate::{
    cli::{AuditCommand, AuditFilter},
    failure::{Code, Failure},
    output::{Output, harmless},
    progress::waiting,
};

/// How many records one look takes from the store.
const PAGE: i64 = 10_000;

/// Shows, verifies, exports.
pub(crate) async fn run(command: AuditCommand, store: &Store, output: &Output) -> Result<(), Failure> {
    match command {
        AuditCommand::Tail { lines } => {
            list(&store.audit(&AuditQuery { limit: lines, ..AuditQuery::default() }).await?, output);
            Ok(())
        }
        AuditCommand::Search { filter, lines } => {
            list(&store.audit(&query(filter, lines)).await?, output);
            Ok(())
        }
        AuditCommand::Verify { expect } => verify(expect.as_deref(), store, output).await,
        AuditCommand::Export { file } => {
            let failed = |error: std::io::Error| {
                Failure::new(Code::BadUse, format!("failed to write {}: {error}", file.display()))
            };
            let mut target = std::io::BufWriter::new(std::fs::File::create(&file).map_err(failed)?);
            let mut before = None;
            let mut pages = Vec::new();
            // The log is read backwards, a page at a time, and written forwards.
            loop {
                let page = store.audit(&AuditQuery { before, limit: PAGE, ..AuditQuery::default() }).await?;
                let Some(first) = page.first() else { break };
                before = Some(first.number);
                pages.push(page);
            }
            for entry in pages.iter().rev().flatten() {
                let line = serde_json::to_string(entry).unwrap_or_default();
                writeln!(target, "{line}").map_err(failed)?;
            }
            target.flush().map_err(failed)?;
            output.talk(&format!("exported {} records", pages.iter().map(Vec::len).sum::<usize>()));
            Ok(())
        }
    }
}

fn query(filter: AuditFilter, limit: i64) -> AuditQuery {
    AuditQuery { tool: filter.tool, who: filter.who, outcome: filter.outcome, before: None, limit }
}

fn list(entries: &[AuditEntry], output: &Output) {
    if output.wants_json() {
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
            harmless(&entry.record.who),
            harmless(&entry.record.tool),
            harmless(&sources.join(", ")),
            format!("{} ms", entry.record.milliseconds),
            harmless(&entry.record.outcome),
        ]
    };
    let rows: Vec<_> = entries.iter().map(row).collect();
    output.table(["NUMBER", "AT", "WHO", "TOOL", "SOURCES", "TIME", "OUTCOME"], &rows);
}

/// The whole chain; with a number and hash that somebody noted, also against a chain that was written anew.
async fn verify(expect: Option<&str>, store: &Store, output: &Output) -> Result<(), Failure> {
    let noted = expect.map(parse_noted).transpose()?;
    let verdict = waiting("the audit log", store.verify_audit(noted)).await??;
    if output.wants_json() {
        output.json(&json!({ "verdict": verdict }));
    }
    match verdict {
        Verdict::Whole { records, head } => {
            if !output.wants_json() {
                output.line(&format!("{records} records, all as they were written"));
                output.line(&format!("note this elsewhere to show it again later: {records}:{head}"));
            }
            Ok(())
        }
        Verdict::Broken { number, reason } => {
            let failure =
                Failure::new(Code::Failed, format!("the audit log is broken at record {number}: {reason}"));
            Err(if output.wants_json() { failure.silent() } else { failure })
        }
    }
}

fn parse_noted(text: &str) -> Result<(i64, ContentHash), Failure> {
    let parsed =
        text.split_once(':').and_then(|(number, hash)| Some((number.parse().ok()?, hash.parse().ok()?)));
    parsed.ok_or_else(|| {
        Failure::new(
            Code::BadUse,
            "--expect takes NUMBER:HASH as `toolyard audit verify` prints it".to_owned(),
        )
    })
}
