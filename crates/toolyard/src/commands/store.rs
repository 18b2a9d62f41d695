//! `toolyard store`: checks, exports, imports, vacuums and backs up the store.

use std::{
    io::{BufReader, BufWriter},
    path::Path,
};

use serde_json::json;
use toolyard_store::{AuditVerification, Removed, Store, TransferError};

use crate::{
    cli::StoreCommand,
    config::{CliContext, current_user, files::create_private},
    error::CliError,
    terminal::{Output, progress::with_progress},
};

pub(super) async fn run(
    command: StoreCommand,
    store: &Store,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        StoreCommand::Check => check(store, output).await,
        StoreCommand::Export { file } => {
            let mut target =
                BufWriter::new(create_private(&file).map_err(|error| open_error(&file, &error))?);
            let rows =
                with_progress("the export", store.export(&mut target)).await?.map_err(transfer_error)?;
            print_count(output, "exported", rows);
            Ok(())
        }
        StoreCommand::Import { file } => {
            let mut source =
                BufReader::new(std::fs::File::open(&file).map_err(|error| open_error(&file, &error))?);
            let rows =
                with_progress("the import", store.import(&mut source)).await?.map_err(transfer_error)?;
            print_count(output, "imported", rows);
            Ok(())
        }
        StoreCommand::Vacuum => {
            let (retention, by) = (context.settings.retention.retention(), current_user());
            let removed = with_progress("the store", store.vacuum(&retention, &by)).await??;
            let Removed { audit_records, runs, results } = removed;
            let data = json!({"deleted": results, "runs": runs, "audit_records": audit_records});
            let text = format!("deleted {results} results, {runs} runs and {audit_records} audit records");
            output.report(&data, &text);
            Ok(())
        }
        StoreCommand::Backup { file } => {
            with_progress("the backup", store.backup(&file)).await??;
            output.message(&format!("backed up to {}", file.display()));
            Ok(())
        }
    }
}

async fn check(store: &Store, output: &Output) -> Result<(), CliError> {
    let health = with_progress("the store", store.check()).await??;
    if output.is_json() {
        output.json(
            &json!({"location": store.location().to_string(), "sound": health.is_healthy(), "health": health}),
        );
    } else {
        output.line(&format!("store      {}", store.location()));
        match &health.audit {
            AuditVerification::Intact { records, .. } => {
                output.line(&format!("audit      {records} records, hash chain intact"));
            }
            AuditVerification::Broken { number, reason } => {
                output.line(&format!("audit      CORRUPT at record {number}: {reason}"));
            }
        }
        for (table, rows) in health.rows.iter().filter(|(_, rows)| *rows > 0) {
            output.line(&format!("rows       {table}: {rows}"));
        }
        for problem in &health.engine_problems {
            output.line(&format!("PROBLEM    {problem}"));
        }
    }
    if health.is_healthy() {
        return Ok(());
    }
    Err(CliError::failed("the store is damaged").with_hint("copy its files before you do anything else"))
}

fn print_count(output: &Output, action: &str, rows: u64) {
    output.report(&json!({ action: rows }), &format!("{action} {rows} rows"));
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn transfer_error(error: TransferError) -> CliError {
    let failure = CliError::failed(error.to_string());
    match error {
        TransferError::NotEmpty(_) => {
            failure.with_hint("import into a new store: set `store` in toolyard.toml")
        }
        _ => failure,
    }
}

fn open_error(file: &Path, error: &std::io::Error) -> CliError {
    CliError::usage(format!("failed to open {}: {error}", file.display()))
}
