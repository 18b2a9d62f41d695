//! One request to call a tool, and the circumstances under which it is carried out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{Caller, Patience, RawJson};

/// What a model or a client asks for: a tool by name, its arguments, and at most a hint about where the tool lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// Chosen by the caller; an answer carries it back.
    #[serde(default = "next_call_id")]
    pub id: String,
    /// The tool's bare name.
    pub tool_name: String,
    /// The arguments as JSON text, normally an object.
    #[serde(default = "RawJson::empty_object")]
    pub arguments: RawJson,
    /// Normally absent: the hub finds the tool. `native` and `appflowy` are only hints; the id of a source selects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl ToolCallRequest {
    /// A request with an id of its own and no source.
    pub fn new(tool_name: impl Into<String>, arguments: impl Into<RawJson>) -> Self {
        Self { id: next_call_id(), tool_name: tool_name.into(), arguments: arguments.into(), source: None }
    }

    /// The same request, addressed to one source.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// An id that is unique within the process, for callers that gave none.
fn next_call_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What a tool may know about the call it is carrying out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// Nobody waits for an answer after this instant, unless [`CallContext::patience`] says otherwise: the future is
    /// dropped then.
    pub deadline: Instant,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// A name for this call that stays the same however often it is tried, for tools that take one; only calls that
    /// are journalled have it.
    pub idempotency_key: Option<Arc<str>>,
    /// Who can be told and asked while the call goes on, if anyone.
    pub caller: Option<Arc<dyn Caller>>,
    /// Where signs of life are told that prolong the call beyond its deadline, if anything does.
    pub patience: Option<Arc<Patience>>,
}

impl CallContext {
    /// A first attempt with this deadline.
    pub fn until(deadline: Instant) -> Self {
        Self { deadline, attempt: 1, idempotency_key: None, caller: None, patience: None }
    }

    /// The same circumstances for another attempt.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// The same circumstances for a call that is journalled.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: Option<Arc<str>>) -> Self {
        self.idempotency_key = key;
        self
    }

    /// The same circumstances for a call of somebody who can be told and asked things.
    #[must_use]
    pub fn with_caller(mut self, caller: Option<Arc<dyn Caller>>) -> Self {
        self.caller = caller;
        self
    }

    /// The same circumstances for a call that signs of life prolong.
    #[must_use]
    pub fn with_patience(mut self, patience: Option<Arc<Patience>>) -> Self {
        self.patience = patience;
        self
    }

    /// How long there still is, seen from `now`.
    pub fn remaining(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_seeds_is_read() {
        let request: ToolCallRequest = serde_json::from_str(
            r#"{"id":"call_001","tool_name":"read_data_from_excel","arguments":{"filepath":"a.xlsx"},"source":"appflowy"}"#,
        )
        .unwrap();
        assert_eq!(request.id, "call_001");
        assert_eq!(request.arguments.get(), r#"{"filepath":"a.xlsx"}"#);
        assert_eq!(request.source.as_deref(), Some("appflowy"));
    }

    #[test]
    fn id_arguments_and_source_may_be_absent() {
        let request: ToolCallRequest = serde_json::from_str(r#"{"tool_name":"get_time"}"#).unwrap();
        assert!(request.id.starts_with("call_"));
        assert_eq!(request.arguments.get(), "{}");
        assert_eq!(request.source, None);
    }
}
