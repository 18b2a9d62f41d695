//! Configuration errors; they never contain configured values.

use super::{NameError, ReferenceError, redacted::safe_preview, suggest_server_name};

/// Why the configuration of a server is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum ConfigError {
    #[error("`{name}` is not a valid server name: {problem}; try `{suggestion}`")]
    InvalidName {
        /// A safe preview of the name.
        name: String,
        problem: NameError,
        suggestion: String,
    },
    #[error("server `{server}` has neither `command` nor `url`: set the program to start or the URL")]
    NoTransport { server: String },
    #[error("server `{server}`: {field} conflicts with `{other_field}`: remove one of them")]
    Conflict { server: String, field: &'static str, other_field: &'static str },
    #[error("server `{server}`: {field} {problem}")]
    InvalidValue {
        server: String,
        /// The field: `url`, `env.TOKEN`.
        field: String,
        problem: &'static str,
    },
    #[error("server `{server}`: {field}: {problem}")]
    InvalidReference { server: String, field: String, problem: ReferenceError },
    #[error("server `{server}` needs the environment variable `{variable}` ({field}), which is not set")]
    UnsetVariable {
        server: String,
        variable: String,
        /// The field: `headers.Authorization`.
        field: String,
    },
}

impl ConfigError {
    pub(super) fn invalid_name(name: &str, problem: NameError) -> Self {
        Self::InvalidName { name: safe_preview(name), problem, suggestion: suggest_server_name(name) }
    }
}
