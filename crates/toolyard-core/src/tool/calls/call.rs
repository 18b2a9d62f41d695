//! A request to call a tool, and the context in which the call is executed.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Caller, CallerIdentity, DataOwner, ErrorKind, ExtendableDeadline, RawJson, ToolError,
    telemetry::SpanContext,
};

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

    /// The arguments as a type of the program; an error of the kind [`ErrorKind::InvalidArguments`] if they do not fit it.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        self.arguments.read().map_err(|error| {
            ToolError::new(ErrorKind::InvalidArguments, format!("invalid arguments: {error}"))
        })
    }
}

/// An id for requests without one. It is unique across restarts and replicas, which share one audit log.
fn next_call_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call_{}_{}", process_tag(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Twelve random characters that tell this process from all others; process ids are reused, and in containers often 1.
pub fn process_tag() -> &'static str {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    static TAG: LazyLock<String> = LazyLock::new(|| {
        // The standard library seeds its hasher from the operating system.
        let mut bits = RandomState::new().hash_one(std::process::id());
        let next = std::iter::repeat_with(|| {
            let digit = bits % 32;
            bits /= 32;
            usize::try_from(digit).ok().and_then(|digit| ALPHABET.get(digit)).copied().map_or('a', char::from)
        });
        next.take(12).collect()
    });
    &TAG
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
    /// For whom the call is made, in place of [`Caller::identity`].
    pub identity: Option<Arc<CallerIdentity>>,
    /// For whom the call is made: whose stored data the tool may read.
    pub owner: DataOwner,
    /// Set if activity that the tool reports extends the deadline.
    pub extendable_deadline: Option<Arc<ExtendableDeadline>>,
    /// The span of the call. It replaces [`Caller::span`] as the parent of what the tool calls.
    pub span: Option<SpanContext>,
}

impl CallContext {
    /// The context of a first attempt with this deadline.
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            attempt: 1,
            idempotency_key: None,
            caller: None,
            identity: None,
            owner: DataOwner::Operator,
            extendable_deadline: None,
            span: None,
        }
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
    fn the_same_call_of_two_processes_has_two_ids() {
        const ASKED: &str = "TOOLYARD_TEST_PRINT_CALL_ID";
        let own = ToolCallRequest::new("get_time", RawJson::empty_object()).id;
        if std::env::var_os(ASKED).is_some() {
            return println!("{own}");
        }
        let test = "tool::calls::call::tests::the_same_call_of_two_processes_has_two_ids";
        let mut seen = std::collections::BTreeSet::from([own.clone()]);
        for _ in 0..4 {
            let program = std::env::current_exe().unwrap();
            let arguments = ["--exact", test, "--nocapture", "--test-threads", "1"];
            let output =
                std::process::Command::new(program).args(arguments).env(ASKED, "1").output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let id = text.split_whitespace().find(|word| word.starts_with("call_")).unwrap().to_owned();
            assert_eq!(id.rsplit('_').next(), Some("1"), "not the first call of the process: {id}");
            assert!(seen.insert(id.clone()), "{id} twice");
        }
    }

    #[test]
    fn id_arguments_and_source_may_be_absent() {
        let request: ToolCallRequest = serde_json::from_str(r#"{"tool_name":"get_time"}"#).unwrap();
        assert!(request.id.starts_with("call_"));
        assert_eq!(request.arguments.get(), "{}");
        assert_eq!(request.source, None);
    }
}
