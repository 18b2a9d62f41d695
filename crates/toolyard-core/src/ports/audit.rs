//! The audit log: one record per call, chained by hashes.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{ContentHash, ErrorKind, SourceId};

/// The record of one call. Arguments and results are stored as hashes only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Milliseconds since 1970.
    pub at: i64,
    /// The caller: `cli`, a client's name, a run.
    pub caller: String,
    /// The call's id.
    pub call: String,
    /// The requested tool.
    pub tool: String,
    /// The sources of the result, or the one that failed.
    pub sources: Vec<SourceId>,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The hash of the result, if there is one.
    pub result: Option<ContentHash>,
    /// `ok` or the kind of error.
    pub outcome: String,
    /// How long the call took.
    pub milliseconds: i64,
}

impl AuditRecord {
    /// `ok`, or the kind of error as JSON names it.
    pub fn outcome_label(error: Option<ErrorKind>) -> String {
        match error {
            None => "ok".to_owned(),
            Some(kind) => json!(kind).as_str().map(str::to_owned).unwrap_or_default(),
        }
    }

    /// The hash of this record, its number and the hash of the previous record.
    pub fn chain_hash(&self, number: i64, previous: &ContentHash) -> ContentHash {
        let source_count = (self.sources.len() as u64).to_le_bytes();
        let result = self.result.map(String::from).unwrap_or_default();
        let mut parts: Vec<&[u8]> = vec![previous.as_bytes(), &source_count];
        let (number, at, milliseconds) =
            (number.to_le_bytes(), self.at.to_le_bytes(), self.milliseconds.to_le_bytes());
        parts.extend([number.as_slice(), at.as_slice(), milliseconds.as_slice()]);
        parts.extend([&self.caller, &self.call, &self.tool, &self.outcome, &result].map(String::as_bytes));
        parts.push(self.arguments.as_bytes());
        parts.extend(self.sources.iter().map(|source| source.as_str().as_bytes()));
        ContentHash::of_parts(parts)
    }
}

/// Receives the records of calls. Every call waits for it, so it must not block on I/O.
pub trait Audit: Send + Sync {
    /// Records one call.
    fn record(&self, record: AuditRecord);
}
