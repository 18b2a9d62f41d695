//! Why a call failed: what, on which tool and source, whether it may have taken effect, and what to do.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::{RawJson, SourceId, redact};

/// A failed call, as a person or a model should hear of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError(Box<Facts>);

#[derive(Debug, Clone, PartialEq)]
struct Facts {
    kind: ErrorKind,
    message: String,
    tool: Option<String>,
    source: Option<SourceId>,
    hint: Option<String>,
    problems: Vec<ArgumentProblem>,
    retryable: Option<bool>,
    attempts: u32,
    raw: Option<RawFailure>,
}

/// A failure as the server sent it, byte for byte, for whoever passes it on.
#[derive(Debug, Clone, PartialEq)]
pub enum RawFailure {
    /// A result that says that the tool failed.
    Result(RawJson),
    /// An error of JSON-RPC: code, message, data.
    Error(RawJson),
}

/// The classes of failure that callers act on differently.
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
    /// A rule or a person said no; nothing was called.
    Refused,
    /// The source could not be reached; nothing was sent.
    Unavailable,
    /// The source is left alone after repeated failures; nothing was sent.
    CircuitOpen,
    /// The tool answered that it failed.
    Failed,
    /// No answer within the deadline.
    Timeout,
    /// The connection broke after the call was sent.
    Lost,
    /// The call may have taken effect and must not be repeated by anyone but a person.
    OutcomeUnknown,
    /// A fault of our own.
    Internal,
}

/// One place in the arguments that does not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentProblem {
    /// JSON Pointer of the place; empty for the arguments as a whole.
    pub path: String,
    /// What is wrong there.
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
    /// A failure of this kind, described by a lowercase fragment. Errors travel into logs, journals and answers, and
    /// tools put into them what they were given: secrets are taken out here, once for all.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            kind,
            message: without_secrets(message.into()),
            tool: None,
            source: None,
            hint: None,
            problems: Vec::new(),
            retryable: None,
            attempts: 0,
            raw: None,
        }))
    }

    /// The tool answered that it failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The arguments do not fit.
    pub fn invalid_arguments(problems: Vec<ArgumentProblem>) -> Self {
        let listed: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let mut error =
            Self::new(ErrorKind::InvalidArguments, format!("invalid arguments: {}", listed.join("; ")));
        error.0.problems = problems;
        error
    }

    /// Says on which tool it happened, unless that is known already.
    #[must_use]
    pub fn on_tool(mut self, tool: &str) -> Self {
        self.0.tool.get_or_insert_with(|| tool.to_owned());
        self
    }

    /// Says on which source it happened, unless that is known already.
    #[must_use]
    pub fn on_source(mut self, source: &SourceId) -> Self {
        self.0.source.get_or_insert_with(|| source.clone());
        self
    }

    /// Adds what to do about it. A hint that is there already stays in front.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        let hint = without_secrets(hint.into());
        self.0.hint = Some(match self.0.hint.take() {
            Some(first) => format!("{first} · {hint}"),
            None => hint,
        });
        self
    }

    /// The tool knows better than its error's kind whether another attempt can help.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = Some(retryable);
        self
    }

    /// The same failure with what the server sent. It is passed on and never kept.
    #[must_use]
    pub fn with_raw(mut self, raw: RawFailure) -> Self {
        self.0.raw = Some(raw);
        self
    }

    /// What the server sent, where it was the server that failed.
    pub fn raw(&self) -> Option<&RawFailure> {
        self.0.raw.as_ref()
    }

    /// How many calls were made before giving up.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The same failure, now known to leave the outcome open. Whatever the tool said of another attempt is void.
    #[must_use]
    pub fn outcome_unknown(mut self) -> Self {
        self.0.kind = ErrorKind::OutcomeUnknown;
        self.0.retryable = Some(false);
        self.0.message.push_str(
            " (the call may have taken effect: it is not known to be idempotent, so it was not repeated)",
        );
        self
    }

    /// The class of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What failed, without tool and source.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The tool it happened on.
    pub fn tool(&self) -> Option<&str> {
        self.0.tool.as_deref()
    }

    /// The source it happened on.
    pub fn source_id(&self) -> Option<&SourceId> {
        self.0.source.as_ref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// How many calls were made.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Whether it is certain that the tool did nothing.
    pub fn had_no_effect(&self) -> bool {
        use ErrorKind as K;
        match self.0.kind {
            K::UnknownTool | K::UnknownSource | K::UnknownCapability | K::InvalidArguments => true,
            K::Refused | K::Unavailable | K::CircuitOpen => true,
            K::Failed | K::Timeout | K::Lost | K::OutcomeUnknown | K::Internal => false,
        }
    }

    /// Whether the same call may succeed later, as far as the failure goes (whether it is safe is another question).
    pub fn retryable(&self) -> bool {
        use ErrorKind as K;
        self.0.retryable.unwrap_or(matches!(self.0.kind, K::Unavailable | K::Timeout | K::Lost))
    }

    /// Whether it speaks against the source as a whole, and not only against this call.
    pub fn blames_source(&self) -> bool {
        use ErrorKind as K;
        matches!(self.0.kind, K::Unavailable | K::Timeout | K::Lost | K::Internal)
    }
}

fn without_secrets(text: String) -> String {
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
    fn an_error_says_what_where_and_what_to_do() {
        let error = ToolError::new(ErrorKind::Timeout, "did not answer within 30 s")
            .on_tool("search")
            .on_source(&"jira".into())
            .with_hint("raise the limit with --timeout");
        assert_eq!(error.to_string(), "search (jira): did not answer within 30 s");
        assert!(error.retryable() && !error.had_no_effect());
        assert_eq!(error.hint(), Some("raise the limit with --timeout"));
    }

    #[test]
    fn the_first_to_name_tool_and_source_is_right() {
        let error = ToolError::failed("x").on_tool("inner").on_tool("outer");
        assert_eq!(error.tool(), Some("inner"));
    }

    #[test]
    fn a_tool_may_say_that_another_attempt_helps() {
        assert!(!ToolError::failed("rate limited").retryable());
        assert!(ToolError::failed("rate limited").with_retryable(true).retryable());
    }

    #[test]
    fn an_unknown_outcome_is_never_worth_another_attempt() {
        let lost = ToolError::new(ErrorKind::Lost, "lost").with_retryable(true);
        assert!(!lost.outcome_unknown().retryable());
    }
}
