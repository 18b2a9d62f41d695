//! The audit log: one record per call and per decision of the operator, chained by hashes.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ContentHash, ErrorKind, SourceId};

/// The caller in records that the audit log makes about itself.
const OWN_CALLER: &str = "toolyard";
/// Follows the number in the outcome of a record of lost records.
const LOST_LABEL: &str = " records lost: ";
/// Follows the number in the outcome of a record of refused calls.
const REFUSED_LABEL: &str = " calls refused: ";
/// Precedes the subject in the outcome of a record of a decision.
const DECISION_LABEL: &str = "decided: ";

/// A decision that changes what may be called, which the audit log records beside the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditedDecision {
    /// A settings or mcp.json file of a project is trusted.
    TrustFile,
    /// A skill is trusted.
    TrustSkill,
    /// A skill is no longer trusted.
    RevokeSkillTrust,
    /// The definition of a tool is pinned.
    ApproveDefinition,
    /// A source gets the bare name of a tool.
    GiveName,
    /// The operator's settings file is changed.
    ChangeSettings,
    /// An agent that is kept in the store is added, changed or removed.
    ChangeAgent,
    /// A caller with an API key is added, gets another key or is revoked.
    ChangeCaller,
    /// A policy file is loaded.
    ChangePolicy,
    /// A stored secret is set or removed, or the key of stored secrets is changed.
    ChangeSecret,
    /// Old audit records are removed.
    RemoveRecords,
    /// A request of a run, such as a tool call, is approved.
    Approve,
    /// A request of a run is denied.
    Deny,
}

impl AuditedDecision {
    /// The name in the column of the tool.
    pub fn label(self) -> &'static str {
        match self {
            Self::TrustFile => "trust file",
            Self::TrustSkill => "trust skill",
            Self::RevokeSkillTrust => "revoke trust in skill",
            Self::ApproveDefinition => "approve definition",
            Self::GiveName => "give name",
            Self::ChangeSettings => "change settings",
            Self::ChangeAgent => "change agent",
            Self::ChangeCaller => "change caller",
            Self::ChangePolicy => "change policy",
            Self::ChangeSecret => "change secret",
            Self::RemoveRecords => "remove audit records",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

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
            Some(kind) => kind.as_str().to_owned(),
        }
    }

    /// A record that stands for `count` records that could not be kept.
    pub fn lost(at: i64, count: u64, reason: &str) -> Self {
        Self::own(at, format!("{count}{LOST_LABEL}{reason}"))
    }

    /// A record of `count` calls that were refused because their records could not have been kept.
    pub fn refused(at: i64, count: u64, reason: &str) -> Self {
        Self::own(at, format!("{count}{REFUSED_LABEL}{reason}"))
    }

    /// A record of a decision: who made it, on what, and the hash of the content that was decided on.
    pub fn decision(
        at: i64,
        decision: AuditedDecision,
        by: &str,
        subject: &str,
        content: ContentHash,
    ) -> Self {
        Self {
            caller: by.to_owned(),
            tool: decision.label().to_owned(),
            arguments: content,
            ..Self::own(at, format!("{DECISION_LABEL}{subject}"))
        }
    }

    /// How many records this one stands for, if it is a record of lost records.
    pub fn lost_count(&self) -> Option<u64> {
        // No call has such an outcome: see `outcome_label`.
        self.outcome.split_once(LOST_LABEL)?.0.parse().ok()
    }

    /// A record of the audit log about itself.
    fn own(at: i64, outcome: String) -> Self {
        Self {
            at,
            caller: OWN_CALLER.to_owned(),
            call: String::new(),
            tool: String::new(),
            sources: Vec::new(),
            arguments: ContentHash::of(""),
            result: None,
            outcome,
            milliseconds: 0,
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

/// No record of the call can be kept at the moment: neither the store nor the spill file can be written.
///
/// Remedy: make room on the disk or start the database; with `audit = "best_effort"` calls go on without a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot keep a record of the call: {reason}")]
pub struct AuditUnavailable {
    /// Why not.
    pub reason: String,
}

/// Receives the records of calls. Every call waits for it, so it must not block on I/O.
pub trait Audit: Send + Sync {
    /// Records one call.
    fn record(&self, record: AuditRecord);

    /// Asked before a call is executed: an error refuses it. An audit log that need not be complete admits every call.
    fn admit(&self) -> Result<(), AuditUnavailable> {
        Ok(())
    }

    /// Waits until the records so far survive the end of this process and a power failure. `None` if the audit log need not be
    /// complete, so that nobody waits. An error means that the records could not be kept so far.
    fn wait_until_durable(&self) -> Option<BoxFuture<'_, Result<(), AuditUnavailable>>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_record_of_lost_records_has_a_count() {
        assert_eq!(AuditRecord::lost(1, 40_800, "the disk was full").lost_count(), Some(40_800));
        assert_eq!(AuditRecord::refused(1, 7, "the disk was full").lost_count(), None);
        let subject = "7 records lost: none";
        let decision =
            AuditRecord::decision(1, AuditedDecision::TrustFile, "cli", subject, ContentHash::of(""));
        assert_eq!(decision.lost_count(), None);
        for kind in [None, Some(ErrorKind::Failed), Some(ErrorKind::ResponseLost)] {
            let outcome = AuditRecord::outcome_label(kind);
            assert_eq!(AuditRecord { outcome, ..AuditRecord::lost(1, 1, "") }.lost_count(), None);
        }
    }
}
