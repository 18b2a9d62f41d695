//! Writes many step outcomes in one statement: a group commit costs as much as the statements in it.

use std::collections::HashSet;

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{Lease, StepIntent};

use super::held_leases::PendingIntent;
use crate::{
    error::StoreError,
    sql::{Engine, chunks, placeholders, statement},
};

/// One step outcome, as bound to the statement.
#[derive(Debug, Clone)]
pub(crate) struct OutcomeRow {
    run: String,
    owner: String,
    fence: i64,
    step: String,
    /// 1 for a step that is not in the database yet; the row then carries its intent.
    is_new: i64,
    /// Orders the steps of a run; the time of the start.
    number: i64,
    tool: String,
    source: Option<String>,
    definition: String,
    arguments: String,
    redacted_arguments: String,
    state: String,
    outcome: Vec<u8>,
    /// 1 if secrets were redacted from the outcome.
    redacted: i64,
    started_at: i64,
    ended_at: i64,
}

impl OutcomeRow {
    pub(crate) fn new(
        lease: &Lease,
        step: &str,
        state: String,
        outcome: Vec<u8>,
        redacted: bool,
        ended_at: i64,
    ) -> Self {
        Self {
            run: lease.run.to_string(),
            owner: lease.owner.clone(),
            fence: lease.fence,
            step: step.to_owned(),
            is_new: 0,
            number: 0,
            tool: String::new(),
            source: None,
            definition: String::new(),
            arguments: String::new(),
            redacted_arguments: String::new(),
            state,
            outcome,
            redacted: i64::from(redacted),
            started_at: 0,
            ended_at,
        }
    }

    /// Adds the intent of a step that is not in the database yet.
    pub(crate) fn with_intent(self, pending: PendingIntent) -> Self {
        let StepIntent { tool, source, definition, arguments, redacted_arguments, .. } = pending.intent;
        Self {
            is_new: 1,
            number: pending.started_at,
            tool,
            source: source.map(|source| source.to_string()),
            definition: definition.to_string(),
            arguments: arguments.to_string(),
            redacted_arguments,
            started_at: pending.started_at,
            ..self
        }
    }

    /// Identifies the row within its batch.
    pub(crate) fn key(&self) -> (String, String) {
        (self.run.clone(), self.step.clone())
    }
}

/// Row counts for which a statement exists.
const CHUNK_SIZES: [usize; 3] = [32, 8, 1];
const VALUES_PER_ROW: usize = 16;

/// Writes the outcomes whose lease is held and whose step was started under it; returns the keys of those rows.
pub(crate) async fn write_outcomes(
    connection: &mut AnyConnection,
    engine: Engine,
    rows: &[&OutcomeRow],
) -> Result<HashSet<(String, String)>, StoreError> {
    let mut written = HashSet::with_capacity(rows.len());
    for chunk in chunks(rows, &CHUNK_SIZES) {
        let mut query = sqlx::query(statement(upsert_sql(engine, chunk.len())));
        for row in chunk {
            query =
                query.bind(row.run.as_str()).bind(row.owner.as_str()).bind(row.fence).bind(row.step.as_str());
            query = query.bind(row.is_new).bind(row.number).bind(row.tool.as_str()).bind(row.source.clone());
            query = query.bind(row.definition.as_str()).bind(row.arguments.as_str());
            query = query
                .bind(row.redacted_arguments.as_str())
                .bind(row.state.as_str())
                .bind(row.outcome.as_slice());
            query = query.bind(row.redacted).bind(row.started_at).bind(row.ended_at);
        }
        for row in query.fetch_all(&mut *connection).await? {
            written.insert((row.try_get("run")?, row.try_get("step")?));
        }
    }
    Ok(written)
}

fn upsert_sql(engine: Engine, rows: usize) -> String {
    // Without the lock, PostgreSQL would let another process claim a run before this commit.
    let lock = engine.postgres_only("FOR SHARE OF runs");
    format!(
        "WITH input (run, owner, fence, step, is_new, number, tool, source, definition, arguments, redacted_arguments,
                     state, outcome, redacted, started_at, ended_at) AS (VALUES {values})
         INSERT INTO steps (run, step, number, tool, source, definition, arguments, redacted_arguments, repeatable, state,
                            outcome, redacted, fence, started_at, ended_at)
         SELECT runs.id, input.step, input.number, input.tool, input.source, input.definition, input.arguments,
                input.redacted_arguments, 1, input.state, input.outcome, input.redacted, runs.fence, input.started_at,
                input.ended_at
         FROM input JOIN runs ON runs.id = input.run AND runs.owner = input.owner AND runs.fence = input.fence
         WHERE input.is_new = 1 OR EXISTS (SELECT 1 FROM steps AS known WHERE known.run = input.run
                                          AND known.step = input.step)
         {lock}
         ON CONFLICT (run, step) DO UPDATE
         SET state = excluded.state, outcome = excluded.outcome, redacted = excluded.redacted,
             ended_at = excluded.ended_at
         WHERE steps.state = 'started' AND steps.fence = excluded.fence
         RETURNING run, step",
        values = placeholders(engine, rows, VALUES_PER_ROW)
    )
}
