//! Removes what is older than it has to be kept: audit records, finished runs and stored results.

use std::time::Duration;

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{AuditRecord, AuditedDecision, ContentHash, unix_millis};

use crate::{
    audit::append::{DAY_MILLIS, append_record, partition_name, read_link},
    error::StoreError,
    results::ResultRetention,
    sql::{Durability, Engine, statement},
    store::Store,
};

/// Runs that are removed in one transaction.
const RUNS_PER_TRANSACTION: i64 = 500;
/// A long query on the audit log would otherwise delay all calls: they wait behind the lock that waits for it.
const LIMIT_WAITING: &str = "SET LOCAL lock_timeout = '2s'";

/// How long things are kept; what has no period is kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Audit records, by whole days in UTC.
    pub audit: Option<Duration>,
    /// Runs that have ended, from their start, with their steps, events and approvals. A run with a step whose outcome is unknown is
    /// kept.
    pub runs: Option<Duration>,
    /// Stored results.
    pub results: ResultRetention,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Audit records.
    pub audit_records: i64,
    /// Runs.
    pub runs: u64,
    /// Stored results.
    pub results: u64,
}

impl Removed {
    /// Whether nothing was removed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Store {
    /// Removes what is too old. The removal of audit records is itself a record of the audit log, which stays verifiable: the hash of
    /// the last removed record is kept. `by` says who removes them.
    pub async fn apply_retention(&self, retention: &Retention, by: &str) -> Result<Removed, StoreError> {
        let mut removed =
            Removed { results: self.expire_results(retention.results).await?, ..Removed::default() };
        if let Some(period) = retention.runs {
            removed.runs = self.remove_runs(unix_millis().saturating_sub(to_millis(period))).await?;
        }
        if let Some(period) = retention.audit {
            let before = unix_millis().saturating_sub(to_millis(period)).div_euclid(DAY_MILLIS);
            removed.audit_records = self.remove_audit_days(before, by).await?;
        }
        Ok(removed)
    }

    /// The number of audit records that were removed, which are the first ones.
    pub async fn removed_audit_records(&self) -> Result<i64, StoreError> {
        Ok(self.audit_base().await?.map_or(0, |(number, _)| number))
    }

    /// The number and hash of the last audit record that was removed.
    pub(crate) async fn audit_base(&self) -> Result<Option<(i64, ContentHash)>, StoreError> {
        let sql = "SELECT number, hash FROM audit_removals ORDER BY number DESC LIMIT 1";
        Ok(self.select(sqlx::query(sql), read_link).await?.pop())
    }

    async fn remove_runs(&self, started_before: i64) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let count = self.write_alone(Durability::Relaxed, started_before, |connection, before| {
                Box::pin(remove_runs(connection, *before))
            });
            let count = count.await?;
            removed += count;
            if count < RUNS_PER_TRANSACTION.unsigned_abs() {
                return Ok(removed);
            }
        }
    }

    async fn remove_audit_days(&self, before_day: i64, by: &str) -> Result<i64, StoreError> {
        let removal = AuditRemoval { engine: self.engine(), before_day, by: by.to_owned() };
        let removed = self.write_alone(Durability::Synced, removal, |connection, removal| {
            Box::pin(remove_audit_days(connection, removal))
        });
        removed.await
    }
}

fn to_millis(period: Duration) -> i64 {
    i64::try_from(period.as_millis()).unwrap_or(i64::MAX)
}

async fn remove_runs(connection: &mut AnyConnection, started_before: i64) -> Result<u64, StoreError> {
    let sql = "SELECT id FROM runs WHERE state <> 'open' AND created_at < $1 AND NOT EXISTS (
                   SELECT 1 FROM steps WHERE steps.run = runs.id AND steps.state IN ('started', 'unknown')
               ) ORDER BY created_at LIMIT $2";
    let query = sqlx::query(sql).bind(started_before).bind(RUNS_PER_TRANSACTION);
    let rows = query.fetch_all(&mut *connection).await?;
    for row in &rows {
        let id: String = row.try_get("id")?;
        // Steps and events are removed with their run.
        for sql in ["DELETE FROM approvals WHERE run = $1", "DELETE FROM runs WHERE id = $1"] {
            sqlx::query(sql).bind(id.as_str()).execute(&mut *connection).await?;
        }
    }
    Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
}

struct AuditRemoval {
    engine: Engine,
    before_day: i64,
    by: String,
}

async fn remove_audit_days(
    connection: &mut AnyConnection,
    removal: &AuditRemoval,
) -> Result<i64, StoreError> {
    let AuditRemoval { engine, before_day, by } = removal;
    if *engine == Engine::Postgres {
        sqlx::query(LIMIT_WAITING).execute(&mut *connection).await?;
    }
    // Nobody appends meanwhile.
    let sql = format!("SELECT number, hash FROM audit_head {}", engine.postgres_only("FOR UPDATE"));
    sqlx::query(statement(sql)).fetch_one(&mut *connection).await?;
    let days = first_days(connection, *before_day).await?;
    let Some(&last_day) = days.last() else { return Ok(0) };
    let sql = "SELECT number, hash FROM audit WHERE day = $1 ORDER BY number DESC LIMIT 1";
    let (last, hash) = read_link(&sqlx::query(sql).bind(last_day).fetch_one(&mut *connection).await?)?;
    let base = sqlx::query("SELECT COALESCE(MAX(number), 0) AS number FROM audit_removals");
    let base: i64 = base.fetch_one(&mut *connection).await?.try_get("number")?;
    let now = unix_millis();
    let sql = "INSERT INTO audit_removals (number, hash, at) VALUES ($1, $2, $3)";
    sqlx::query(sql).bind(last).bind(hash.to_string()).bind(now).execute(&mut *connection).await?;
    sqlx::query("DELETE FROM audit_checkpoints WHERE number <= $1")
        .bind(last)
        .execute(&mut *connection)
        .await?;
    for day in &days {
        let query = match engine {
            Engine::Postgres => sqlx::query(statement(format!("DROP TABLE {}", partition_name(*day)))),
            Engine::Sqlite => sqlx::query("DELETE FROM audit WHERE day = $1").bind(*day),
        };
        query.execute(&mut *connection).await?;
    }
    let subject = format!("audit records {} to {last}, by [retention]", base + 1);
    let record = AuditRecord::decision(now, AuditedDecision::RemoveRecords, by, &subject, hash);
    append_record(connection, *engine, record).await?;
    Ok(last - base)
}

/// The days before this one whose records are the first ones of the chain, oldest first. A record that was appended late, with an
/// earlier time than the one before it, keeps the days between.
async fn first_days(connection: &mut AnyConnection, before_day: i64) -> Result<Vec<i64>, StoreError> {
    // One look into an index per day: the log may have hundreds of millions of records.
    const NEXT_DAY: &str = "SELECT MIN(day) AS day FROM audit WHERE day > $1";
    const RANGE: &str = "SELECT MIN(number) AS first, MAX(number) AS last FROM audit WHERE day = $1";
    const FIRST_KEPT: &str = "SELECT MIN(number) AS first FROM audit WHERE day >= $1";
    let mut days: Vec<DayRange> = Vec::new();
    loop {
        let after = days.last().map_or(i64::MIN, |range| range.day);
        let row = sqlx::query(NEXT_DAY).bind(after).fetch_one(&mut *connection).await?;
        let Some(day) = row.try_get::<Option<i64>, _>("day")?.filter(|day| *day < before_day) else { break };
        let row = sqlx::query(RANGE).bind(day).fetch_one(&mut *connection).await?;
        days.push(DayRange { day, first: row.try_get("first")?, last: row.try_get("last")? });
    }
    let row = sqlx::query(FIRST_KEPT).bind(before_day).fetch_one(&mut *connection).await?;
    if let Some(first) = row.try_get::<Option<i64>, _>("first")? {
        days.push(DayRange { day: before_day, first, last: i64::MAX });
    }
    Ok(removable_days(&days, before_day))
}

/// The numbers of the records of a day.
#[derive(Debug, Clone, Copy)]
struct DayRange {
    day: i64,
    first: i64,
    last: i64,
}

/// The longest prefix of days before `before_day` whose records all precede those of the other days.
fn removable_days(days: &[DayRange], before_day: i64) -> Vec<i64> {
    let candidates = days.iter().take_while(|range| range.day < before_day).count();
    let is_prefix = |count: &usize| {
        let (removed, kept) = days.split_at(*count);
        let first_kept = kept.iter().map(|range| range.first).min().unwrap_or(i64::MAX);
        removed.iter().all(|range| range.last < first_kept)
    };
    let count = (0..=candidates).rev().find(is_prefix).unwrap_or(0);
    days.iter().take(count).map(|range| range.day).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn days(ranges: &[(i64, i64, i64)]) -> Vec<DayRange> {
        ranges.iter().map(|&(day, first, last)| DayRange { day, first, last }).collect()
    }

    #[test]
    fn a_late_record_keeps_the_days_before_it() {
        let ordered = days(&[(1, 1, 10), (2, 11, 20), (3, 21, 30)]);
        assert_eq!(removable_days(&ordered, 3), [1, 2]);
        assert_eq!(removable_days(&ordered, 1), [0; 0]);
        let late = days(&[(1, 1, 10), (2, 11, 25), (3, 21, 30)]);
        assert_eq!(removable_days(&late, 3), [1], "record 25 of day 2 was appended on day 3");
    }

    proptest! {
        #[test]
        fn what_is_removed_precedes_what_is_kept(chain in prop::collection::vec(0..6_i64, 1..40), before in 0..8_i64) {
            let mut ranges: Vec<DayRange> = Vec::new();
            for (number, day) in (1_i64..).zip(&chain) {
                match ranges.iter_mut().find(|range| range.day == *day) {
                    Some(range) => range.last = number,
                    None => ranges.push(DayRange { day: *day, first: number, last: number }),
                }
            }
            ranges.sort_by_key(|range| range.day);
            let removed = removable_days(&ranges, before);
            let is_removed: Vec<bool> = chain.iter().map(|day| removed.contains(day)).collect();
            prop_assert!(is_removed.is_sorted_by(|one, other| *one || !*other), "a prefix of the chain");
            prop_assert!(removed.iter().all(|day| *day < before));
            let is_ordered = chain.is_sorted();
            prop_assert!(!is_ordered || chain.iter().all(|day| *day >= before || removed.contains(day)));
        }
    }
}
