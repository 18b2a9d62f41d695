//! How a command failed: what is said, what is hinted, and the exit code.

use std::process::ExitCode;

use toolyard::{Error, SettingsError};
use toolyard_core::{ErrorKind, JournalError, ToolError};
use toolyard_store::StoreError;
use toolyard_tools::skill::TrustError;

use crate::output::Output;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: Code,
}

/// The documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Failed = 1,
    BadUse = 2,
    Unreachable = 3,
    Refused = 4,
    Unknown = 5,
    /// A run waits for a person.
    Waits = 6,
    /// Stopped by ctrl-c: what shells use for it.
    Interrupted = 130,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code alone: the facts were printed as data.
    pub(crate) fn silent(mut self) -> Self {
        self.message.clear();
        self
    }

    /// Whether it failed like this.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn tell(&self, output: &Output) {
        if !self.message.is_empty() {
            output.failure(&self.message, self.hint.as_deref(), self.code as u8);
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        use ErrorKind as K;
        let code = match error.kind() {
            K::UnknownTool | K::UnknownSource | K::UnknownCapability | K::InvalidArguments => Code::BadUse,
            K::Unavailable | K::CircuitOpen | K::Timeout | K::Lost => Code::Unreachable,
            K::Refused => Code::Refused,
            K::OutcomeUnknown => Code::Unknown,
            _ => Code::Failed,
        };
        let mut hints: Vec<&str> = error.hint().into_iter().collect();
        if error.kind() == K::UnknownTool {
            hints.push("list what there is: toolyard tools list");
        }
        let failure = Self::new(code, error.to_string());
        if hints.is_empty() { failure } else { failure.with_hint(hints.join(" · ")) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Settings(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Call(error) => error.into(),
            Error::Agents(error) => error.into(),
            Error::Agent(error) => (*error).into(),
            other => Self::new(Code::Failed, other.to_string()),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new(Code::BadUse, error.to_string())
            .with_hint("schema/toolyard.schema.json describes toolyard.toml; `toolyard doctor` checks it")
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::new(Code::Failed, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = if error.is_away() { Code::Unreachable } else { Code::Failed };
        let failure = Self::new(code, error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let code = match error {
            JournalError::UnknownRun(_) | JournalError::NotWaiting { .. } => Code::BadUse,
            _ => Code::Failed,
        };
        Self::new(code, error.to_string())
            .with_hint("see what there is: toolyard runs list · toolyard runs unknown")
    }
}
