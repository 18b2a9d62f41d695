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
    /// The name of a server has other characters, is too long or is reserved.
    ///
    /// Remedy: use the suggested name.
    #[error("`{name}` is not a valid server name: {problem}; try `{suggestion}`")]
    InvalidName {
        /// A safe preview of the name.
        name: String,
        problem: NameError,
        suggestion: String,
    },
    /// A server in the settings says neither how to start it nor where it is.
    ///
    /// Remedy: set `command` (and `args`), or `url`, in `[servers.NAME]`.
    #[error("server `{server}` has neither `command` nor `url`: set the program to start or the URL")]
    NoTransport { server: String },
    /// Two settings of a server exclude each other.
    ///
    /// Remedy: remove one of the two settings in `[servers.NAME]`.
    #[error("server `{server}`: {field} conflicts with `{other_field}`: remove one of them")]
    Conflict { server: String, field: &'static str, other_field: &'static str },
    /// A setting of a server has an invalid value; the text says why.
    ///
    /// Remedy: correct the setting in `[servers.NAME]`; all keys are in the settings reference.
    #[error("server `{server}`: {field} {problem}")]
    InvalidValue {
        server: String,
        /// The field: `url`, `env.TOKEN`.
        field: String,
        problem: &'static str,
    },
    /// A setting of a server refers to a variable, secret or file in a wrong form; the text says how.
    ///
    /// Remedy: write `${VAR}`, `${VAR:-default}`, `${secret:NAME}` or `${file:/PATH}`, and `$$` for a dollar sign.
    #[error("server `{server}`: {field}: {problem}")]
    InvalidReference { server: String, field: String, problem: ReferenceError },
    /// A setting of a server refers to a variable, secret or file that does not exist where Toolyard runs.
    ///
    /// Remedy: set the variable in the environment of Toolyard, store the secret with `toolyard secrets set NAME`, or
    /// create the file; `toolyard doctor` lists what is missing.
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
