//! The journal in SQL: intents and outcomes, leases with fencing numbers.

use std::{sync::Arc, time::Duration};

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{
    Begun, Intent, Journal, JournalError, JournalFuture, Lease, RawJson, Recovery, Resolution, RunId,
    RunRecord, RunState, SourceId, StepOutcome, StepRecord, StepState, recovery, redact_json,
};

use crate::{
    compress::{compressed, uncompressed},
    engine::{Durability, Engine, statement},
    error::StoreError,
    outcomes::OutcomeRow,
    store::{Store, now},
    words::{read_word, word},
};

/// Calls shorter than this need not be seen under way.
const MOMENT: Duration = Duration::from_millis(50);

impl Journal for Store {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        Box::pin(async move {
            let id = RunId::from(ulid::Ulid::new().to_string());
            let data = (id.clone(), kind.to_owned(), redact_json(detail).0);
            self.write(Durability::Synced, data, |connection, (id, kind, detail)| {
                Box::pin(async move {
                    let sql =
                        "INSERT INTO runs (id, kind, state, detail, owner, fence, lease_until, created_at)
                               VALUES ($1, $2, 'open', $3, NULL, 0, 0, $4)";
                    let query = sqlx::query(sql).bind(id.as_str()).bind(kind.as_str()).bind(detail.get());
                    query.bind(now()).execute(connection).await?;
                    Ok(())
                })
            })
            .await?;
            Ok(id)
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        let claim = Claim::new(self.engine(), Wanted::Run(run.clone()), owner, lease);
        Box::pin(async move {
            let taken =
                self.write(Durability::Synced, claim, |connection, claim| Box::pin(take(connection, claim)));
            match taken.await? {
                Some(lease) => self.now_held(lease).await,
                None => {
                    let known = self.run(run).await?;
                    Err(JournalError::Held { run: run.clone(), owner: known.owner.unwrap_or_default() })
                }
            }
        })
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        let claim = Claim::new(self.engine(), Wanted::Next(kind.to_owned()), owner, lease);
        Box::pin(async move {
            let taken =
                self.write(Durability::Synced, claim, |connection, claim| Box::pin(take(connection, claim)));
            match taken.await? {
                Some(lease) => self.now_held(lease).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()> {
        let data = (self.engine(), lease.clone(), milliseconds(time));
        Box::pin(async move {
            let renewed = self.write_one(Durability::Relaxed, data, |connection, (engine, lease, time)| {
                Box::pin(async move {
                    let sql = format!(
                        "UPDATE runs SET lease_until = {} + $4 WHERE id = $1 AND owner = $2 AND fence = $3",
                        engine.now()
                    );
                    let query = with_lease(sqlx::query(statement(sql)), lease).bind(*time);
                    Ok(query.execute(connection).await?.rows_affected() == 1)
                })
            });
            held(renewed.await?, lease)
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        let data = (lease.clone(), word(&state));
        Box::pin(async move {
            let released = self.write_one(Durability::Synced, data, |connection, (lease, state)| {
                Box::pin(async move {
                    let sql = "UPDATE runs SET state = $4, owner = NULL, lease_until = 0
                               WHERE id = $1 AND owner = $2 AND fence = $3";
                    let query = with_lease(sqlx::query(sql), lease).bind(state.as_str());
                    Ok(query.execute(connection).await?.rows_affected() == 1)
                })
            });
            let released = released.await?;
            self.leases().over(lease);
            held(released, lease)
        })
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a Intent) -> JournalFuture<'a, Begun> {
        Box::pin(async move {
            // A call that may be repeated is made again when nothing is known of it, so its intent need not stand first.
            if intent.repeatable && self.leases().begin(lease, intent, now()) {
                tokio::spawn(show_later(self.clone(), lease.clone(), intent.step.clone()));
                return Ok(Begun::Call);
            }
            let durability = if intent.repeatable { Durability::Relaxed } else { Durability::Synced };
            let data = Arc::new((self.engine(), lease.clone(), intent.clone()));
            let new = self.write_one(durability, Arc::clone(&data), |connection, data| {
                Box::pin(insert_intent(connection, data.0, &data.1, &data.2))
            });
            if new.await? {
                self.leases().written(lease, &intent.step);
                return Ok(Begun::Call);
            }
            let known = self.write(durability, data, |connection, data| {
                Box::pin(begin_again(connection, data.0, &data.1, &data.2))
            });
            Ok(known.await?)
        })
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a StepOutcome,
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let (shown, redacted) = redact_json(&outcome.outcome);
            let content = compressed(shown.get().as_bytes())?;
            let row = OutcomeRow::new(lease, step, word(&outcome.state), content, redacted, now());
            let row = match self.leases().pending(lease, step) {
                Some(begun) => row.with_intent(begun),
                None => row,
            };
            let written = self.write_outcome(row).await?;
            self.leases().ended(lease, step);
            if !written {
                // Most likely the lease is lost; what was known of the run is of no use then.
                self.leases().over(lease);
            }
            held(written, lease)
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        Box::pin(async move {
            let sql = format!("{} WHERE id = $1", all_runs(self.engine()));
            let query = sqlx::query(statement(sql)).bind(run.as_str());
            let row = query.fetch_optional(self.pool()).await.map_err(StoreError::from)?;
            let row = row.ok_or_else(|| JournalError::UnknownRun(run.clone()))?;
            Ok(run_record(&row)?)
        })
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(async move {
            let sql = format!("{} ORDER BY created_at DESC, id DESC LIMIT $1", all_runs(self.engine()));
            let query = sqlx::query(statement(sql)).bind(limit);
            let rows = query.fetch_all(self.pool()).await.map_err(StoreError::from)?;
            Ok(rows.iter().map(run_record).collect::<Result<_, _>>()?)
        })
    }

    fn runs_since<'a>(&'a self, kind: &'a str, since: i64) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let sql = format!(
                "{} WHERE kind = $1 AND created_at >= $2 ORDER BY created_at DESC, id DESC",
                all_runs(self.engine())
            );
            let query = sqlx::query(statement(sql)).bind(kind).bind(since);
            let rows = query.fetch_all(self.pool()).await.map_err(StoreError::from)?;
            Ok(rows.iter().map(run_record).collect::<Result<_, _>>()?)
        })
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        Box::pin(async move {
            let query =
                sqlx::query("SELECT * FROM steps WHERE run = $1 ORDER BY number, step").bind(run.as_str());
            let rows = query.fetch_all(self.pool()).await.map_err(StoreError::from)?;
            Ok(rows.iter().map(step_record).collect::<Result<_, _>>()?)
        })
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM steps WHERE run = $1 AND step = $2");
            let query = query.bind(run.as_str()).bind(step).fetch_optional(self.pool());
            let row = query.await.map_err(StoreError::from)?;
            Ok(row.as_ref().map(step_record).transpose()?)
        })
    }

    fn unknown(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT steps.* FROM steps JOIN runs ON runs.id = steps.run
                 WHERE steps.state = 'unknown'
                    OR (steps.state = 'started' AND steps.repeatable = 0 AND runs.lease_until < {})
                 ORDER BY steps.started_at, steps.step",
                self.engine().now()
            );
            let rows = sqlx::query(statement(sql)).fetch_all(self.pool()).await.map_err(StoreError::from)?;
            Ok(rows.iter().map(step_record).collect::<Result<_, _>>()?)
        })
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let note = serde_json::json!({"resolved": {"resolution": resolution, "by": by}});
            tracing::info!(%run, step, ?resolution, by, "a person said what happened");
            let data = Resolve {
                engine: self.engine(),
                run: run.clone(),
                step: step.to_owned(),
                state: word(&match resolution {
                    Resolution::Done => StepState::Done,
                    Resolution::NotDone => StepState::NotDone,
                }),
                outcome: compressed(redact_json(&RawJson::from(note)).0.get().as_bytes())?,
            };
            let resolved =
                self.write(Durability::Synced, data, |connection, data| Box::pin(resolve(connection, data)));
            if resolved.await? {
                return Ok(());
            }
            Err(JournalError::NotWaiting { run: run.clone(), step: step.to_owned() })
        })
    }
}

impl Store {
    /// Looks once at what a run that was just taken has, so that new steps are known as such.
    async fn now_held(&self, lease: Lease) -> Result<Lease, JournalError> {
        let query = sqlx::query("SELECT step FROM steps WHERE run = $1").bind(lease.run.as_str());
        let rows = query.fetch_all(self.pool()).await.map_err(StoreError::from)?;
        let steps =
            rows.iter().map(|row| row.try_get("step")).collect::<Result<_, _>>().map_err(StoreError::from)?;
        self.leases().taken(&lease, steps);
        Ok(lease)
    }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

/// The first three parameters of every write that a lease covers.
fn with_lease<'q>(query: Query<'q>, lease: &'q Lease) -> Query<'q> {
    query.bind(lease.run.as_str()).bind(lease.owner.as_str()).bind(lease.fence)
}

fn held(done: bool, lease: &Lease) -> Result<(), JournalError> {
    if done { Ok(()) } else { Err(JournalError::LeaseLost(lease.run.clone())) }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

enum Wanted {
    Run(RunId),
    Next(String),
}

struct Claim {
    engine: Engine,
    wanted: Wanted,
    owner: String,
    time: i64,
}

impl Claim {
    fn new(engine: Engine, wanted: Wanted, owner: &str, lease: Duration) -> Self {
        Self { engine, wanted, owner: owner.to_owned(), time: milliseconds(lease) }
    }
}

/// Takes the lease of one run that is free, with a larger fencing number than anyone had before.
async fn take(connection: &mut AnyConnection, claim: &Claim) -> Result<Option<Lease>, StoreError> {
    let now = claim.engine.now();
    let free = format!("(owner IS NULL OR lease_until < {now})");
    let chosen = match (&claim.wanted, claim.engine) {
        (Wanted::Run(_), _) => format!("SELECT id FROM runs WHERE id = $3 AND {free}"),
        (Wanted::Next(_), Engine::Sqlite) => {
            format!(
                "SELECT id FROM runs WHERE kind = $3 AND state = 'open' AND {free} ORDER BY created_at LIMIT 1"
            )
        }
        // Replicas that look at the same moment pass over what another one is taking.
        (Wanted::Next(_), Engine::Postgres) => format!(
            "SELECT id FROM runs WHERE kind = $3 AND state = 'open' AND {free}
             ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED"
        ),
    };
    let sql = format!(
        "UPDATE runs SET owner = $1, fence = fence + 1, lease_until = {now} + $2
         WHERE id IN ({chosen}) AND {free} RETURNING id, fence"
    );
    let wanted = match &claim.wanted {
        Wanted::Run(run) => run.as_str(),
        Wanted::Next(kind) => kind.as_str(),
    };
    let query = sqlx::query(statement(sql)).bind(claim.owner.as_str()).bind(claim.time).bind(wanted);
    let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
    let run = RunId::from(row.try_get::<String, _>("id")?);
    Ok(Some(Lease { run, owner: claim.owner.clone(), fence: row.try_get("fence")? }))
}

/// Decides about a step that was begun before by what is known of it.
async fn begin_again(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
    intent: &Intent,
) -> Result<Begun, StoreError> {
    check_lease(connection, engine, lease).await?;
    let query = sqlx::query("SELECT * FROM steps WHERE run = $1 AND step = $2");
    let row = query.bind(lease.run.as_str()).bind(intent.step.as_str()).fetch_one(&mut *connection).await?;
    let known = step_record(&row)?;
    match recovery(Some(&known), intent) {
        Recovery::Start | Recovery::Repeat => {
            let sql = "UPDATE steps SET state = 'started', fence = $3, started_at = $4, ended_at = NULL, outcome = NULL,
                       repeatable = $5, definition = $6, arguments = $7, shown_arguments = $8
                       WHERE run = $1 AND step = $2";
            let query =
                sqlx::query(sql).bind(lease.run.as_str()).bind(intent.step.as_str()).bind(lease.fence);
            let query =
                query.bind(now()).bind(i64::from(intent.repeatable)).bind(intent.definition.to_string());
            let query = query.bind(intent.arguments.to_string()).bind(intent.shown_arguments.as_str());
            query.execute(connection).await?;
            Ok(Begun::Call)
        }
        Recovery::Reuse => Ok(Begun::Reuse(Box::new(known))),
        Recovery::Ask => {
            let sql = "UPDATE steps SET state = 'unknown', fence = $3 WHERE run = $1 AND step = $2";
            let query =
                sqlx::query(sql).bind(lease.run.as_str()).bind(intent.step.as_str()).bind(lease.fence);
            query.execute(connection).await?;
            Ok(Begun::Unknown(Box::new(StepRecord { state: StepState::Unknown, ..known })))
        }
    }
}

/// The common case in one statement: the lease is held and the step is new.
async fn insert_intent(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
    intent: &Intent,
) -> Result<bool, StoreError> {
    // PostgreSQL must lock the lease, or somebody could take it between our look and our commit.
    let lock = match engine {
        Engine::Sqlite => "",
        Engine::Postgres => "FOR SHARE",
    };
    let sql = format!(
        "INSERT INTO steps (run, step, number, tool, source, definition, arguments, shown_arguments, repeatable,
                            state, redacted, fence, started_at)
         SELECT id, $4, $5, $6, $7, $8, $9, $10, $11, 'started', 0, fence, $12 FROM runs
         WHERE id = $1 AND owner = $2 AND fence = $3 {lock}
         ON CONFLICT (run, step) DO NOTHING"
    );
    let at = now();
    let query = with_lease(sqlx::query(statement(sql)), lease).bind(intent.step.as_str()).bind(at);
    let query = query
        .bind(intent.tool.as_str())
        .bind(intent.source.as_ref().map(|source| source.as_str().to_owned()));
    let query = query.bind(intent.definition.to_string()).bind(intent.arguments.to_string());
    let query = query.bind(intent.shown_arguments.as_str()).bind(i64::from(intent.repeatable)).bind(at);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// Refuses whoever does not hold the lease, and keeps it from being taken until the commit.
pub(crate) async fn check_lease(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
) -> Result<(), StoreError> {
    let lock = match engine {
        Engine::Sqlite => "",
        Engine::Postgres => "FOR SHARE",
    };
    let sql = format!("SELECT owner, fence FROM runs WHERE id = $1 {lock}");
    let row = sqlx::query(statement(sql)).bind(lease.run.as_str()).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| JournalError::UnknownRun(lease.run.clone()))?;
    let (owner, fence): (Option<String>, i64) = (row.try_get("owner")?, row.try_get("fence")?);
    if owner.as_deref() == Some(lease.owner.as_str()) && fence == lease.fence {
        Ok(())
    } else {
        Err(JournalError::LeaseLost(lease.run.clone()).into())
    }
}

/// A call that takes longer than a moment can be seen while it is under way.
async fn show_later(store: Store, lease: Lease, step: String) {
    tokio::time::sleep(MOMENT).await;
    if let Some(begun) = store.leases().pending(&lease, &step) {
        let data = (store.engine(), lease, begun.intent);
        let shown = store.write_one(Durability::Relaxed, data, |connection, (engine, lease, intent)| {
            Box::pin(insert_intent(connection, *engine, lease, intent))
        });
        if let Err(error) = shown.await {
            tracing::warn!(%error, "a step under way cannot be seen");
        }
    }
}

struct Resolve {
    engine: Engine,
    run: RunId,
    step: String,
    state: String,
    outcome: Vec<u8>,
}

/// A person's word counts for steps that are unknown, and for those whose owner is gone.
async fn resolve(connection: &mut AnyConnection, data: &Resolve) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE steps SET state = $3, outcome = $4, ended_at = $5 WHERE run = $1 AND step = $2
         AND (state = 'unknown' OR (state = 'started' AND repeatable = 0
              AND EXISTS (SELECT 1 FROM runs WHERE id = $1 AND lease_until < {})))",
        data.engine.now()
    );
    let query = sqlx::query(statement(sql)).bind(data.run.as_str()).bind(data.step.as_str());
    let query = query.bind(data.state.as_str()).bind(data.outcome.as_slice()).bind(now());
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// Runs, and whether somebody holds them, by the clock that leases go by.
fn all_runs(engine: Engine) -> String {
    format!(
        "SELECT runs.*, CASE WHEN owner IS NULL OR lease_until < {} THEN 0 ELSE 1 END AS held FROM runs",
        engine.now()
    )
}

fn run_record(row: &AnyRow) -> Result<RunRecord, StoreError> {
    Ok(RunRecord {
        id: RunId::from(row.try_get::<String, _>("id")?),
        kind: row.try_get("kind")?,
        state: read_word(&row.try_get::<String, _>("state")?)?,
        detail: json(row.try_get("detail")?)?,
        owner: row.try_get("owner")?,
        held: row.try_get::<i64, _>("held")? != 0,
        fence: row.try_get("fence")?,
        created_at: row.try_get("created_at")?,
    })
}

fn step_record(row: &AnyRow) -> Result<StepRecord, StoreError> {
    let hash = |column: &str| -> Result<_, StoreError> {
        row.try_get::<String, _>(column)?.parse().map_err(StoreError::Corrupt)
    };
    let outcome: Option<Vec<u8>> = row.try_get("outcome")?;
    Ok(StepRecord {
        run: RunId::from(row.try_get::<String, _>("run")?),
        step: row.try_get("step")?,
        tool: row.try_get("tool")?,
        source: row.try_get::<Option<String>, _>("source")?.map(|source| SourceId::from(Arc::from(source))),
        definition: hash("definition")?,
        arguments: hash("arguments")?,
        shown_arguments: row.try_get("shown_arguments")?,
        repeatable: row.try_get::<i64, _>("repeatable")? != 0,
        state: read_word(&row.try_get::<String, _>("state")?)?,
        outcome: outcome.map(|outcome| json(uncompressed(&outcome)?)).transpose()?,
        redacted: row.try_get::<i64, _>("redacted")? != 0,
        fence: row.try_get("fence")?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
    })
}

fn json(text: String) -> Result<RawJson, StoreError> {
    RawJson::parse(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}
