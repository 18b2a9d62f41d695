//! The journal in SQL: step intents and outcomes, written under leases with fencing numbers.
//!
//! - `claim`: taking, renewing and checking leases
//! - `steps`: intents, recovery of interrupted steps, manual resolution
//! - `outcomes`: many step outcomes in one statement
//! - `held_leases`: what this process knows about its own runs, to skip a database round trip
//! - `records`: rows as records

mod claim;
pub(crate) mod held_leases;
pub(crate) mod outcomes;
mod records;
mod steps;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use sqlx::Row as _;
use toolyard_core::{
    ContentHash, FinishedStep, Journal, JournalError, JournalFuture, Lease, RawJson, Resolution, RunId,
    RunRecord, RunState, StepIntent, StepRecord, StepStart, redact_json, unix_millis,
};

pub(crate) use claim::check_lease;

use self::{
    claim::{Claim, ClaimTarget, bind_lease, claim, to_millis},
    outcomes::OutcomeRow,
    records::{run_record, select_runs, step_record},
    steps::{StepResolution, insert_intent, resolve_step, restart_step, write_intent_if_slow},
};
use crate::{
    error::StoreError,
    large_text::{is_large, on_other_thread},
    sql::{Durability, Engine, compress, enum_to_text, statement},
    store::Store,
};

/// An outcome without secrets, compressed, and whether it had secrets.
async fn redact_outcome(outcome: &RawJson) -> Result<(Vec<u8>, bool), StoreError> {
    fn redact(outcome: &RawJson) -> Result<(Vec<u8>, bool), StoreError> {
        let (redacted, has_secrets) = redact_json(outcome);
        Ok((compress(redacted.get().as_bytes())?, has_secrets))
    }
    if !is_large(outcome.get().len()) {
        return redact(outcome);
    }
    let outcome = outcome.clone();
    on_other_thread(move || redact(&outcome)).await
}

/// An id that is greater than the earlier ones of this process, so that runs of the same millisecond keep their order.
fn new_run_id() -> RunId {
    static GENERATOR: Mutex<ulid::Generator> = Mutex::new(ulid::Generator::new());
    let next = GENERATOR.lock().generate();
    // Fails only after 2^80 ids in a millisecond.
    RunId::from(next.unwrap_or_else(|_| ulid::Ulid::new()).to_string())
}

impl Journal for Store {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        Box::pin(async move {
            let id = new_run_id();
            let data = (id.clone(), kind.to_owned(), redact_json(detail).0);
            // A client that got an error because the store did not answer must not find the run later.
            self.write_unless_abandoned(Durability::Synced, data, |connection, (id, kind, detail)| {
                Box::pin(async move {
                    let sql =
                        "INSERT INTO runs (id, kind, state, detail, owner, fence, lease_until, created_at)
                               VALUES ($1, $2, 'open', $3, NULL, 0, 0, $4)";
                    let query = sqlx::query(sql).bind(id.as_str()).bind(kind.as_str()).bind(detail.get());
                    query.bind(unix_millis()).execute(connection).await?;
                    Ok(())
                })
            })
            .await?;
            Ok(id)
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        Box::pin(async move {
            match self.claim_target(ClaimTarget::Run(run.clone()), owner, lease).await? {
                Some(lease) => Ok(lease),
                None => {
                    let owner = self.run(run).await?.owner.unwrap_or_default();
                    Err(JournalError::Leased { run: run.clone(), owner })
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
        Box::pin(async move {
            Ok(self.claim_target(ClaimTarget::NextOfKind(kind.to_owned()), owner, lease).await?)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, duration: Duration) -> JournalFuture<'a, ()> {
        let data = (self.engine(), lease.clone(), to_millis(duration));
        Box::pin(async move {
            let renewed =
                self.write_statement(Durability::Relaxed, data, |connection, (engine, lease, millis)| {
                    Box::pin(async move {
                        let sql = format!(
                            "UPDATE runs SET lease_until = {} + $4 WHERE id = $1 AND owner = $2 AND fence = $3",
                            engine.now()
                        );
                        let query = bind_lease(sqlx::query(statement(sql)), lease).bind(*millis);
                        Ok(query.execute(connection).await?.rows_affected() == 1)
                    })
                });
            require_lease(renewed.await?, lease)
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        let data = (lease.clone(), enum_to_text(&state));
        Box::pin(async move {
            let released = self.write_statement(Durability::Synced, data, |connection, (lease, state)| {
                Box::pin(async move {
                    let sql = "UPDATE runs SET state = $4, owner = NULL, lease_until = 0
                               WHERE id = $1 AND owner = $2 AND fence = $3";
                    let query = bind_lease(sqlx::query(sql), lease).bind(state.as_str());
                    Ok(query.execute(connection).await?.rows_affected() == 1)
                })
            });
            let released = released.await?;
            self.held_leases().remove(lease);
            require_lease(released, lease)
        })
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a StepIntent) -> JournalFuture<'a, StepStart> {
        Box::pin(async move {
            // A repeatable call is made again when it left no trace, so its intent need not be stored before the call.
            if intent.repeatable && self.held_leases().begin_step(lease, intent, unix_millis()) {
                tokio::spawn(write_intent_if_slow(self.clone(), lease.clone(), intent.step.clone()));
                return Ok(StepStart::Call);
            }
            let durability = if intent.repeatable { Durability::Relaxed } else { Durability::Synced };
            let data = Arc::new((self.engine(), lease.clone(), intent.clone()));
            let inserted = self.write_statement(durability, Arc::clone(&data), |connection, data| {
                Box::pin(insert_intent(connection, data.0, &data.1, &data.2))
            });
            if inserted.await? {
                self.held_leases().add_step(lease, &intent.step);
                return Ok(StepStart::Call);
            }
            let restarted = self.write(durability, data, |connection, data| {
                Box::pin(restart_step(connection, data.0, &data.1, &data.2))
            });
            Ok(restarted.await?)
        })
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let (content, redacted) = redact_outcome(&outcome.result).await?;
            let state = enum_to_text(&outcome.state);
            let row = OutcomeRow::new(lease, step, state, content, redacted, unix_millis());
            let row = match self.held_leases().pending_intent(lease, step) {
                Some(pending) => row.with_intent(pending),
                None => row,
            };
            let written = self.write_outcome(row).await?;
            if written {
                self.held_leases().finish_step(lease, step);
            } else {
                // Most likely the lease is lost, and with it everything known about the run.
                self.held_leases().remove(lease);
            }
            require_lease(written, lease)
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        Box::pin(async move {
            let sql = format!("{} WHERE id = $1", select_runs(self.engine()));
            let record = self.select_optional(sqlx::query(statement(sql)).bind(run.as_str()), run_record);
            record.await?.ok_or_else(|| JournalError::UnknownRun(run.clone()))
        })
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(async move {
            let sql = format!("{} ORDER BY created_at DESC, id DESC LIMIT $1", select_runs(self.engine()));
            Ok(self.select(sqlx::query(statement(sql)).bind(limit), run_record).await?)
        })
    }

    fn runs_page<'a>(
        &'a self,
        kind: &'a str,
        after: Option<&'a RunId>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(self.page_of_runs(kind, None, after, limit))
    }

    fn runs_page_of_owner<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a ContentHash,
        after: Option<&'a RunId>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(self.page_of_runs(kind, Some(owner), after, limit))
    }

    fn runs_since<'a>(&'a self, kind: &'a str, since: i64) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let sql = format!(
                "{} WHERE kind = $1 AND created_at >= $2 ORDER BY created_at DESC, id DESC",
                select_runs(self.engine())
            );
            Ok(self.select(sqlx::query(statement(sql)).bind(kind).bind(since), run_record).await?)
        })
    }

    fn unleased_runs<'a>(
        &'a self,
        kind: &'a str,
        since: i64,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(async move {
            let sql = format!(
                "{} WHERE kind = $1 AND state = 'open' AND created_at >= $2 AND (owner IS NULL OR lease_until < {})
                 ORDER BY created_at DESC, id DESC LIMIT $3",
                select_runs(self.engine()),
                self.engine().now()
            );
            let query = sqlx::query(statement(sql)).bind(kind).bind(since).bind(limit);
            Ok(self.select(query, run_record).await?)
        })
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM steps WHERE run = $1 ORDER BY number, step");
            Ok(self.select(query.bind(run.as_str()), step_record).await?)
        })
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM steps WHERE run = $1 AND step = $2");
            Ok(self.select_optional(query.bind(run.as_str()).bind(step), step_record).await?)
        })
    }

    fn unknown_steps(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        Box::pin(async move {
            let sql = select_unknown_steps(self.engine(), "");
            Ok(self.select(sqlx::query(statement(sql)), step_record).await?)
        })
    }

    fn unknown_steps_of<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        Box::pin(async move {
            let sql = select_unknown_steps(self.engine(), "steps.run = $1 AND");
            Ok(self.select(sqlx::query(statement(sql)).bind(run.as_str()), step_record).await?)
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
            tracing::info!(%run, step, ?resolution, by, "resolving step manually");
            let data = StepResolution::new(self.engine(), run, step, resolution, by)?;
            let resolved = self
                .write(Durability::Synced, data, |connection, data| Box::pin(resolve_step(connection, data)));
            if resolved.await? {
                return Ok(());
            }
            Err(JournalError::NotResolvable { run: run.clone(), step: step.to_owned() })
        })
    }
}

impl Store {
    /// Claims a run and loads the names of its steps, so that new steps are recognised without a query.
    async fn claim_target(
        &self,
        target: ClaimTarget,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let data =
            Claim { engine: self.engine(), target, owner: owner.to_owned(), lease_millis: to_millis(lease) };
        let claimed =
            self.write(Durability::Synced, data, |connection, data| Box::pin(claim(connection, data)));
        let Some(lease) = claimed.await? else { return Ok(None) };
        let query = sqlx::query("SELECT step FROM steps WHERE run = $1").bind(lease.run.as_str());
        let rows = self.fetch_all(query).await?;
        let steps = rows.iter().map(|row| row.try_get("step")).collect::<Result<_, _>>()?;
        self.held_leases().insert(&lease, steps);
        Ok(Some(lease))
    }

    /// Runs of a kind, newest first, older than `after`; with an owner, those whose detail contains it.
    async fn page_of_runs(
        &self,
        kind: &str,
        owner: Option<&ContentHash>,
        after: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<RunRecord>, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (created_at, id) = match after {
            Some(after) => (self.run(after).await?.created_at, after.to_string()),
            None => (i64::MAX, String::new()),
        };
        let of_owner = if owner.is_some() { "AND detail LIKE $5" } else { "" };
        let sql = format!(
            "{} WHERE kind = $1 AND (created_at < $2 OR (created_at = $2 AND id < $3)) {of_owner}
             ORDER BY created_at DESC, id DESC LIMIT $4",
            select_runs(self.engine())
        );
        let query = sqlx::query(statement(sql)).bind(kind).bind(created_at).bind(id).bind(limit);
        let query = match owner {
            Some(owner) => query.bind(format!("%{owner}%")),
            None => query,
        };
        Ok(self.select(query, run_record).await?)
    }
}

/// Selects the steps whose outcome is unknown. The condition is empty, or ends in `AND`.
fn select_unknown_steps(engine: Engine, condition: &str) -> String {
    format!(
        "SELECT steps.* FROM steps JOIN runs ON runs.id = steps.run
         WHERE {condition} (steps.state = 'unknown'
                OR (steps.state = 'started' AND steps.repeatable = 0
                    AND (runs.lease_until < {} OR runs.fence > steps.fence)))
         ORDER BY steps.started_at, steps.step",
        engine.now()
    )
}

fn require_lease(written: bool, lease: &Lease) -> Result<(), JournalError> {
    if written { Ok(()) } else { Err(JournalError::LeaseLost(lease.run.clone())) }
}
