//! [`RunRequest`]: what an agent is asked to do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolyard_core::{CallerIdentity, ContentHash, ConversationId};
use toolyard_model::ModelMessage;

use super::limits::RunLimits;
use crate::ReviewRule;

/// What an agent is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The question or task.
    pub question: String,
    /// Earlier messages of the conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ModelMessage>,
    /// Whether the answers in the history contain no non-public data. Otherwise they count as data of the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public_history: bool,
    /// The conversation that the run belongs to. Its tools may recall it; without one, such tools are not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Box<ConversationId>>,
    /// Name of the agent.
    pub agent: String,
    /// The sampling temperature of the answer that a model writes from the results, in hundredths; 0 if absent. Plans are always
    /// sampled at 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_hundredths: Option<u8>,
    /// What the run may use.
    #[serde(default)]
    pub limits: RunLimits,
    /// The caller, for the audit log.
    #[serde(default)]
    pub caller: Box<str>,
    /// On whose behalf the run is; absent for the user of this machine. Embedders that serve several users give each an owner
    /// of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Box<RunOwner>>,
    /// Who asked: tools are called in this caller's name, policies decide about it, and no other caller sees the run. Absent for
    /// the user of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<CallerIdentity>>,
    /// Stop after planning; call no tool.
    #[serde(default)]
    pub plan_only: bool,
    /// Call only read-only tools; simulate the others.
    #[serde(default)]
    pub dry_run: bool,
    /// Let a model judge results that pass verification by rule.
    #[serde(default)]
    pub judge: bool,
    /// When a model is asked whether the answer fulfils the request.
    #[serde(default)]
    pub review: ReviewRule,
    /// The run continues without a client; if its process ends, another serving process takes it over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// What the agent may do, see [`Agent::authority`](crate::Agent::authority); only set by a serving process. Processes with
    /// another authority do not take the run over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Box<ContentHash>>,
    /// Identifies the client request that created the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Box<RequestFingerprint>>,
    /// The span that caused the run, as W3C's `traceparent`. Without one, the run is a trace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Box<str>>,
}

/// On whose behalf a run is. What is learned from its calls is shown to the same owner only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunOwner(pub String);

impl RunRequest {
    /// The owner as text; empty for the user of this machine.
    pub(crate) fn owner_text(&self) -> &str {
        self.owner.as_ref().map(|owner| owner.0.as_str()).unwrap_or_default()
    }

    /// The conversation that question and answer are recorded in: that of the run, unless nothing is to be done.
    pub(crate) fn recorded_conversation(&self) -> Option<&ConversationId> {
        self.conversation.as_deref().filter(|_| !self.plan_only && !self.dry_run)
    }
}

/// Identifies a client request, so that a repeated request, also one sent to another process, starts no second run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFingerprint {
    /// Hash of the client's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<ContentHash>,
    /// Hash of the whole request.
    pub content: ContentHash,
}
