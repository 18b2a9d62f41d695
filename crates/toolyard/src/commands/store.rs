//! `toolyard store`: is it sound, make it small, take it elsewhere.

use std::{
    io::{BufReader, BufWriter},
    path::Path,
};

use serde_json::json;
use toolyard_store::{Keeping, Store, TransferError, Verdict};

use crate::{
    cli::StoreCommand,
    failure::{Code, Failure},
    output::Output,
    progress::waiting,
};

/// Checks, exports, imports, vacuums, backs up.
pub(crate) async fn run(command: StoreCommand, store: &Store, output: &Output) -> Result<(), Failure> {
    match command {
        StoreCommand::Check => check(store, output).await,
        StoreCommand::Export { file } => {
            let mut target =
                BufWriter::new(std::fs::File::create(&file).map_err(|error| no_file(&file, &error))?);
            let rows = waiting("the export", store.export(&mut target)).await?.map_err(transfer)?;
            tell(output, "exported", rows);
            Ok(())
        }
        StoreCommand::Import { file } => {
            let mut source =
                BufReader::new(std::fs::File::open(&file).map_err(|error| no_file(&file, &error))?);
            let rows = waiting("the import", store.import(&mut source)).await?.map_err(transfer)?;
            tell(output, "imported", rows);
            Ok(())
        }
        StoreCommand::Vacuum => {
            let dropped = waiting("the store", store.vacuum(Keeping::default())).await??;
            tell(output, "dropped", dropped);
            Ok(())
        }
        StoreCommand::Backup { file } => {
            waiting("the backup", store.backup(&file)).await??;
            output.talk(&format!("a copy is in {}", file.display()));
            Ok(())
        }
    }
}

async fn check(store: &Store, output: &Output) -> Result<(), Failure> {
    let health = waiting("the store", store.check()).await??;
    if output.wants_json() {
        output.json(
            &json!({"location": store.location().to_string(), "sound": health.is_sound(), "health": health}),
        );
    } else {
        output.line(&format!("store      {}", store.location()));
        match &health.audit {
            Verdict::Whole { records, .. } => {
                output.line(&format!("audit      {records} records, chain whole"));
            }
            Verdict::Broken { number, reason } => {
                output.line(&format!("audit      BROKEN at record {number}: {reason}"));
            }
        }
        for (table, rows) in health.rows.iter().filter(|(_, rows)| *rows > 0) {
            output.line(&format!("rows       {table}: {rows}"));
        }
        for problem in &health.engine_problems {
            output.line(&format!("PROBLEM    {problem}"));
        }
    }
    if health.is_sound() {
        return Ok(());
    }
    Err(Failure::new(Code::Failed, "the store is not sound").with_hint("keep a copy before anything else"))
}

fn tell(output: &Output, word: &str, rows: u64) {
    if output.wants_json() {
        output.json(&json!({ word: rows }));
    } else {
        output.talk(&format!("{word} {rows} rows"));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn transfer(error: TransferError) -> Failure {
    let failure = Failure::new(Code::Failed, error.to_string());
    match error {
        TransferError::NotEmpty(_) => {
            failure.with_hint("import into a store of its own: set `store` in toolyard.toml")
        }
        _ => failure,
    }
}

fn no_file(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Code::BadUse, format!("failed to open {}: {error}", file.display()))
}
