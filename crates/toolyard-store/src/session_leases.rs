//! Leases of sessions with stateful servers, and the callers that have used them.

use std::time::Duration;

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{BoxFuture, LeaseCount, SessionLease, SessionLeases, StorageError};

use crate::{
    error::StoreError,
    sql::{Durability, Engine, statement},
    store::Store,
};

/// How long `vacuum` keeps a lease that has ended, with its fencing number and its users.
pub(crate) const ENDED_LEASE_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// More groups than any cluster has; they are shown to people.
const MAX_COUNTED_LEASES: usize = 10_000;

impl SessionLeases for Store {
    fn take_lease<'a>(
        &'a self,
        name: &'a str,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<SessionLease, StorageError>> {
        Box::pin(async move {
            // Requests for a lease that another process holds neither wait for each other nor write.
            if let Some(held) = find_lease(self, name).await?
                && held.holder != holder
            {
                return Ok(held);
            }
            let take = TakeLease {
                engine: self.engine(),
                name: name.to_owned(),
                holder: holder.to_owned(),
                millis: to_millis(duration),
            };
            // A fencing number must not be given away twice, also after a power loss.
            let taken = self.write_alone(Durability::Synced, take, |connection, take| {
                Box::pin(take_lease(connection, take))
            });
            Ok(taken.await?)
        })
    }

    fn renew_leases<'a>(
        &'a self,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<Vec<SessionLease>, StorageError>> {
        Box::pin(async move {
            let data = (self.engine(), holder.to_owned(), to_millis(duration));
            let renewed =
                self.write_alone(Durability::Relaxed, data, |connection, (engine, holder, millis)| {
                    Box::pin(renew_leases(connection, *engine, holder, *millis))
                });
            Ok(renewed.await?)
        })
    }

    fn release_lease<'a>(&'a self, name: &'a str, fence: i64) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let data = (self.engine(), name.to_owned(), fence);
            let released =
                self.write_alone(Durability::Relaxed, data, |connection, (engine, name, fence)| {
                    Box::pin(release_lease(connection, *engine, name, *fence))
                });
            Ok(released.await?)
        })
    }

    fn lease<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SessionLease>, StorageError>> {
        Box::pin(async move { Ok(find_lease(self, name).await?) })
    }

    fn record_session_user<'a>(
        &'a self,
        name: &'a str,
        fence: i64,
        user: &'a str,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let record =
                SessionUser { engine: self.engine(), name: name.to_owned(), fence, caller: user.to_owned() };
            let recorded = self.write_alone(Durability::Synced, record, |connection, record| {
                Box::pin(record_user(connection, record))
            });
            if recorded.await? {
                return Ok(());
            }
            Err(StoreError::SessionLeaseLost { name: name.to_owned(), fence }.into())
        })
    }

    fn session_users<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<(String, i64)>, StorageError>> {
        Box::pin(async move {
            let sql = "SELECT caller, fence FROM session_users WHERE name = $1 ORDER BY caller";
            let read_user = |row: &AnyRow| Ok((row.try_get("caller")?, row.try_get("fence")?));
            Ok(self.select(sqlx::query(sql).bind(name), read_user).await?)
        })
    }

    fn count_leases<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<LeaseCount>, StorageError>> {
        Box::pin(async move {
            let (now, length) = (self.engine().now(), prefix.chars().count());
            let position = match self.engine() {
                Engine::Sqlite => "instr",
                Engine::Postgres => "strpos",
            };
            let rest = format!("substr(name, {})", length + 1);
            let subject = format!("substr({rest}, 1, {position}({rest} || '/', '/') - 1)");
            let sql = format!(
                "SELECT {subject} AS subject, holder, COUNT(*) AS leases FROM session_leases
                 WHERE holder IS NOT NULL AND lease_until >= {now} AND substr(name, 1, {length}) = $1
                 GROUP BY 1, 2 ORDER BY 1, 2 LIMIT {MAX_COUNTED_LEASES}"
            );
            Ok(self.select(sqlx::query(statement(sql)).bind(prefix), read_count).await?)
        })
    }

    fn purge_leases(&self, older_than: Duration) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(async move { Ok(self.purge_session_leases(older_than).await?) })
    }
}

impl Store {
    /// Removes leases that ended this long ago, with their users; returns the number of leases.
    pub(crate) async fn purge_session_leases(&self, older_than: Duration) -> Result<u64, StoreError> {
        let data = (self.engine(), to_millis(older_than));
        let purged = self.write_alone(Durability::Relaxed, data, |connection, (engine, millis)| {
            Box::pin(purge_leases(connection, *engine, *millis))
        });
        purged.await
    }
}

async fn find_lease(store: &Store, name: &str) -> Result<Option<SessionLease>, StoreError> {
    let now = store.engine().now();
    let sql = format!(
        "SELECT name, holder, fence, lease_until - {now} AS remaining FROM session_leases
         WHERE name = $1 AND holder IS NOT NULL AND lease_until >= {now}"
    );
    store.select_optional(sqlx::query(statement(sql)).bind(name), read_lease).await
}

struct TakeLease {
    engine: Engine,
    name: String,
    holder: String,
    millis: i64,
}

async fn take_lease(connection: &mut AnyConnection, take: &TakeLease) -> Result<SessionLease, StoreError> {
    let now = take.engine.now();
    // PostgreSQL's clock goes on during a statement: all expressions must agree whether the lease is free, so that they use the
    // time at which the new row was computed. That is before a wait for the row: a lease that expires meanwhile counts as held.
    let is_free = "(stored.holder IS NULL OR stored.lease_until < excluded.lease_until - $3)";
    // A renewal never shortens a lease: requests of one holder can overtake each other.
    let is_renewal = "(stored.holder = excluded.holder AND stored.lease_until < excluded.lease_until)";
    let sql = format!(
        "INSERT INTO session_leases AS stored (name, holder, fence, lease_until)
         VALUES ($1, $2, 1, {now} + $3)
         ON CONFLICT (name) DO UPDATE SET
             holder = CASE WHEN {is_free} THEN excluded.holder ELSE stored.holder END,
             fence = CASE WHEN {is_free} THEN stored.fence + 1 ELSE stored.fence END,
             lease_until = CASE WHEN {is_free} OR {is_renewal} THEN excluded.lease_until
                                ELSE stored.lease_until END
         RETURNING name, holder, fence, lease_until - {now} AS remaining"
    );
    let query = sqlx::query(statement(sql));
    let query = query.bind(take.name.as_str()).bind(take.holder.as_str()).bind(take.millis);
    read_lease(&query.fetch_one(connection).await?)
}

async fn renew_leases(
    connection: &mut AnyConnection,
    engine: Engine,
    holder: &str,
    millis: i64,
) -> Result<Vec<SessionLease>, StoreError> {
    let now = engine.now();
    let is_held = format!("holder = $1 AND lease_until >= {now}");
    // A transaction whose process lost its connection can lock a row for seconds. The other leases must not end meanwhile.
    let lock = engine.postgres_only("FOR UPDATE SKIP LOCKED");
    let update = format!(
        "UPDATE session_leases
         SET lease_until = CASE WHEN lease_until < {now} + $2 THEN {now} + $2 ELSE lease_until END
         WHERE name IN (SELECT name FROM session_leases WHERE {is_held} {lock}) AND {is_held}"
    );
    sqlx::query(statement(update)).bind(holder).bind(millis).execute(&mut *connection).await?;
    let held = format!(
        "SELECT name, holder, fence, lease_until - {now} AS remaining FROM session_leases
         WHERE {is_held} ORDER BY name"
    );
    let rows = sqlx::query(statement(held)).bind(holder).fetch_all(connection).await?;
    rows.iter().map(read_lease).collect()
}

async fn release_lease(
    connection: &mut AnyConnection,
    engine: Engine,
    name: &str,
    fence: i64,
) -> Result<(), StoreError> {
    let now = engine.now();
    let sql = format!(
        "UPDATE session_leases
         SET holder = NULL, lease_until = CASE WHEN lease_until < {now} THEN lease_until ELSE {now} END
         WHERE name = $1 AND fence = $2 AND holder IS NOT NULL"
    );
    sqlx::query(statement(sql)).bind(name).bind(fence).execute(connection).await?;
    Ok(())
}

struct SessionUser {
    engine: Engine,
    name: String,
    fence: i64,
    caller: String,
}

/// Returns whether the lease was held. It cannot be taken over until the commit, so that the next holder sees the user.
async fn record_user(connection: &mut AnyConnection, record: &SessionUser) -> Result<bool, StoreError> {
    let (now, lock) = (record.engine.now(), record.engine.postgres_only("FOR SHARE"));
    let sql = format!(
        "INSERT INTO session_users AS stored (name, caller, fence)
         SELECT name, $3, fence FROM session_leases
         WHERE name = $1 AND fence = $2 AND holder IS NOT NULL AND lease_until >= {now} {lock}
         ON CONFLICT (name, caller) DO UPDATE
         SET fence = CASE WHEN stored.fence < excluded.fence THEN excluded.fence ELSE stored.fence END"
    );
    let query = sqlx::query(statement(sql));
    let query = query.bind(record.name.as_str()).bind(record.fence).bind(record.caller.as_str());
    Ok(query.execute(connection).await?.rows_affected() > 0)
}

async fn purge_leases(
    connection: &mut AnyConnection,
    engine: Engine,
    millis: i64,
) -> Result<u64, StoreError> {
    let has_ended = format!("lease_until < {} - $1", engine.now());
    // A row that is locked is being taken, or removed by another process.
    let lock = engine.postgres_only("FOR UPDATE SKIP LOCKED");
    let sql = format!(
        "DELETE FROM session_leases
         WHERE name IN (SELECT name FROM session_leases WHERE {has_ended} {lock}) AND {has_ended}"
    );
    Ok(sqlx::query(statement(sql)).bind(millis).execute(connection).await?.rows_affected())
}

fn read_lease(row: &AnyRow) -> Result<SessionLease, StoreError> {
    let remaining: i64 = row.try_get("remaining")?;
    Ok(SessionLease {
        name: row.try_get("name")?,
        holder: row.try_get("holder")?,
        fence: row.try_get("fence")?,
        remaining: Duration::from_millis(u64::try_from(remaining).unwrap_or_default()),
    })
}

fn read_count(row: &AnyRow) -> Result<LeaseCount, StoreError> {
    let leases: i64 = row.try_get("leases")?;
    Ok(LeaseCount {
        subject: row.try_get("subject")?,
        holder: row.try_get("holder")?,
        leases: u64::try_from(leases).unwrap_or_default(),
    })
}

/// Milliseconds that can be added to a time without overflow.
fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}
