//! Rows of runs and steps as records.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{RunRecord, SourceId, StepRecord};

use crate::{
    error::StoreError,
    sql::{Engine, decompress, json_from_text, read_enum, read_flag, read_hash, read_id},
};

/// Selects runs, and whether their lease is still valid by the database's clock.
pub(super) fn select_runs(engine: Engine) -> String {
    format!(
        "SELECT runs.*, CASE WHEN owner IS NULL OR lease_until < {} THEN 0 ELSE 1 END AS leased FROM runs",
        engine.now()
    )
}

pub(super) fn run_record(row: &AnyRow) -> Result<RunRecord, StoreError> {
    Ok(RunRecord {
        id: read_id(row, "id")?,
        kind: row.try_get("kind")?,
        state: read_enum(row, "state")?,
        detail: json_from_text(row.try_get("detail")?)?,
        owner: row.try_get("owner")?,
        leased: read_flag(row, "leased")?,
        fence: row.try_get("fence")?,
        created_at: row.try_get("created_at")?,
    })
}

pub(super) fn step_record(row: &AnyRow) -> Result<StepRecord, StoreError> {
    let outcome: Option<Vec<u8>> = row.try_get("outcome")?;
    Ok(StepRecord {
        run: read_id(row, "run")?,
        step: row.try_get("step")?,
        tool: row.try_get("tool")?,
        source: row.try_get::<Option<String>, _>("source")?.map(SourceId::from),
        definition: read_hash(row, "definition")?,
        arguments: read_hash(row, "arguments")?,
        redacted_arguments: row.try_get("redacted_arguments")?,
        repeatable: read_flag(row, "repeatable")?,
        state: read_enum(row, "state")?,
        outcome: outcome.map(|outcome| json_from_text(decompress(&outcome)?)).transpose()?,
        redacted: read_flag(row, "redacted")?,
        fence: row.try_get("fence")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
    })
}
