//! Approval requests of runs, and the decisions on them.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{
    ApprovalId, ApprovalKind, ApprovalOutcome, ApprovalRecord, Approvals, AuditRecord, AuditedDecision,
    BoxFuture, ContentHash, RunId, StorageError, redact, unix_millis,
};

use crate::{
    audit::append::append_record,
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
    ) -> BoxFuture<'a, Result<ApprovalId, StorageError>> {
        let data = (run.clone(), step.map(str::to_owned), enum_to_text(&kind), redact(text).into_owned());
        Box::pin(async move {
            let inserted = self.write(Durability::Synced, data, |connection, (run, step, kind, text)| {
                Box::pin(async move {
                    let sql = "INSERT INTO approvals (run, step, kind, text, requested_at)
                               VALUES ($1, $2, $3, $4, $5) RETURNING id";
                    let query = sqlx::query(sql).bind(run.as_str()).bind(step.clone()).bind(kind.as_str());
                    let row = query.bind(text.as_str()).bind(unix_millis()).fetch_one(connection).await?;
                    Ok(ApprovalId(row.try_get("id")?))
                })
            });
            Ok(inserted.await?)
        })
    }

    fn decide<'a>(
        &'a self,
        id: ApprovalId,
        outcome: ApprovalOutcome,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let data = (id.0, outcome, by.to_owned(), self.engine());
        Box::pin(async move {
            let decided = self.write(Durability::Synced, data, |connection, (id, outcome, by, engine)| {
                Box::pin(async move {
                    let now = unix_millis();
                    let sql = "UPDATE approvals SET outcome = $2, decided_by = $3, decided_at = $4
                               WHERE id = $1 AND outcome IS NULL";
                    let query = sqlx::query(sql).bind(*id).bind(enum_to_text(outcome)).bind(by.as_str());
                    if query.bind(now).execute(&mut *connection).await?.rows_affected() != 1 {
                        return Ok(false);
                    }
                    let query = sqlx::query("SELECT * FROM approvals WHERE id = $1").bind(*id);
                    let approval = approval_record(&query.fetch_one(&mut *connection).await?)?;
                    let query =
                        sqlx::query("SELECT detail FROM runs WHERE id = $1").bind(approval.run.as_str());
                    let run = query.fetch_optional(&mut *connection).await?;
                    let detail: Option<String> = run.map(|row| row.try_get("detail")).transpose()?;
                    let caller = detail.and_then(|detail| caller_of(&detail));
                    let record = decision_record(now, *outcome, by, &approval, caller.as_deref());
                    append_record(connection, *engine, record).await?;
                    Ok(true)
                })
            });
            Ok(decided.await?)
        })
    }

    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<ApprovalRecord>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM approvals WHERE id = $1").bind(id.0);
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

/// The caller of a run of an agent.
fn caller_of(detail: &str) -> Option<String> {
    let detail: serde_json::Value = serde_json::from_str(detail).ok()?;
    detail.get("caller")?.as_str().filter(|caller| !caller.is_empty()).map(str::to_owned)
}

/// The audit record of a decision on a request; the content is the text that was shown. `caller` is that of the run.
fn decision_record(
    at: i64,
    outcome: ApprovalOutcome,
    by: &str,
    approval: &ApprovalRecord,
    caller: Option<&str>,
) -> AuditRecord {
    let decision = match outcome {
        ApprovalOutcome::Approved | ApprovalOutcome::ApprovedForRun => AuditedDecision::Approve,
        ApprovalOutcome::Denied => AuditedDecision::Deny,
    };
    let mut subject = format!("{} of run {}", enum_to_text(&approval.kind), approval.run);
    if let Some(caller) = caller {
        subject = format!("{subject} of {caller}");
    }
    if let Some(step) = &approval.step {
        subject = format!("{subject}, step {step}");
    }
    if outcome == ApprovalOutcome::ApprovedForRun {
        subject = format!("{subject}, and every call of its tool in this run");
    }
    AuditRecord::decision(at, decision, by, &subject, ContentHash::of(&approval.text))
}

fn approval_record(row: &AnyRow) -> Result<ApprovalRecord, StoreError> {
    let outcome: Option<String> = row.try_get("outcome")?;
    Ok(ApprovalRecord {
        id: ApprovalId(row.try_get("id")?),
        run: read_id(row, "run")?,
        step: row.try_get("step")?,
        kind: read_enum(row, "kind")?,
        text: row.try_get("text")?,
        outcome: outcome.map(enum_from_text).transpose()?,
        decided_by: row.try_get("decided_by")?,
        requested_at: row.try_get("requested_at")?,
    })
}
