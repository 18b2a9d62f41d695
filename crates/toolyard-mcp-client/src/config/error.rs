//! Configuration errors; they never contain configured values.

use super::{
    NameError, ReferenceError,
    redacted::safe_preview,
    suggest_server_name,
    template::{STORED_SECRET_PREFIX, describe_variable},
};

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
    #[error("server `{server}` needs {} ({field}), which is not set", describe_variable(.variable))]
    UnsetVariable {
        server: String,
        /// The environment variable, or a stored secret with its prefix.
        variable: String,
        /// The field: `headers.Authorization`.
        field: String,
    },
}

impl ConfigError {
    /// Whether a stored secret does not exist.
    pub fn is_missing_secret(&self) -> bool {
        matches!(self, Self::UnsetVariable { variable, .. } if variable.starts_with(STORED_SECRET_PREFIX))
    }

    pub(super) fn invalid_name(name: &str, problem: NameError) -> Self {
        Self::InvalidName { name: safe_preview(name), problem, suggestion: suggest_server_name(name) }
    }
}
