//! Configuration errors; they never contain configured values.

use super::{
    NameError, ReferenceError,
    redacted::safe_preview,
    suggest_server_name,
    template::{STORED_SECRET_PREFIX, describe_absence, describe_variable},
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
    #[error("server `{server}` needs {} ({field}), which {}", describe_variable(.variable), describe_absence(.variable))]
    UnsetVariable {
        server: String,
        /// The environment variable, or a stored secret or file with its prefix.
        variable: String,
        /// The field: `headers.Authorization`.
        field: String,
    },
}

impl ConfigError {
    /// The variable without a value, a stored secret or file with its prefix.
    pub fn missing_variable(&self) -> Option<&str> {
        match self {
            Self::UnsetVariable { variable, .. } => Some(variable),
            _ => None,
        }
    }

    /// How to provide a value that is missing, given why it is; none for what the message says already.
    pub fn explain_missing(&self, reason: impl Fn(&str) -> Option<String>) -> Option<String> {
        let variable = self.missing_variable()?;
        let set_secret =
            || Some(format!("run `toolyard secrets set {}`", variable.strip_prefix(STORED_SECRET_PREFIX)?));
        reason(variable).or_else(set_secret)
    }

    pub(super) fn invalid_name(name: &str, problem: NameError) -> Self {
        Self::InvalidName { name: safe_preview(name), problem, suggestion: suggest_server_name(name) }
    }
}
