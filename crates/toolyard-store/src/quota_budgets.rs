//! Budgets and permits of quotas. Each request locks one row for a moment, so that the sum of all grants never exceeds a limit.

use std::time::Duration;

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{
    BoxFuture, BudgetChange, BudgetState, PermitHold, QuotaBudgets, StorageError, StoredBudget,
    StoredPermits, WindowLimit, WindowUse,
};

use crate::{
    error::StoreError,
    sql::{Durability, Engine, statement},
    store::Store,
};

/// The holder in the row that serializes the requests for permits of a key.
const LOCK_HOLDER: &str = "";

/// How long a change is remembered, in milliseconds: a process that could not reach the store for longer may repeat a change that
/// was made.
const CHANGE_RETENTION_MILLIS: u64 = 3_600_000;

impl QuotaBudgets for Store {
    fn change_budget<'a>(
        &'a self,
        change: &'a BudgetChange,
    ) -> BoxFuture<'a, Result<BudgetState, StorageError>> {
        Box::pin(async move {
            if change.only_reads() {
                return Ok(read_budget(self, change).await?);
            }
            let data = (change.clone(), self.engine());
            let changed = self.write_alone(Durability::Relaxed, data, |connection, (change, engine)| {
                Box::pin(change_budget(connection, change, *engine))
            });
            Ok(changed.await?)
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

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<StoredBudget>, StorageError>> {
        Box::pin(async move {
            let now = self.engine().now();
            let sql = format!("SELECT *, {now} AS now FROM quota_budgets ORDER BY quota, meter, subject");
            let budgets = self.select(sqlx::query(statement(sql)), read_stored_budget).await?;
            Ok(budgets.into_iter().filter(|budget| budget.used > 0).collect())
        })
    }

    fn held_permits(&self) -> BoxFuture<'_, Result<Vec<StoredPermits>, StorageError>> {
        Box::pin(async move {
            let now = self.engine().now();
            let sql = format!(
                "SELECT MAX(quota) AS quota, MAX(subject) AS subject, MAX(permit_limit) AS permit_limit,
                        CAST(SUM(held) AS BIGINT) AS held
                 FROM quota_permits WHERE holder <> $1 AND expires_at >= {now}
                 GROUP BY key ORDER BY 1, 2"
            );
            Ok(self.select(sqlx::query(statement(sql)).bind(LOCK_HOLDER), read_stored_permits).await?)
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
    let now = engine.now();
    // In the order in which a change locks them. A slot more than the window counts.
    let budgets = format!("DELETE FROM quota_budgets WHERE updated_at + 2 * window_millis < {now}");
    sqlx::query(statement(budgets)).execute(&mut *connection).await?;
    let changes = format!("DELETE FROM quota_changes WHERE changed_at + $1 < {now}");
    let changes = sqlx::query(statement(changes)).bind(to_column(CHANGE_RETENTION_MILLIS));
    changes.execute(&mut *connection).await?;
    let permits = format!("DELETE FROM quota_permits WHERE expires_at < {now} AND holder <> $1");
    sqlx::query(statement(permits)).bind(LOCK_HOLDER).execute(connection).await?;
    Ok(())
}

async fn read_budget(store: &Store, change: &BudgetChange) -> Result<BudgetState, StoreError> {
    let now = store.engine().now();
    // The outer join has a row for a budget that does not exist yet.
    let sql = format!(
        "SELECT clock.now, budget.slots FROM (SELECT {now} AS now) AS clock
         LEFT JOIN quota_budgets AS budget ON budget.key = $1"
    );
    let query = sqlx::query(statement(sql)).bind(change.budget.key.to_string());
    let row = query.fetch_one(store.pool()).await?;
    let slots: Option<String> = row.try_get("slots")?;
    let mut used = slots.as_deref().map_or_else(|| Ok(WindowUse::default()), parse_slots)?;
    Ok(budget_state(&mut used, change.limit, read_now(&row)?, 0))
}

async fn change_budget(
    connection: &mut AnyConnection,
    change: &BudgetChange,
    engine: Engine,
) -> Result<BudgetState, StoreError> {
    let (now, budget, limit) = (engine.now(), &change.budget, change.limit);
    // Creates the row or changes nothing of it, but locks it in any case.
    let sql = format!(
        "INSERT INTO quota_budgets (key, quota, meter, subject, window_limit, window_millis, slots, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, '[]', {now})
         ON CONFLICT (key) DO UPDATE SET subject = excluded.subject, window_limit = excluded.window_limit
         RETURNING slots, {now} AS now"
    );
    let key = budget.key.to_string();
    let row = sqlx::query(statement(sql))
        .bind(key.as_str())
        .bind(&*budget.quota)
        .bind(budget.meter)
        .bind(budget.subject.as_str())
        .bind(to_column(limit.limit))
        .bind(to_column(limit.window_millis))
        .fetch_one(&mut *connection)
        .await?;
    let (slots, now): (String, u64) = (row.try_get("slots")?, read_now(&row)?);
    let mut used = parse_slots(&slots)?;
    if let Some((slot, granted)) = find_made_change(connection, change).await? {
        return Ok(BudgetState {
            granted,
            slot,
            slot_ends_in: Duration::from_millis(limit.slot_ends_in_millis(slot, now)),
            ..budget_state(&mut used, limit, now, 0)
        });
    }
    for (slot, amount) in &change.given_back {
        used.give_back(*slot, *amount);
    }
    used.charge(limit, now, change.charged);
    let granted = used.take(limit, now, change.wanted);
    let state = budget_state(&mut used, limit, now, granted);
    let slots = serde_json::to_string(&used).map_err(StoreError::corrupt)?;
    sqlx::query("UPDATE quota_budgets SET slots = $2, updated_at = $3 WHERE key = $1")
        .bind(key.as_str())
        .bind(slots)
        .bind(to_column(now))
        .execute(&mut *connection)
        .await?;
    remember_change(connection, change, &state, now).await?;
    Ok(state)
}

/// The slot and the grant of this change if it was made before; no grant if a later one was made. The row of the budget is locked,
/// so that a change of the same number that is being made has ended.
async fn find_made_change(
    connection: &mut AnyConnection,
    change: &BudgetChange,
) -> Result<Option<(u64, u64)>, StoreError> {
    let sql = "SELECT number, slot, granted FROM quota_changes WHERE key = $1 AND holder = $2";
    let query = sqlx::query(sql).bind(change.budget.key.to_string()).bind(&*change.holder);
    let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
    let number = from_column(row.try_get("number")?);
    let slot = from_column(row.try_get("slot")?);
    let granted = if number == change.number { from_column(row.try_get("granted")?) } else { 0 };
    Ok((number >= change.number).then_some((slot, granted)))
}

async fn remember_change(
    connection: &mut AnyConnection,
    change: &BudgetChange,
    state: &BudgetState,
    now: u64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO quota_changes (key, holder, number, slot, granted, changed_at)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (key, holder) DO UPDATE SET number = excluded.number, slot = excluded.slot,
               granted = excluded.granted, changed_at = excluded.changed_at";
    sqlx::query(sql)
        .bind(change.budget.key.to_string())
        .bind(&*change.holder)
        .bind(to_column(change.number))
        .bind(to_column(state.slot))
        .bind(to_column(state.granted))
        .bind(to_column(now))
        .execute(&mut *connection)
        .await?;
    // Each process is a holder, and short commands end before the next purge.
    let old = now.saturating_sub(CHANGE_RETENTION_MILLIS);
    let forget = sqlx::query("DELETE FROM quota_changes WHERE key = $1 AND changed_at < $2");
    forget.bind(change.budget.key.to_string()).bind(to_column(old)).execute(connection).await?;
    Ok(())
}

fn budget_state(used: &mut WindowUse, limit: WindowLimit, now: u64, granted: u64) -> BudgetState {
    BudgetState {
        granted,
        slot: used.current_slot(limit, now),
        slot_ends_in: Duration::from_millis(used.slot_ends_in_millis(limit, now)),
        used: used.used(limit, now),
        wait: Duration::from_millis(used.wait_millis(limit, now)),
    }
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

fn read_stored_permits(row: &AnyRow) -> Result<StoredPermits, StoreError> {
    Ok(StoredPermits {
        quota: row.try_get("quota")?,
        subject: row.try_get("subject")?,
        limit: from_column(row.try_get("permit_limit")?),
        held: from_column(row.try_get("held")?),
    })
}

fn read_stored_budget(row: &AnyRow) -> Result<StoredBudget, StoreError> {
    let limit = WindowLimit {
        limit: from_column(row.try_get("window_limit")?),
        window_millis: from_column(row.try_get("window_millis")?),
    };
    let (slots, now): (String, u64) = (row.try_get("slots")?, read_now(row)?);
    let mut used = parse_slots(&slots)?;
    Ok(StoredBudget {
        quota: row.try_get("quota")?,
        meter: row.try_get("meter")?,
        subject: row.try_get("subject")?,
        limit,
        used: used.used(limit, now),
        resets_in: Duration::from_millis(used.resets_in_millis(limit, now)),
    })
}

fn parse_slots(slots: &str) -> Result<WindowUse, StoreError> {
    serde_json::from_str(slots).map_err(StoreError::corrupt)
}

fn read_now(row: &AnyRow) -> Result<u64, StoreError> {
    Ok(from_column(row.try_get("now")?))
}

fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
