//! Statistics and audit records of the store.

use std::sync::Arc;

use toolyard_gateway::{
    AdminError, AuditLogRecord, AuditLogVerification, AuditSelection, CallStatistics, StoreGauges,
};
use toolyard_store::{
    AuditEntry, AuditQuery, AuditQueueStatus, AuditVerification, Store, StoreError, StoredAudit,
    StoredHistory, ToolStatistics,
};

/// The store, as far as the HTTP API shows it.
pub(crate) struct StoredRecords {
    pub(crate) store: Store,
    pub(crate) history: Arc<StoredHistory>,
    pub(crate) audit: Arc<StoredAudit>,
}

impl StoredRecords {
    pub(super) fn statistics(&self) -> Vec<CallStatistics> {
        self.history.statistics().into_iter().map(call_statistics).collect()
    }

    pub(super) fn gauges(&self) -> StoreGauges {
        let AuditQueueStatus { queued, spill_bytes, lost, refused_calls, outage, failed_writes } =
            self.audit.queue_status();
        StoreGauges {
            is_reachable: self.store.is_reachable(),
            queued_writes: self.store.queued_writes() as u64,
            queued_audit_records: queued as u64,
            spill_bytes,
            lost_audit_records: lost,
            refused_calls,
            audit_outage_seconds: outage.map_or(0, |age| age.as_secs()),
            failed_audit_writes: failed_writes,
        }
    }

    pub(super) async fn audit(&self, selection: AuditSelection) -> Result<Vec<AuditLogRecord>, AdminError> {
        let AuditSelection { before, since, until, limit } = selection;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let query = AuditQuery { before, since, until, limit, ..AuditQuery::default() };
        let entries = self.store.query_audit(&query).await.map_err(storage)?;
        // The store returns the oldest first.
        Ok(entries.into_iter().rev().map(audit_record).collect())
    }

    pub(super) async fn verify_audit(&self) -> Result<AuditLogVerification, AdminError> {
        Ok(match self.store.verify_audit(None).await.map_err(storage)? {
            AuditVerification::Intact { records, head, lost } => AuditLogVerification {
                intact: true,
                records: Some(records),
                head: Some(head.to_string()),
                lost: Some(lost),
                broken_at: None,
                problem: None,
            },
            AuditVerification::Broken { number, reason } => AuditLogVerification {
                intact: false,
                records: None,
                head: None,
                lost: None,
                broken_at: Some(number),
                problem: Some(reason),
            },
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` needs")]
fn storage(error: StoreError) -> AdminError {
    AdminError::Storage(error.to_string())
}

fn call_statistics(statistics: ToolStatistics) -> CallStatistics {
    CallStatistics {
        weighted_failures: statistics.calls * (1.0 - statistics.success_rate),
        p50_ms: whole(statistics.median_milliseconds),
        p95_ms: whole(statistics.p95_milliseconds),
        tool: statistics.tool,
        source: statistics.source.to_string(),
        weighted_calls: statistics.calls,
        success_rate: statistics.success_rate,
        last_used_at: statistics.last_used,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
fn whole(milliseconds: f64) -> u64 {
    milliseconds.round() as u64
}

fn audit_record(entry: AuditEntry) -> AuditLogRecord {
    let AuditEntry { number, record, hash } = entry;
    AuditLogRecord {
        number,
        recorded_at: record.at,
        caller: record.caller,
        call: record.call,
        tool: record.tool,
        sources: record.sources.iter().map(ToString::to_string).collect(),
        arguments_hash: record.arguments.to_string(),
        result_hash: record.result.map(|hash| hash.to_string()),
        outcome: record.outcome,
        duration_ms: record.milliseconds,
        hash: hash.to_string(),
    }
}
