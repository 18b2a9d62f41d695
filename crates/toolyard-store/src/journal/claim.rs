//! Claims runs and checks leases.

use std::time::Duration;

use sqlx::{Any, AnyConnection, Row as _, any::AnyArguments, query::Query};
use toolyard_core::{JournalError, Lease, RunId};

use crate::{
    error::StoreError,
    sql::{Engine, read_id, statement},
};

pub(super) enum ClaimTarget {
    Run(RunId),
    /// The oldest open run of this kind.
    NextOfKind(String),
}

pub(super) struct Claim {
    pub(super) engine: Engine,
    pub(super) target: ClaimTarget,
    pub(super) owner: String,
    pub(super) lease_millis: i64,
}

/// Leases a free run, with a higher fencing number than every earlier owner had.
pub(super) async fn claim(
    connection: &mut AnyConnection,
    claim: &Claim,
) -> Result<Option<Lease>, StoreError> {
    let now = claim.engine.now();
    let is_free = format!("(owner IS NULL OR lease_until < {now})");
    let (candidate, parameter) = match &claim.target {
        ClaimTarget::Run(run) => (format!("SELECT id FROM runs WHERE id = $3 AND {is_free}"), run.as_str()),
        ClaimTarget::NextOfKind(kind) => {
            // Replicas that look at the same moment skip the rows that another one is claiming.
            let lock = claim.engine.postgres_only("FOR UPDATE SKIP LOCKED");
            let sql = format!(
                "SELECT id FROM runs WHERE kind = $3 AND state = 'open' AND {is_free}
                 ORDER BY created_at LIMIT 1 {lock}"
            );
            (sql, kind.as_str())
        }
    };
    let sql = format!(
        "UPDATE runs SET owner = $1, fence = fence + 1, lease_until = {now} + $2
         WHERE id IN ({candidate}) AND {is_free} RETURNING id, fence"
    );
    let query = sqlx::query(statement(sql)).bind(claim.owner.as_str()).bind(claim.lease_millis);
    let Some(row) = query.bind(parameter).fetch_optional(connection).await? else { return Ok(None) };
    Ok(Some(Lease { run: read_id(&row, "id")?, owner: claim.owner.clone(), fence: row.try_get("fence")? }))
}

/// Fails unless the lease is held, and prevents another claim until the commit.
pub(crate) async fn check_lease(
    connection: &mut AnyConnection,
    engine: Engine,
    lease: &Lease,
) -> Result<(), StoreError> {
    let lock = engine.postgres_only("FOR SHARE");
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

type AnyQuery<'q> = Query<'q, Any, AnyArguments>;

/// Binds the first three parameters of every write under a lease: run, owner and fencing number.
pub(super) fn bind_lease<'q>(query: AnyQuery<'q>, lease: &'q Lease) -> AnyQuery<'q> {
    query.bind(lease.run.as_str()).bind(lease.owner.as_str()).bind(lease.fence)
}

pub(super) fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
