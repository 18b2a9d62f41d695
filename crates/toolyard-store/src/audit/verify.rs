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
        /// The number of records.
        records: i64,
        /// The hash of the last record. Kept elsewhere, it later proves that no record before it was changed.
        head: ContentHash,
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
    /// Verifies every record, the stored checkpoints, and optionally a number and hash that were kept elsewhere.
    pub async fn verify_audit(
        &self,
        known_head: Option<(i64, ContentHash)>,
    ) -> Result<AuditVerification, StoreError> {
        let head = sqlx::query("SELECT number, hash FROM audit_head").fetch_one(self.pool()).await?;
        let (head_number, head_hash) = read_link(&head)?;
        let query = sqlx::query("SELECT number, hash FROM audit_checkpoints");
        let mut checkpoints = self.select(query, read_link).await?;
        checkpoints.extend(known_head);
        let (mut number, mut previous) = (0, ContentHash::from([0; 32]));
        loop {
            let sql = "SELECT * FROM audit WHERE number > $1 ORDER BY number LIMIT 10000";
            let rows = self.fetch_all(sqlx::query(sql).bind(number)).await?;
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
            }
            if rows.is_empty() {
                break;
            }
        }
        let last_checkpoint = checkpoints.iter().map(|(at, _)| *at).max().unwrap_or(0);
        if number < head_number.max(last_checkpoint) {
            return Ok(broken(number + 1, "the record is missing: the log was truncated"));
        }
        if number != head_number || previous != head_hash {
            return Ok(broken(number, "the last record does not match the stored head of the chain"));
        }
        Ok(AuditVerification::Intact { records: number, head: previous })
    }
}

fn broken(number: i64, reason: &str) -> AuditVerification {
    AuditVerification::Broken { number, reason: reason.to_owned() }
}
