//! What somebody wants of an agent.

use serde::{Deserialize, Serialize};
use toolyard_core::ContentHash;
use toolyard_model::ModelMessage;

use crate::Caps;

/// What somebody wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The question or task.
    pub question: String,
    /// What was said before it, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ModelMessage>,
    /// The agent that is asked.
    pub agent: String,
    /// How much it may use.
    #[serde(default)]
    pub caps: Caps,
    /// On whose behalf, for the audit log.
    #[serde(default)]
    pub who: String,
    /// Only a plan is wanted; nothing is called.
    #[serde(default)]
    pub plan_only: bool,
    /// Everything but calls that change something; those are only said.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether a model looks at results too, after they were looked at by rule.
    #[serde(default)]
    pub judge: bool,
    /// Whether it goes on by itself, with nobody who waits for it: a hub that starts takes it over from one that ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// By what the request of a client is known that it was asked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<RequestMark>>,
}

/// By what the request of a client is known, so that it is not carried out once more when it is made again, whichever
/// process hears it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMark {
    /// The hash of the client's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<ContentHash>,
    /// The hash of all that it said.
    pub said: ContentHash,
}
