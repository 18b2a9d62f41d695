//! Counters and permits of quotas. Each request locks one row for a moment, so that the sum never exceeds a limit.

use std::time::Duration;

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{
    BoxFuture, BudgetCharge, BudgetName, BudgetTake, PermitHold, QuotaBudgets, StorageError, WindowLimit,
    WindowUse,
};

use crate::{
    error::StoreError,
    sql::{Durability, Engine, statement},
    store::Store,
};

/// The holder in the row that serializes the requests for permits of a key.
const LOCK_HOLDER: &str = "";

/// How long the total of a holder is remembered, in milliseconds: a process that could not reach the store for longer may repeat a
/// charge that was made.
const CHARGE_RETENTION_MILLIS: u64 = 3_600_000;

/// What is used of a limit of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaUse {
    /// The name of the quota.
    pub quota: String,
    /// What is counted: `calls`, `concurrent_calls`, `tokens` or `money`.
    pub counts: String,
    /// Whose use is counted.
    pub subject: String,
    /// What is used.
    pub used: u64,
    /// The limit at the latest change.
    pub limit: u64,
    /// The window, and how long to wait until nothing is used, if nothing more is; `None` for calls at the same time.
    pub window: Option<(Duration, Duration)>,
}

impl Store {
    /// All limits of quotas of which something is used.
    pub async fn quota_use(&self) -> Result<Vec<QuotaUse>, StoreError> {
        let now = self.engine().now();
        let sql = format!("SELECT *, {now} AS now FROM quota_budgets ORDER BY quota, meter, subject");
        let mut listed = self.select(sqlx::query(statement(sql)), read_budget_use).await?;
        let sql = format!(
            "SELECT MAX(quota) AS quota, MAX(subject) AS subject, MAX(permit_limit) AS permit_limit,
                    CAST(SUM(held) AS BIGINT) AS held
             FROM quota_permits WHERE holder <> $1 AND expires_at >= {now}
             GROUP BY key ORDER BY 1, 2"
        );
        let permits = sqlx::query(statement(sql)).bind(LOCK_HOLDER);
        listed.extend(self.select(permits, read_permit_use).await?);
        listed.retain(|listed| listed.used > 0);
        Ok(listed)
    }
}

impl QuotaBudgets for Store {
    fn take<'a>(&'a self, takes: &'a [BudgetTake]) -> BoxFuture<'a, Result<Vec<Duration>, StorageError>> {
        Box::pin(async move {
            let data = (takes.to_vec(), self.engine());
            let taken = self.write_alone(Durability::Relaxed, data, |connection, (takes, engine)| {
                Box::pin(take(connection, takes, *engine))
            });
            Ok(taken.await?)
        })
    }

    fn charge<'a>(&'a self, charge: &'a BudgetCharge) -> BoxFuture<'a, Result<Duration, StorageError>> {
        Box::pin(async move {
            if charge.total == charge.charged_before {
                return Ok(read_wait(self, charge).await?);
            }
            let data = (charge.clone(), self.engine());
            let charged = self.write_alone(Durability::Relaxed, data, |connection, (charge, engine)| {
                Box::pin(make_charge(connection, charge, *engine))
            });
            Ok(charged.await?)
        })
    }

    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>> {
        Box::pin(async move {
            let data = (hold.clone(), self.engine());
            let held = self.write_alone(Durability::Relaxed, data, |connection, (hold, engine)| {
                Box::pin(hold_permits(connection, hold, *engine))
            });
            Ok(held.await?)
        })
    }

    fn purge_budgets(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let purged = self.write_alone(Durability::Relaxed, self.engine(), |connection, engine| {
                Box::pin(purge_unused(connection, *engine))
            });
            purged.await?;
            // In a transaction of its own: a request for permits locks this row first and the row of its holder then, and the
            // rows of holders were just removed.
            let removed = self.write_alone(Durability::Relaxed, (), |connection, ()| {
                Box::pin(async move {
                    let sql = "DELETE FROM quota_permits WHERE holder = $1
                               AND key NOT IN (SELECT key FROM quota_permits WHERE holder <> $1)";
                    sqlx::query(sql).bind(LOCK_HOLDER).execute(connection).await?;
                    Ok(())
                })
            });
            Ok(removed.await?)
        })
    }
}

async fn purge_unused(connection: &mut AnyConnection, engine: Engine) -> Result<(), StoreError> {
    // Rows that a request has locked are in use. Waiting for them, with others locked, could be a deadlock.
    let (now, unlocked) = (engine.now(), engine.postgres_only(" FOR UPDATE SKIP LOCKED"));
    // In the order in which a charge locks them. A slot more than the window counts.
    let budgets = format!(
        "DELETE FROM quota_budgets WHERE key IN (
             SELECT key FROM quota_budgets WHERE updated_at + 2 * window_millis < {now}{unlocked})"
    );
    sqlx::query(statement(budgets)).execute(&mut *connection).await?;
    let charges = format!(
        "DELETE FROM quota_changes WHERE (key, holder) IN (
             SELECT key, holder FROM quota_changes WHERE changed_at + $1 < {now}{unlocked})"
    );
    let charges = sqlx::query(statement(charges)).bind(to_column(CHARGE_RETENTION_MILLIS));
    charges.execute(&mut *connection).await?;
    let permits = format!("DELETE FROM quota_permits WHERE expires_at < {now} AND holder <> $1");
    sqlx::query(statement(permits)).bind(LOCK_HOLDER).execute(connection).await?;
    Ok(())
}

async fn read_wait(store: &Store, charge: &BudgetCharge) -> Result<Duration, StoreError> {
    let now = store.engine().now();
    let sql = format!("SELECT slots, {now} AS now FROM quota_budgets WHERE key = $1");
    let query = sqlx::query(statement(sql)).bind(charge.budget.key.to_string());
    let budget = store.select_optional(query, read_slots).await?;
    let (mut used, now) = budget.unwrap_or_default();
    Ok(Duration::from_millis(used.wait_millis(charge.limit, now)))
}

async fn take(
    connection: &mut AnyConnection,
    takes: &[BudgetTake],
    engine: Engine,
) -> Result<Vec<Duration>, StoreError> {
    // Requests for the same budgets lock their rows in the same order, so that none waits for another for ever.
    let mut by_key: Vec<(usize, &BudgetTake)> = takes.iter().enumerate().collect();
    by_key.sort_unstable_by_key(|(_, take)| take.budget.key);
    let mut locked = Vec::with_capacity(takes.len());
    for (index, take) in by_key {
        let (mut used, now) = lock_budget(connection, &take.budget, take.limit, engine).await?;
        let wait = used.wait_millis(take.limit, now);
        used.take(take.limit, now, 1);
        locked.push((index, take, used, now, Duration::from_millis(wait)));
    }
    if locked.iter().all(|(.., wait)| wait.is_zero()) {
        for (_, take, used, now, _) in &locked {
            write_slots(connection, &take.budget, used, *now).await?;
        }
    }
    locked.sort_unstable_by_key(|(index, ..)| *index);
    Ok(locked.into_iter().map(|(.., wait)| wait).collect())
}

async fn make_charge(
    connection: &mut AnyConnection,
    charge: &BudgetCharge,
    engine: Engine,
) -> Result<Duration, StoreError> {
    let key = charge.budget.key.to_string();
    let (mut used, now) = lock_budget(connection, &charge.budget, charge.limit, engine).await?;
    let known = sqlx::query("SELECT number FROM quota_changes WHERE key = $1 AND holder = $2")
        .bind(key.as_str())
        .bind(charge.holder.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let known = known.map(|row| row.try_get("number")).transpose()?.map_or(0, from_column);
    let charged_before = known.max(charge.charged_before);
    if charge.total > charged_before {
        used.charge(charge.limit, now, charge.total - charged_before);
        write_slots(connection, &charge.budget, &used, now).await?;
        // `slot` and `granted` are of earlier versions.
        let sql = "INSERT INTO quota_changes (key, holder, number, slot, granted, changed_at)
                   VALUES ($1, $2, $3, 0, 0, $4)
                   ON CONFLICT (key, holder) DO UPDATE SET number = excluded.number,
                   changed_at = excluded.changed_at";
        sqlx::query(sql)
            .bind(key.as_str())
            .bind(charge.holder.as_str())
            .bind(to_column(charge.total))
            .bind(to_column(now))
            .execute(&mut *connection)
            .await?;
        // Each process is a holder, and short commands end before the next purge.
        let old = now.saturating_sub(CHARGE_RETENTION_MILLIS);
        let forget = sqlx::query("DELETE FROM quota_changes WHERE key = $1 AND changed_at < $2");
        forget.bind(key).bind(to_column(old)).execute(connection).await?;
    }
    Ok(Duration::from_millis(used.wait_millis(charge.limit, now)))
}

/// What is used of a budget, and the time; its row is locked, and created if there is none.
async fn lock_budget(
    connection: &mut AnyConnection,
    budget: &BudgetName,
    limit: WindowLimit,
    engine: Engine,
) -> Result<(WindowUse, u64), StoreError> {
    let now = engine.now();
    let sql = format!(
        "INSERT INTO quota_budgets (key, quota, meter, subject, window_limit, window_millis, slots, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, '[]', {now})
         ON CONFLICT (key) DO UPDATE SET subject = excluded.subject, window_limit = excluded.window_limit
         RETURNING slots, {now} AS now"
    );
    let row = sqlx::query(statement(sql))
        .bind(budget.key.to_string())
        .bind(&*budget.quota)
        .bind(budget.meter)
        .bind(budget.subject.as_str())
        .bind(to_column(limit.limit))
        .bind(to_column(limit.window_millis))
        .fetch_one(connection)
        .await?;
    read_slots(&row)
}

async fn write_slots(
    connection: &mut AnyConnection,
    budget: &BudgetName,
    used: &WindowUse,
    now: u64,
) -> Result<(), StoreError> {
    let slots = serde_json::to_string(used).map_err(StoreError::corrupt)?;
    sqlx::query("UPDATE quota_budgets SET slots = $2, updated_at = $3 WHERE key = $1")
        .bind(budget.key.to_string())
        .bind(slots)
        .bind(to_column(now))
        .execute(connection)
        .await?;
    Ok(())
}

async fn hold_permits(
    connection: &mut AnyConnection,
    hold: &PermitHold,
    engine: Engine,
) -> Result<u64, StoreError> {
    let (now, key) = (engine.now(), hold.budget.key.to_string());
    let lock = "INSERT INTO quota_permits (key, holder, held, expires_at) VALUES ($1, $2, 0, 0)
                ON CONFLICT (key, holder) DO UPDATE SET held = 0";
    sqlx::query(lock).bind(key.as_str()).bind(LOCK_HOLDER).execute(&mut *connection).await?;
    let others = format!(
        "SELECT CAST(COALESCE(SUM(held), 0) AS BIGINT) AS held FROM quota_permits
         WHERE key = $1 AND holder <> $2 AND expires_at >= {now}"
    );
    let query = sqlx::query(statement(others)).bind(key.as_str()).bind(&*hold.holder);
    let others = from_column(query.fetch_one(&mut *connection).await?.try_get("held")?);
    let held = hold.wanted.min(hold.limit.saturating_sub(others));
    if held == 0 {
        let sql = "DELETE FROM quota_permits WHERE key = $1 AND holder = $2";
        sqlx::query(sql).bind(key).bind(&*hold.holder).execute(connection).await?;
        return Ok(0);
    }
    let own = format!(
        "INSERT INTO quota_permits (key, holder, held, expires_at, quota, subject, permit_limit)
         VALUES ($1, $2, $3, {now} + $4, $5, $6, $7)
         ON CONFLICT (key, holder) DO UPDATE SET held = excluded.held, expires_at = excluded.expires_at,
         subject = excluded.subject, permit_limit = excluded.permit_limit"
    );
    let lasts = u64::try_from(hold.expires_in.as_millis()).unwrap_or(u64::MAX);
    sqlx::query(statement(own))
        .bind(key)
        .bind(&*hold.holder)
        .bind(to_column(held))
        .bind(to_column(lasts))
        .bind(&*hold.budget.quota)
        .bind(hold.budget.subject.as_str())
        .bind(to_column(hold.limit))
        .execute(connection)
        .await?;
    Ok(held)
}

fn read_permit_use(row: &AnyRow) -> Result<QuotaUse, StoreError> {
    Ok(QuotaUse {
        quota: row.try_get("quota")?,
        counts: "concurrent_calls".to_owned(),
        subject: row.try_get("subject")?,
        used: from_column(row.try_get("held")?),
        limit: from_column(row.try_get("permit_limit")?),
        window: None,
    })
}

fn read_budget_use(row: &AnyRow) -> Result<QuotaUse, StoreError> {
    let limit = WindowLimit {
        limit: from_column(row.try_get("window_limit")?),
        window_millis: from_column(row.try_get("window_millis")?),
    };
    let (mut used, now) = read_slots(row)?;
    Ok(QuotaUse {
        quota: row.try_get("quota")?,
        counts: row.try_get("meter")?,
        subject: row.try_get("subject")?,
        used: used.used(limit, now),
        limit: limit.limit,
        window: Some((limit.window(), Duration::from_millis(used.resets_in_millis(limit, now)))),
    })
}

/// What is used of a budget, and the time.
fn read_slots(row: &AnyRow) -> Result<(WindowUse, u64), StoreError> {
    let slots: String = row.try_get("slots")?;
    let used = serde_json::from_str(&slots).map_err(StoreError::corrupt)?;
    Ok((used, from_column(row.try_get("now")?)))
}

fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
