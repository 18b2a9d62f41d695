//! Whether callers share an instance of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether callers that are told apart share an instance of a server. Whoever has the gateway's own token always uses the
/// shared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IsolationSetting {
    /// All callers share one.
    Shared,
    /// Each caller has one of its own.
    Caller,
    /// Each session of a caller has one of its own; calls without a session share one of their caller.
    Session,
}

impl IsolationSetting {
    /// The setting of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "shared" => Some(Self::Shared),
            "caller" => Some(Self::Caller),
            "session" => Some(Self::Session),
            _ => None,
        }
    }
}
