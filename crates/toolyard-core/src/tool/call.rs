//! A request to call a tool, and the context in which the call is executed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize};

use crate::{Caller, ExtendableDeadline, RawJson};

/// A tool call as a model or a client requests it: the tool's name, its arguments, and optionally its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// Chosen by the caller; the response carries it back.
    #[serde(default = "next_call_id")]
    pub id: String,
    /// The tool's bare name.
    pub tool_name: String,
    /// The arguments, normally a JSON object.
    #[serde(default = "RawJson::empty_object")]
    pub arguments: RawJson,
    /// Normally absent: the hub finds the tool. A source id selects that source; `native` and `appflowy` are only hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl ToolCallRequest {
    /// A request with a new id and no source.
    pub fn new(tool_name: impl Into<String>, arguments: impl Into<RawJson>) -> Self {
        Self { id: next_call_id(), tool_name: tool_name.into(), arguments: arguments.into(), source: None }
    }

    /// Sets the source to call.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// An id that is unique within the process, for requests without one.
fn next_call_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What a tool knows about the call it executes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// When the call is cancelled by dropping its future, unless [`CallContext::extendable_deadline`] is later.
    pub deadline: Instant,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Identifies the call across attempts, for tools that support idempotency keys. Only journaled calls have one.
    pub idempotency_key: Option<Arc<str>>,
    /// Receives progress and log messages of the call and answers its input requests; none if the call has no such caller.
    pub caller: Option<Arc<dyn Caller>>,
    /// Set if activity that the tool reports extends the deadline.
    pub extendable_deadline: Option<Arc<ExtendableDeadline>>,
}

impl CallContext {
    /// The context of a first attempt with this deadline.
    pub fn until(deadline: Instant) -> Self {
        Self { deadline, attempt: 1, idempotency_key: None, caller: None, extendable_deadline: None }
    }

    /// Sets the caller.
    #[must_use]
    pub fn with_caller(mut self, caller: Option<Arc<dyn Caller>>) -> Self {
        self.caller = caller;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_format_of_the_specification_is_read() {
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
