//! Outcomes of many steps in one statement: what a group commit costs is the statements in it.

use std::collections::HashSet;

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{Intent, Lease};

use crate::{
    engine::{Engine, statement},
    error::StoreError,
    leases::Begun,
    rows::{chunks, places},
};

/// One outcome as it is written.
#[derive(Debug, Clone)]
pub(crate) struct OutcomeRow {
    run: String,
    owner: String,
    fence: i64,
    step: String,
    /// 1 for a step that is not in the database yet; the intent comes with it then.
    fresh: i64,
    number: i64,
    tool: String,
    source: Option<String>,
    definition: String,
    arguments: String,
    shown_arguments: String,
    state: String,
    outcome: Vec<u8>,
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
            fresh: 0,
            number: 0,
            tool: String::new(),
            source: None,
            definition: String::new(),
            arguments: String::new(),
            shown_arguments: String::new(),
            state,
            outcome,
            redacted: i64::from(redacted),
            started_at: 0,
            ended_at,
        }
    }

    /// The same outcome with the intent that was only in memory.
    pub(crate) fn with_intent(self, begun: Begun) -> Self {
        let Intent { tool, source, definition, arguments, shown_arguments, .. } = begun.intent;
        Self {
            fresh: 1,
            number: begun.at,
            tool,
            source: source.map(|source| source.to_string()),
            definition: definition.to_string(),
            arguments: arguments.to_string(),
            shown_arguments,
            started_at: begun.at,
            ..self
        }
    }

    /// What tells it from others of the same batch.
    pub(crate) fn key(&self) -> (String, String) {
        (self.run.clone(), self.step.clone())
    }
}

/// Statements exist for these numbers of rows only, so that each is prepared once.
const CHUNKS: [usize; 3] = [32, 8, 1];
/// How many values one row brings.
const VALUES: usize = 16;

/// Writes outcomes whose leases are held and whose steps were started under them; which those are.
pub(crate) async fn write_outcomes(
    connection: &mut AnyConnection,
    engine: Engine,
    rows: &[&OutcomeRow],
) -> Result<HashSet<(String, String)>, StoreError> {
    let mut written = HashSet::with_capacity(rows.len());
    for chunk in chunks(rows, &CHUNKS) {
        let mut query = sqlx::query(statement(sql_for(engine, chunk.len())));
        for row in chunk {
            query =
                query.bind(row.run.as_str()).bind(row.owner.as_str()).bind(row.fence).bind(row.step.as_str());
            query = query.bind(row.fresh).bind(row.number).bind(row.tool.as_str()).bind(row.source.clone());
            query = query.bind(row.definition.as_str()).bind(row.arguments.as_str());
            query = query
                .bind(row.shown_arguments.as_str())
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

fn sql_for(engine: Engine, rows: usize) -> String {
    // PostgreSQL must lock the leases, or somebody could take one between our look and our commit.
    let lock = match engine {
        Engine::Sqlite => "",
        Engine::Postgres => "FOR SHARE OF runs",
    };
    format!(
        "WITH given (run, owner, fence, step, fresh, number, tool, source, definition, arguments, shown_arguments,
                     state, outcome, redacted, started_at, ended_at) AS (VALUES {values})
         INSERT INTO steps (run, step, number, tool, source, definition, arguments, shown_arguments, repeatable, state,
                            outcome, redacted, fence, started_at, ended_at)
         SELECT runs.id, given.step, given.number, given.tool, given.source, given.definition, given.arguments,
                given.shown_arguments, 1, given.state, given.outcome, given.redacted, runs.fence, given.started_at,
                given.ended_at
         FROM given JOIN runs ON runs.id = given.run AND runs.owner = given.owner AND runs.fence = given.fence
         WHERE given.fresh = 1 OR EXISTS (SELECT 1 FROM steps AS known WHERE known.run = given.run
                                          AND known.step = given.step)
         {lock}
         ON CONFLICT (run, step) DO UPDATE
         SET state = excluded.state, outcome = excluded.outcome, redacted = excluded.redacted,
             ended_at = excluded.ended_at
         WHERE steps.state = 'started' AND steps.fence = excluded.fence
         RETURNING run, step",
        values = places(engine, rows, VALUES)
    )
}
