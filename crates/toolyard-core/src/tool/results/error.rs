//! The error of a failed call: what failed, on which tool and source, whether it may have had an effect, and a hint.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::sign_in::SignInLink;
use crate::{RawJson, SourceId, redact};

/// A failed call. Secrets in its message and hint are redacted.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct ToolError(pub(super) Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inner {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    pub(super) tool: Option<String>,
    pub(super) source: Option<SourceId>,
    /// All hints.
    pub(super) hint: Option<String>,
    /// The hints that help a caller, without those for the operator.
    pub(super) caller_hint: Option<String>,
    pub(super) problems: Vec<ArgumentProblem>,
    pub(super) retryable: Option<bool>,
    pub(super) source_signal: Option<SourceSignal>,
    pub(super) retry_after: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) raw: Option<RawToolError>,
    pub(super) sign_in: Option<SignInLink>,
    /// See [`ToolError::mark_never_sent`].
    pub(super) never_sent: bool,
}

/// A failure exactly as the server sent it, to pass on to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum RawToolError {
    /// A tool result that is marked as an error.
    ToolResult(RawJson),
    /// An error of the protocol: code, message, data.
    Protocol(RawJson),
}

/// What a failed call says about its source as a whole. The circuit breaker counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceSignal {
    /// The source responds: only this call failed.
    Healthy,
    /// The source does not work; other calls would fail too.
    Faulty,
    /// Nothing: the source was not called.
    Unknown,
}

/// Classes of failures that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// No tool has this name.
    UnknownTool,
    /// No source has this id, or it has no such tool.
    UnknownSource,
    /// No tool has this capability.
    UnknownCapability,
    /// The arguments do not fit the tool's schema; nothing was called.
    InvalidArguments,
    /// A rule or the user denied the call; nothing was called.
    Refused,
    /// The tool awaits approval because its definition is new or changed; nothing was called.
    Quarantined,
    /// The source could not be reached; nothing was sent.
    Unavailable,
    /// The settings require an audit record of every call, and none can be kept; nothing was sent.
    AuditUnavailable,
    /// A quota of the caller, the agent or the tool is used up; nothing was sent.
    QuotaExceeded,
    /// The source has no tokens of the caller, who must sign in there first; nothing was sent.
    SignInRequired,
    /// The process that held the session with a stateful server is gone, and so is what the server remembered for the caller.
    /// Nothing was sent; the next call begins a new session.
    SessionLost,
    /// The circuit breaker is open after repeated failures; nothing was sent.
    CircuitOpen,
    /// The tool reported a failure.
    Failed,
    /// No response within the deadline.
    Timeout,
    /// The call was sent, but its response got lost: the connection broke or the response was unusable.
    ResponseLost,
    /// The call may have had an effect, and only the user may repeat it.
    OutcomeUnknown,
    /// A bug in Toolyard or in a tool that panicked.
    Internal,
}

impl ErrorKind {
    /// The name in snake case, as in serialized form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::UnknownSource => "unknown_source",
            Self::UnknownCapability => "unknown_capability",
            Self::InvalidArguments => "invalid_arguments",
            Self::Refused => "refused",
            Self::Quarantined => "quarantined",
            Self::Unavailable => "unavailable",
            Self::AuditUnavailable => "audit_unavailable",
            Self::QuotaExceeded => "quota_exceeded",
            Self::SignInRequired => "sign_in_required",
            Self::SessionLost => "session_lost",
            Self::CircuitOpen => "circuit_open",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::ResponseLost => "response_lost",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Internal => "internal",
        }
    }
}

/// A value in the arguments that violates the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentProblem {
    /// JSON Pointer to the value; empty for the arguments as a whole.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl ToolError {
    /// A failure of this kind with a lowercase message. Redacts secrets, because errors end up in logs, journals and answers,
    /// and tools often quote their arguments.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: redacted(message.into()),
            tool: None,
            source: None,
            hint: None,
            caller_hint: None,
            problems: Vec::new(),
            retryable: None,
            source_signal: None,
            retry_after: None,
            attempts: 0,
            raw: None,
            sign_in: None,
            never_sent: false,
        }))
    }

    /// The tool reported a failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The arguments violate the schema.
    pub fn invalid_arguments(problems: Vec<ArgumentProblem>) -> Self {
        let listed: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let mut error =
            Self::new(ErrorKind::InvalidArguments, format!("invalid arguments: {}", listed.join("; ")));
        error.0.problems = problems;
        error
    }

    /// Sets the tool, unless it is already set.
    pub fn on_tool(mut self, tool: &str) -> Self {
        self.0.tool.get_or_insert_with(|| tool.to_owned());
        self
    }

    /// Sets the source, unless it is already set.
    pub fn on_source(mut self, source: &SourceId) -> Self {
        self.0.source.get_or_insert_with(|| source.clone());
        self
    }

    /// Adds a hint after those already there.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        let hint = redacted(hint.into());
        push_hint(&mut self.0.caller_hint, &hint);
        push_hint(&mut self.0.hint, &hint);
        self
    }

    /// Adds a hint that only the operator can follow, such as a command line or a setting. Clients do not receive it: a
    /// model would tell its user to run commands, or try them itself.
    pub fn with_operator_hint(mut self, hint: impl Into<String>) -> Self {
        push_hint(&mut self.0.hint, &redacted(hint.into()));
        self
    }

    /// Adds a hint for clients and models only, where the operator has a hint with the command to run.
    pub fn with_caller_hint(mut self, hint: impl Into<String>) -> Self {
        push_hint(&mut self.0.caller_hint, &redacted(hint.into()));
        self
    }

    /// Sets whether another attempt can help, regardless of the kind.
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = Some(retryable);
        self
    }

    /// Sets what the failure says about the source, regardless of the kind.
    pub fn with_source_signal(mut self, signal: SourceSignal) -> Self {
        self.0.source_signal = Some(signal);
        self
    }

    /// Sets how long to wait before another attempt.
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// How long to wait before another attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Attaches what the server sent. It is passed on but never stored.
    pub fn with_raw(mut self, raw: RawToolError) -> Self {
        self.0.raw = Some(raw);
        self
    }

    /// What the server sent, if the failure is the server's.
    pub fn raw(&self) -> Option<&RawToolError> {
        self.0.raw.as_ref()
    }

    /// Sets where the caller can sign in. [`ToolError::caller_hint`] says so; the other texts of an error, which reach logs, do not.
    pub fn with_sign_in(mut self, link: SignInLink) -> Self {
        self.0.sign_in = Some(link);
        self
    }

    /// Where the caller can sign in, if that is what the call needs.
    pub fn sign_in(&self) -> Option<&SignInLink> {
        self.0.sign_in.as_ref()
    }

    /// Sets how many calls were made before giving up.
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// Marks the outcome as unknown, so that the call is not retried.
    pub fn outcome_unknown(mut self) -> Self {
        self.0.kind = ErrorKind::OutcomeUnknown;
        self.0.retryable = Some(false);
        self.0.message.push_str(
            " (the call may have taken effect: it is not known to be idempotent, so it was not repeated)",
        );
        self
    }

    /// Marks the error of a call of which nothing left this process, so that the call may be retried whatever its tool does. Only
    /// the code that would have sent it can tell. So the mark is neither serialized nor among the
    /// [`ToolErrorParts`](crate::ToolErrorParts), and no server and no other process can set it.
    pub fn mark_never_sent(mut self) -> Self {
        self.0.never_sent = true;
        self
    }

    /// Removes the mark of [`Self::mark_never_sent`], which is about one attempt only. Returns whether it was set.
    pub fn take_never_sent(&mut self) -> bool {
        std::mem::take(&mut self.0.never_sent)
    }

    /// The class of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What failed, without tool and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The tool that was called.
    pub fn tool(&self) -> Option<&str> {
        self.0.tool.as_deref()
    }

    /// The source that was called.
    pub fn source_id(&self) -> Option<&SourceId> {
        self.0.source.as_ref()
    }

    /// How to resolve it, for the operator.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// How to resolve it, for a client or model that made the call: without the hints for the operator.
    pub fn caller_hint(&self) -> Option<&str> {
        self.0.sign_in.as_ref().map(SignInLink::instruction).or(self.0.caller_hint.as_deref())
    }

    /// How many calls were made.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Whether the call certainly had no effect.
    pub fn had_no_effect(&self) -> bool {
        use ErrorKind as K;
        match self.0.kind {
            K::UnknownTool | K::UnknownSource | K::UnknownCapability | K::InvalidArguments => true,
            K::Refused | K::Quarantined => true,
            K::Unavailable | K::AuditUnavailable | K::QuotaExceeded => true,
            K::SignInRequired | K::SessionLost | K::CircuitOpen => true,
            K::Failed | K::Timeout | K::ResponseLost | K::OutcomeUnknown | K::Internal => false,
        }
    }

    /// Whether the same call may succeed later. Does not tell whether repeating it is safe.
    pub fn retryable(&self) -> bool {
        use ErrorKind as K;
        self.0.retryable.unwrap_or(matches!(
            self.0.kind,
            K::Unavailable | K::AuditUnavailable | K::QuotaExceeded | K::Timeout | K::ResponseLost
        ))
    }

    /// What the failure says about the source as a whole.
    pub fn source_signal(&self) -> SourceSignal {
        use ErrorKind as K;
        self.0.source_signal.unwrap_or(match self.0.kind {
            K::Unavailable | K::Timeout | K::ResponseLost | K::Internal => SourceSignal::Faulty,
            K::Failed | K::InvalidArguments | K::OutcomeUnknown | K::SignInRequired => SourceSignal::Healthy,
            // The source was not called.
            K::UnknownTool
            | K::UnknownSource
            | K::UnknownCapability
            | K::Refused
            | K::Quarantined
            | K::AuditUnavailable
            | K::QuotaExceeded
            | K::SessionLost
            | K::CircuitOpen => SourceSignal::Unknown,
        })
    }

    /// Whether the failure counts against the source as a whole, not only against this call.
    pub fn is_source_fault(&self) -> bool {
        self.source_signal() == SourceSignal::Faulty
    }
}

fn push_hint(hints: &mut Option<String>, hint: &str) {
    match hints {
        Some(hints) => hints.extend([" · ", hint]),
        None => *hints = Some(hint.to_owned()),
    }
}

pub(super) fn redacted(text: String) -> String {
    match redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.tool, &self.0.source) {
            (Some(tool), Some(source)) => write!(f, "{tool} ({source}): ")?,
            (Some(tool), None) => write!(f, "{tool}: ")?,
            (None, Some(source)) => write!(f, "{source}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ToolError {}

impl Serialize for ToolError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.0.kind)?;
        map.serialize_entry("tool", &self.0.tool)?;
        map.serialize_entry("source", &self.0.source)?;
        map.serialize_entry("retryable", &self.retryable())?;
        map.serialize_entry("attempts", &self.0.attempts)?;
        if let Some(delay) = self.0.retry_after {
            map.serialize_entry("retry_after_seconds", &delay.as_secs_f64())?;
        }
        if !self.0.problems.is_empty() {
            map.serialize_entry("problems", &self.0.problems)?;
        }
        map.serialize_entry("hint", &self.0.hint)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_tool_source_message_and_hint() {
        let error = ToolError::new(ErrorKind::Timeout, "did not answer within 30 s")
            .on_tool("search")
            .on_source(&"jira".into())
            .with_hint("ask for less")
            .with_operator_hint("raise the limit with --timeout")
            .with_caller_hint("the operator can raise the limit");
        assert_eq!(error.to_string(), "search (jira): did not answer within 30 s");
        assert!(error.retryable() && !error.had_no_effect());
        assert_eq!(error.hint(), Some("ask for less · raise the limit with --timeout"));
        assert_eq!(error.caller_hint(), Some("ask for less · the operator can raise the limit"));
    }

    #[test]
    fn only_the_caller_gets_the_link_of_a_sign_in() {
        let link = SignInLink::new("notes", "5e1f", "https://tools.example/sign-in/0123abcd".to_owned());
        let error = ToolError::new(ErrorKind::SignInRequired, "server `notes` requires a sign-in")
            .with_operator_hint("the caller must sign in")
            .with_sign_in(link);
        assert!(error.caller_hint().unwrap().contains("https://tools.example/sign-in/0123abcd"));
        let logged =
            format!("{error} {error:?} {:?} {}", error.hint(), serde_json::to_string(&error).unwrap());
        assert!(!logged.contains("0123abcd"), "{logged}");
        assert!(error.had_no_effect() && !error.retryable() && !error.is_source_fault());
    }

    #[test]
    fn the_first_tool_and_source_stay() {
        let error = ToolError::failed("x").on_tool("inner").on_tool("outer");
        assert_eq!(error.tool(), Some("inner"));
    }

    #[test]
    fn a_tool_may_declare_its_failure_retryable() {
        assert!(!ToolError::failed("rate limited").retryable());
        assert!(ToolError::failed("rate limited").with_retryable(true).retryable());
    }

    #[test]
    fn a_source_may_be_cleared_of_a_failure() {
        let lost = || ToolError::new(ErrorKind::ResponseLost, "lost");
        assert!(lost().is_source_fault());
        for signal in [SourceSignal::Healthy, SourceSignal::Unknown] {
            assert!(!lost().with_source_signal(signal).is_source_fault());
        }
        assert!(!ToolError::failed("no").is_source_fault());
    }

    #[test]
    fn an_unknown_outcome_is_never_retryable() {
        let lost = ToolError::new(ErrorKind::ResponseLost, "lost").with_retryable(true);
        assert!(!lost.outcome_unknown().retryable());
    }
}
