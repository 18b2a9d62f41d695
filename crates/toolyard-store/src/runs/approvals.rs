//! Approval requests of runs, and the decisions on them.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{
    ApprovalKind, ApprovalOutcome, ApprovalRecord, Approvals, BoxFuture, RunId, StorageError, redact,
    unix_millis,
};

use crate::{
    error::StoreError,
    sql::{Durability, enum_from_text, enum_to_text, read_enum, read_id},
    store::Store,
};

impl Approvals for Store {
    fn request_approval<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: ApprovalKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, StorageError>> {
        let data = (run.clone(), step.map(str::to_owned), enum_to_text(&kind), redact(text).into_owned());
        Box::pin(async move {
            let inserted = self.write(Durability::Synced, data, |connection, (run, step, kind, text)| {
                Box::pin(async move {
                    let sql = "INSERT INTO approvals (run, step, kind, text, requested_at)
                               VALUES ($1, $2, $3, $4, $5) RETURNING id";
                    let query = sqlx::query(sql).bind(run.as_str()).bind(step.clone()).bind(kind.as_str());
                    let row = query.bind(text.as_str()).bind(unix_millis()).fetch_one(connection).await?;
                    Ok(row.try_get("id")?)
                })
            });
            Ok(inserted.await?)
        })
    }

    fn decide<'a>(
        &'a self,
        id: i64,
        outcome: ApprovalOutcome,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let data = (id, enum_to_text(&outcome), by.to_owned());
        Box::pin(async move {
            let decided = self.write(Durability::Synced, data, |connection, (id, outcome, by)| {
                Box::pin(async move {
                    let sql = "UPDATE approvals SET outcome = $2, decided_by = $3, decided_at = $4
                               WHERE id = $1 AND outcome IS NULL";
                    let query = sqlx::query(sql).bind(*id).bind(outcome.as_str()).bind(by.as_str());
                    Ok(query.bind(unix_millis()).execute(connection).await?.rows_affected() == 1)
                })
            });
            Ok(decided.await?)
        })
    }

    fn approval(&self, id: i64) -> BoxFuture<'_, Result<Option<ApprovalRecord>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM approvals WHERE id = $1").bind(id);
            Ok(self.select_optional(query, approval_record).await?)
        })
    }

    fn pending_approvals(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM approvals WHERE outcome IS NULL ORDER BY id");
            Ok(self.select(query, approval_record).await?)
        })
    }

    fn approvals_of_run<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<ApprovalRecord>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM approvals WHERE run = $1 ORDER BY id").bind(run.as_str());
            Ok(self.select(query, approval_record).await?)
        })
    }
}

fn approval_record(row: &AnyRow) -> Result<ApprovalRecord, StoreError> {
    let outcome: Option<String> = row.try_get("outcome")?;
    Ok(ApprovalRecord {
        id: row.try_get("id")?,
        run: read_id(row, "run")?,
        step: row.try_get("step")?,
        kind: read_enum(row, "kind")?,
        text: row.try_get("text")?,
        outcome: outcome.map(enum_from_text).transpose()?,
        decided_by: row.try_get("decided_by")?,
    })
}
