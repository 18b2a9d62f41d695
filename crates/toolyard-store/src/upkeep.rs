//! Looking after the store: is it sound, make it small, keep a copy.

use std::path::Path;

use serde::Serialize;
use sqlx::{Executor as _, Row as _};

use crate::{
    audit::Verdict,
    engine::{Engine, statement},
    error::StoreError,
    results::Keeping,
    store::Store,
    tables::TABLES,
};

/// What a look at the store found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// What the engine itself says about its files; empty when all is well.
    pub engine_problems: Vec<String>,
    /// Whether the audit log is as it was written.
    pub audit: Verdict,
    /// How many rows each table has.
    pub rows: Vec<(&'static str, i64)>,
}

impl Health {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.engine_problems.is_empty() && matches!(self.audit, Verdict::Whole { .. })
    }
}

impl Store {
    /// Looks at everything.
    pub async fn check(&self) -> Result<Health, StoreError> {
        let mut rows = Vec::new();
        for table in TABLES {
            let sql = statement(format!("SELECT COUNT(*) AS count FROM {}", table.name));
            let row = sqlx::query(sql).fetch_one(self.pool()).await?;
            rows.push((table.name, row.try_get("count")?));
        }
        Ok(Health {
            engine_problems: self.engine_problems().await?,
            audit: self.verify_audit(None).await?,
            rows,
        })
    }

    async fn engine_problems(&self) -> Result<Vec<String>, StoreError> {
        if self.engine() == Engine::Postgres {
            // PostgreSQL looks after its own files; reading every row, as counting does, is what can be done from here.
            return Ok(Vec::new());
        }
        let rows = sqlx::query("PRAGMA integrity_check").fetch_all(self.pool()).await?;
        let said: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        Ok(said.into_iter().filter(|line| line != "ok").collect())
    }

    /// Drops what is no longer to be kept and gives the room back; how many results were dropped.
    pub async fn vacuum(&self, keeping: Keeping) -> Result<u64, StoreError> {
        let dropped = self.expire_results(keeping).await?;
        let sql = match self.engine() {
            Engine::Sqlite => "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
            Engine::Postgres => "VACUUM",
        };
        self.pool().execute(sqlx::raw_sql(sql)).await?;
        Ok(dropped)
    }

    /// A copy of a SQLite store as it is at this moment, while others go on writing.
    pub async fn backup(&self, target: &Path) -> Result<(), StoreError> {
        if self.engine() == Engine::Postgres {
            return Err(StoreError::Database(
                "PostgreSQL is backed up with pg_dump, or with `store export`".to_owned(),
            ));
        }
        let target = target
            .to_str()
            .ok_or_else(|| StoreError::Database("the path is not valid Unicode".to_owned()))?;
        sqlx::query("VACUUM INTO $1").bind(target).execute(self.pool()).await?;
        Ok(())
    }
}
