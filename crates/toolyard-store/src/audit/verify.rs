//! Verifies the audit log: every record is unchanged, in its position, and none is missing.

use serde::Serialize;
use toolyard_core::ContentHash;

use super::{append::read_link, entry::AuditEntry};
use crate::{error::StoreError, store::Store};

/// The result of verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerification {
    /// Every record is as it was written.
    Intact {
        /// The number of records, with those that [`apply_retention`](Store::apply_retention) removed.
        records: i64,
        /// The hash of the last record. Kept elsewhere, it later proves that no record before it was changed.
        head: ContentHash,
        /// The number of calls without a record, as other records say.
        lost: u64,
    },
    /// The first record that is wrong or missing.
    Broken {
        /// Its number.
        number: i64,
        /// What is wrong.
        reason: String,
    },
}

impl Store {
    /// Verifies every record, the stored checkpoints, and optionally a number and hash that were kept elsewhere. Records
    /// that are appended meanwhile are left to the next verification.
    pub async fn verify_audit(
        &self,
        known_head: Option<(i64, ContentHash)>,
    ) -> Result<AuditVerification, StoreError> {
        loop {
            let base = self.audit_base().await?;
            let verification = self.verify_after(base, known_head).await?;
            // Records that are removed meanwhile seem to be missing.
            let is_intact = matches!(verification, AuditVerification::Intact { .. });
            if is_intact || self.audit_base().await? == base {
                return Ok(verification);
            }
        }
    }

    /// Verifies the records after the last one that was removed.
    async fn verify_after(
        &self,
        base: Option<(i64, ContentHash)>,
        known_head: Option<(i64, ContentHash)>,
    ) -> Result<AuditVerification, StoreError> {
        let (base_number, base_hash) = base.unwrap_or((0, ContentHash::from([0; 32])));
        match known_head {
            Some((number, hash)) if number == base_number && hash != base_hash && base.is_some() => {
                return Ok(broken(
                    number,
                    "the chain was rewritten: the record does not match the known head",
                ));
            }
            Some((number, _)) if number < base_number => {
                return Ok(broken(
                    number,
                    "the record was removed by [retention]: compare with a later head",
                ));
            }
            _ => {}
        }
        // A record, its checkpoint and the head that covers it are committed together and never change again. Read in this
        // order, no checkpoint is later than the head, and every record up to the head is there.
        let query = sqlx::query("SELECT number, hash FROM audit_checkpoints");
        let mut checkpoints = self.select(query, read_link).await?;
        checkpoints.extend(known_head);
        let head = sqlx::query("SELECT number, hash FROM audit_head").fetch_one(self.pool()).await?;
        let (head_number, head_hash) = read_link(&head)?;
        let (mut number, mut previous, mut lost) = (base_number, base_hash, 0);
        loop {
            let sql = "SELECT * FROM audit WHERE number > $1 AND number <= $2 ORDER BY number LIMIT 10000";
            let rows = self.fetch_all(sqlx::query(sql).bind(number).bind(head_number)).await?;
            for row in &rows {
                let Ok(entry) = AuditEntry::from_row(row) else {
                    return Ok(broken(number + 1, "the record cannot be read"));
                };
                number += 1;
                if entry.number != number {
                    return Ok(broken(number, "the record is missing"));
                }
                if entry.hash != entry.record.chain_hash(number, &previous) {
                    return Ok(broken(number, "this record, or one before it, was changed"));
                }
                if checkpoints.iter().any(|(at, hash)| *at == number && *hash != entry.hash) {
                    return Ok(broken(
                        number,
                        "the chain was rewritten: the record does not match its checkpoint",
                    ));
                }
                previous = entry.hash;
                lost += entry.record.lost_count().unwrap_or(0);
            }
            if rows.is_empty() {
                break;
            }
        }
        let last_checkpoint = checkpoints.iter().map(|(at, _)| *at).max().unwrap_or(0);
        if number < head_number.max(last_checkpoint) {
            return Ok(broken(number + 1, "the record is missing: the log was truncated"));
        }
        if previous != head_hash || self.has_records_beyond_head().await? {
            return Ok(broken(number, "the last record does not match the stored head of the chain"));
        }
        Ok(AuditVerification::Intact { records: number, head: previous, lost })
    }

    /// Whether there are records that the head does not cover. One statement sees one state of the database.
    async fn has_records_beyond_head(&self) -> Result<bool, StoreError> {
        let sql = "SELECT number FROM audit WHERE number > (SELECT number FROM audit_head) LIMIT 1";
        Ok(sqlx::query(sql).fetch_optional(self.pool()).await?.is_some())
    }
}

fn broken(number: i64, reason: &str) -> AuditVerification {
    AuditVerification::Broken { number, reason: reason.to_owned() }
}
