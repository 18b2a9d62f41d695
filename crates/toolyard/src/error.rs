//! A failed command: message, hint and exit code.

use std::{fmt::Display, path::Path, process::ExitCode};

use toolyard::{AgentsError, ChatError, Error, ModelsError, SettingsError};
use toolyard_agent::AgentError;
use toolyard_core::{ErrorKind, JournalError, StorageError, ToolError};
use toolyard_mcp_client::CacheError;
use toolyard_model::{ModelError, ModelErrorKind};
use toolyard_store::StoreError;
use toolyard_tools::skill::TrustError;

use crate::terminal::Output;

#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    hint: Option<String>,
    status: ExitStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    Failed = 1,
    Usage = 2,
    /// A server, model or store could not be reached, or did not answer in time.
    Unreachable = 3,
    /// The user or a rule refused.
    Denied = 4,
    OutcomeUnknown = 5,
    /// A run is suspended until a call is approved.
    AwaitingApproval = 6,
    /// The shells' code for SIGINT.
    Interrupted = 130,
}

impl CliError {
    pub(crate) fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, status }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message)
    }

    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Denied, message)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Unreachable, message)
    }

    /// `failed to ACTION FILE: ERROR`.
    pub(crate) fn file(action: &str, file: &Path, error: impl Display) -> Self {
        Self::failed(format!("failed to {action} {}: {error}", file.display()))
    }

    /// There is no store.
    pub(crate) fn no_store() -> Self {
        Self::failed("no store is available: the default data folder is not writable")
            .with_hint("set `store` in toolyard.toml")
    }

    /// A failure of the store, with what to do about it.
    #[expect(clippy::needless_pass_by_value, reason = "map_err passes errors by value")]
    pub(crate) fn store(error: StorageError) -> Self {
        Self::failed(format!("the store failed: {error}")).with_hint("check it: toolyard store check")
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with_optional_hint(Some(hint))
    }

    pub(crate) fn with_optional_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Keeps the exit code only: the details were already printed.
    pub(crate) fn without_message(mut self) -> Self {
        self.message.clear();
        self
    }

    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the error, unless it has no message.
    pub(crate) fn print(&self, output: &Output) {
        if !self.message.is_empty() {
            output.failure(&self.message, self.hint.as_deref(), self.status as u8);
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status as u8)
    }
}

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> Self {
        use ErrorKind as K;
        let status = match error.kind() {
            K::UnknownTool | K::UnknownSource | K::UnknownCapability | K::InvalidArguments => {
                ExitStatus::Usage
            }
            K::Unavailable
            | K::AuditUnavailable
            | K::QuotaExceeded
            | K::SignInRequired
            | K::SessionLost
            | K::CircuitOpen
            | K::Timeout
            | K::ResponseLost => ExitStatus::Unreachable,
            K::Refused | K::Quarantined => ExitStatus::Denied,
            K::OutcomeUnknown => ExitStatus::OutcomeUnknown,
            _ => ExitStatus::Failed,
        };
        let mut hints: Vec<&str> = error.hint().into_iter().collect();
        if error.kind() == K::UnknownTool {
            hints.push("list all tools: toolyard tools list");
        }
        let hint = (!hints.is_empty()).then(|| hints.join(" · "));
        Self::new(status, error.to_string()).with_optional_hint(hint)
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        match error {
            Error::Settings(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Storage(error) => error.into(),
            Error::Call(error) => error.into(),
            Error::Agents(error) => error.into(),
            Error::Agent(error) => (*error).into(),
            Error::Policy(error) => {
                Self::usage(error.to_string()).with_hint("check them: toolyard policy check")
            }
            Error::AuditWithoutStore => Self::failed(error.to_string())
                .with_hint("set `store` in toolyard.toml, or make its folder writable"),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        Self::usage(error.to_string())
            .with_hint("all settings: toolyard settings schema; check them: toolyard doctor")
    }
}

impl From<TrustError> for CliError {
    fn from(error: TrustError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let status =
            if error.is_postgres_open_failure() { ExitStatus::Unreachable } else { ExitStatus::Failed };
        Self::new(status, error.to_string()).with_optional_hint(error.hint())
    }
}

impl From<StorageError> for CliError {
    fn from(error: StorageError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<CacheError> for CliError {
    fn from(error: CacheError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        let status = match error {
            JournalError::UnknownRun(_) | JournalError::NotResolvable { .. } => ExitStatus::Usage,
            _ => ExitStatus::Failed,
        };
        Self::new(status, error.to_string())
            .with_hint("list runs: toolyard runs list · list unknown outcomes: toolyard runs unknown")
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        let status = match &error {
            AgentError::Journal(JournalError::UnknownRun(_))
            | AgentError::Finished(_)
            | AgentError::OtherKind { .. } => ExitStatus::Usage,
            _ => ExitStatus::Failed,
        };
        Self::new(status, error.to_string()).with_optional_hint(error.hint())
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        use ModelErrorKind as K;
        let status = match error.kind {
            K::Unreachable | K::Timeout | K::Busy | K::Unauthorized => ExitStatus::Unreachable,
            _ => ExitStatus::Failed,
        };
        Self::new(status, error.to_string()).with_optional_hint(error.hint)
    }
}

impl From<ChatError> for CliError {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::Name(_) => Self::usage(error.to_string()),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<AgentsError> for CliError {
    fn from(error: AgentsError) -> Self {
        match error {
            AgentsError::Unknown { ref name, .. } => {
                let hint = format!("define it in toolyard.toml: [agents.{name}]");
                Self::usage(error.to_string()).with_hint(hint)
            }
            AgentsError::Models(error) => error.into(),
            other => Self::failed(other.to_string()),
        }
    }
}

/// How to configure the first model.
const FIRST_MODEL_HINT: &str = "\
add a model with `toolyard models add`, or in toolyard.toml:
    [models.local]
    url = \"http://127.0.0.1:11434/v1\"      # Ollama; llama.cpp: http://127.0.0.1:8080/v1
    model = \"qwen2.5:7b\"
  or
    [models.gpt]
    url = \"https://api.openai.com/v1\"
    model = \"gpt-5-mini\"
    key = \"${OPENAI_API_KEY}\"";

impl From<ModelsError> for CliError {
    fn from(error: ModelsError) -> Self {
        let usage = |error: &ModelsError| Self::usage(error.to_string());
        match error {
            ModelsError::NotConfigured => usage(&error).with_hint(FIRST_MODEL_HINT),
            ModelsError::NoDefault { ref known } => {
                let first = known.first().map(String::as_str).unwrap_or_default();
                let hint =
                    format!("choose one with --model, or in toolyard.toml: default_model = \"{first}\"");
                usage(&error).with_hint(hint)
            }
            ModelsError::Settings(error) => error.into(),
            error => usage(&error).with_hint("list models: toolyard models list"),
        }
    }
}
