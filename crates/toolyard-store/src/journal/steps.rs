//! Starts steps, recovers interrupted ones, and resolves those whose outcome is unknown.

use std::time::Duration;

use sqlx::AnyConnection;
use toolyard_core::{
    Lease, RawJson, Recovery, Resolution, RunId, StepIntent, StepRecord, StepStart, StepState, recovery,
    redact_json, unix_millis,
};

use super::{
    claim::{bind_lease, check_lease},
    records::step_record,
};
use crate::{
    error::StoreError,
    sql::{Durability, Engine, compress, enum_to_text, statement},
    store::Store,
};

/// Repeatable calls that take longer than this appear in the database while they run.
const SLOW_CALL_THRESHOLD: Duration = Duration::from_millis(50);

/// Inserts an intent if the lease is held and the step is new: the common case in one statement.
pub(super) async fn insert_intent(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
    intent: &StepIntent,
) -> Result<bool, StoreError> {
    // Without the lock, PostgreSQL would let another process claim the run before this commit.
    let lock = engine.postgres_only("FOR SHARE");
    let sql = format!(
        "INSERT INTO steps (run, step, number, tool, source, definition, arguments, redacted_arguments, repeatable,
                            state, redacted, fence, started_at)
         SELECT id, $4, $5, $6, $7, $8, $9, $10, $11, 'started', 0, fence, $12 FROM runs
         WHERE id = $1 AND owner = $2 AND fence = $3 {lock}
         ON CONFLICT (run, step) DO NOTHING"
    );
    let at = unix_millis();
    let query = bind_lease(sqlx::query(statement(sql)), lease).bind(intent.step.as_str()).bind(at);
    let query = query
        .bind(intent.tool.as_str())
        .bind(intent.source.as_ref().map(|source| source.as_str().to_owned()));
    let query = query.bind(intent.definition.to_string()).bind(intent.arguments.to_string());
    let query = query.bind(intent.redacted_arguments.as_str()).bind(i64::from(intent.repeatable)).bind(at);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// Decides what to do with a step that was started before.
pub(super) async fn restart_step(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
    intent: &StepIntent,
) -> Result<StepStart, StoreError> {
    check_lease(connection, engine, lease).await?;
    // Without the lock, a resolution that PostgreSQL commits before the update below would be overwritten.
    let lock = engine.postgres_only("FOR UPDATE");
    let query = sqlx::query(statement(format!("SELECT * FROM steps WHERE run = $1 AND step = $2 {lock}")));
    let row = query.bind(lease.run.as_str()).bind(intent.step.as_str()).fetch_one(&mut *connection).await?;
    let earlier = step_record(&row)?;
    match recovery(Some(&earlier), intent) {
        Recovery::Start | Recovery::Repeat => {
            let sql = "UPDATE steps SET state = 'started', fence = $3, started_at = $4, ended_at = NULL, outcome = NULL,
                       repeatable = $5, definition = $6, arguments = $7, redacted_arguments = $8
                       WHERE run = $1 AND step = $2";
            let query =
                sqlx::query(sql).bind(lease.run.as_str()).bind(intent.step.as_str()).bind(lease.fence);
            let query = query.bind(unix_millis()).bind(i64::from(intent.repeatable));
            let query = query.bind(intent.definition.to_string()).bind(intent.arguments.to_string());
            query.bind(intent.redacted_arguments.as_str()).execute(connection).await?;
            Ok(StepStart::Call)
        }
        Recovery::Reuse => Ok(StepStart::Reuse(Box::new(earlier))),
        Recovery::NeedsResolution => {
            let sql = "UPDATE steps SET state = 'unknown', fence = $3 WHERE run = $1 AND step = $2";
            let query =
                sqlx::query(sql).bind(lease.run.as_str()).bind(intent.step.as_str()).bind(lease.fence);
            query.execute(connection).await?;
            Ok(StepStart::Unknown(Box::new(StepRecord { state: StepState::Unknown, ..earlier })))
        }
    }
}

/// Writes the intent of a repeatable call that is still running after [`SLOW_CALL_THRESHOLD`].
pub(super) async fn write_intent_if_slow(store: Store, lease: Lease, step: String) {
    tokio::time::sleep(SLOW_CALL_THRESHOLD).await;
    if let Some(pending) = store.held_leases().pending_intent(&lease, &step) {
        let data = (store.engine(), lease, pending.intent);
        let written =
            store.write_statement(Durability::Relaxed, data, |connection, (engine, lease, intent)| {
                Box::pin(insert_intent(connection, *engine, lease, intent))
            });
        if let Err(error) = written.await {
            tracing::warn!(%error, step, "failed to write the intent of a running step");
        }
    }
}

/// A user's statement about a step whose outcome is unknown.
pub(super) struct StepResolution {
    engine: Engine,
    run: RunId,
    step: String,
    state: String,
    outcome: Vec<u8>,
}

impl StepResolution {
    pub(super) fn new(
        engine: Engine,
        run: &RunId,
        step: &str,
        resolution: Resolution,
        by: &str,
    ) -> Result<Self, StoreError> {
        let state = match resolution {
            Resolution::Done => StepState::Done,
            Resolution::NotDone => StepState::NotDone,
        };
        let note = RawJson::from(serde_json::json!({"resolved": {"resolution": resolution, "by": by}}));
        Ok(Self {
            engine,
            run: run.clone(),
            step: step.to_owned(),
            state: enum_to_text(&state),
            outcome: compress(redact_json(&note).0.get().as_bytes())?,
        })
    }
}

/// Resolves a step that is unknown, or that was started by an owner whose lease expired or was followed by another's;
/// returns whether it was.
pub(super) async fn resolve_step(
    connection: &mut AnyConnection,
    data: &StepResolution,
) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE steps SET state = $3, outcome = $4, ended_at = $5 WHERE run = $1 AND step = $2
         AND (state = 'unknown' OR (state = 'started' AND repeatable = 0
              AND EXISTS (SELECT 1 FROM runs WHERE id = $1 AND (lease_until < {} OR runs.fence > steps.fence))))",
        data.engine.now()
    );
    let query = sqlx::query(statement(sql)).bind(data.run.as_str()).bind(data.step.as_str());
    let query = query.bind(data.state.as_str()).bind(data.outcome.as_slice()).bind(unix_millis());
    Ok(query.execute(connection).await?.rows_affected() == 1)
}
