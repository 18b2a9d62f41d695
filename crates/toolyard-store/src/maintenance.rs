//! Health check, vacuum and backup.

use std::{path::Path, pin::pin, time::Duration};

use serde::Serialize;
use sqlx::{Executor as _, Row as _};
use tokio::time::{Instant, timeout};

use crate::{
    audit::verify::AuditVerification,
    error::{StoreError, no_answer},
    retention::{Removed, Retention},
    session_leases::ENDED_LEASE_RETENTION,
    sql::{Engine, TABLES, connect::create_private_file, statement},
    store::Store,
};

/// The result of checking a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HealthReport {
    /// Problems that the engine reports about its files.
    pub engine_problems: Vec<String>,
    /// Whether the audit log is intact.
    pub audit: AuditVerification,
    /// The number of rows of each table.
    pub rows: Vec<(&'static str, i64)>,
}

impl HealthReport {
    /// Whether no problem was found.
    pub fn is_healthy(&self) -> bool {
        self.engine_problems.is_empty() && matches!(self.audit, AuditVerification::Intact { .. })
    }
}

impl Store {
    /// Fails if the store does not answer within this time. [`Self::is_reachable`] tells the last outcome.
    pub async fn ping(&self, limit: Duration) -> Result<(), StoreError> {
        self.ping_patiently(limit, limit).await.map(|_took| ())
    }

    /// Waits up to `patience` for the answer of the store, and returns how long it took. A store that takes longer than `limit`
    /// is not reachable for [`Self::is_reachable`].
    pub async fn ping_patiently(&self, limit: Duration, patience: Duration) -> Result<Duration, StoreError> {
        let started = Instant::now();
        let mut ping = pin!(sqlx::query("SELECT 1").execute(self.pool()));
        let in_time = timeout(limit, &mut ping).await;
        self.note_reachable(matches!(in_time, Ok(Ok(_))));
        let answer = match in_time {
            Ok(answer) => answer,
            Err(_elapsed) => timeout(patience.saturating_sub(limit), ping)
                .await
                .map_err(|_elapsed| StoreError::Database(no_answer(patience)))?,
        };
        answer?;
        Ok(started.elapsed())
    }

    /// Checks the engine's files, the audit log and all tables.
    pub async fn check(&self) -> Result<HealthReport, StoreError> {
        let mut rows = Vec::new();
        for table in TABLES {
            let sql = statement(format!("SELECT COUNT(*) AS count FROM {}", table.name));
            let row = sqlx::query(sql).fetch_one(self.pool()).await?;
            rows.push((table.name, row.try_get("count")?));
        }
        Ok(HealthReport {
            engine_problems: self.engine_problems().await?,
            audit: self.verify_audit(None).await?,
            rows,
        })
    }

    async fn engine_problems(&self) -> Result<Vec<String>, StoreError> {
        if self.engine() == Engine::Postgres {
            // PostgreSQL checks its own files; counting the rows has read every page already.
            return Ok(Vec::new());
        }
        let rows = sqlx::query("PRAGMA integrity_check").fetch_all(self.pool()).await?;
        let messages: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        Ok(messages.into_iter().filter(|message| message != "ok").collect())
    }

    /// Removes what is too old, and leases that ended long ago, and returns free space to the file system. `by` says who does it, for
    /// the audit log.
    pub async fn vacuum(&self, retention: &Retention, by: &str) -> Result<Removed, StoreError> {
        let removed = self.apply_retention(retention, by).await?;
        self.purge_session_leases(ENDED_LEASE_RETENTION).await?;
        let sql = match self.engine() {
            Engine::Sqlite => "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
            Engine::Postgres => "VACUUM",
        };
        self.pool().execute(sqlx::raw_sql(sql)).await?;
        Ok(removed)
    }

    /// Copies a SQLite store to a new file while others continue to write.
    pub async fn backup(&self, target: &Path) -> Result<(), StoreError> {
        if self.engine() == Engine::Postgres {
            return Err(StoreError::Database(
                "a PostgreSQL store is backed up with pg_dump or `toolyard store export`".to_owned(),
            ));
        }
        let target = target
            .to_str()
            .ok_or_else(|| StoreError::Database("the backup path is not valid Unicode".to_owned()))?;
        // SQLite writes into an existing file if it is empty, and keeps its permissions.
        create_private_file(target.as_ref())
            .map_err(|error| StoreError::Database(format!("failed to create {target}: {error}")))?;
        sqlx::query("VACUUM INTO $1").bind(target).execute(self.pool()).await?;
        Ok(())
    }
}
