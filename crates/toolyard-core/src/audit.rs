//! Who called what, where it went and what came of it: one record per call, chained by hashes.

use serde::{Deserialize, Serialize};

use crate::{ContentHash, ErrorKind, SourceId};

/// One call, as the audit log keeps it. Arguments and results are kept as hashes only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Milliseconds since 1970.
    pub at: i64,
    /// On whose behalf: `cli`, a client's name, a run.
    pub who: String,
    /// The call's id.
    pub call: String,
    /// The tool that was named.
    pub tool: String,
    /// The sources whose answers are in the result, or the one that failed.
    pub sources: Vec<SourceId>,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The hash of the result, where there is one.
    pub result: Option<ContentHash>,
    /// `ok`, or the class of failure.
    pub outcome: String,
    /// How long it took.
    pub milliseconds: i64,
}

impl AuditRecord {
    /// The word for an outcome.
    pub fn outcome_word(error: Option<ErrorKind>) -> String {
        match error {
            None => "ok".to_owned(),
            Some(kind) => serde_json::to_value(kind)
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned))
                .unwrap_or_default(),
        }
    }

    /// The hash that the next record builds on: of this record, its number and the hash before it.
    pub fn chained(&self, number: i64, previous: &ContentHash) -> ContentHash {
        let source_count = (self.sources.len() as u64).to_le_bytes();
        let result = self.result.map(String::from).unwrap_or_default();
        let mut parts: Vec<&[u8]> = vec![previous.as_bytes(), &source_count];
        let (number, at, milliseconds) =
            (number.to_le_bytes(), self.at.to_le_bytes(), self.milliseconds.to_le_bytes());
        parts.extend([number.as_slice(), at.as_slice(), milliseconds.as_slice()]);
        parts.extend([&self.who, &self.call, &self.tool, &self.outcome, &result].map(String::as_bytes));
        parts.push(self.arguments.as_bytes());
        parts.extend(self.sources.iter().map(|source| source.as_str().as_bytes()));
        ContentHash::of_parts(parts)
    }
}

/// Takes records of calls. It stands in the path of every call: it must not block on IO.
pub trait Audit: Send + Sync {
    /// Takes one record.
    fn record(&self, record: AuditRecord);
}
