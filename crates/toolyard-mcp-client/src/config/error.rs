//! Configuration errors; they never contain configured values.

use super::{NameError, ReferenceError};

/// Why the configuration of a server is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not a valid server name.
    #[error("`{name}` is not a valid server name: {problem}; try `{suggestion}`")]
    InvalidName {
        /// A safe preview of the name.
        name: String,
        /// What is wrong with it.
        problem: NameError,
        /// A valid name.
        suggestion: String,
    },
    /// Neither a program nor a URL is set.
    #[error("server `{server}` has neither `command` nor `url`: set the program to start or the URL")]
    NoTransport {
        /// The server.
        server: String,
    },
    /// Two fields exclude each other.
    #[error("server `{server}`: {field} conflicts with `{beside}`: remove one of them")]
    Conflict {
        /// The server.
        server: String,
        /// The field.
        field: &'static str,
        /// The field it conflicts with.
        beside: &'static str,
    },
    /// An invalid value.
    #[error("server `{server}`: {field} {problem}")]
    InvalidValue {
        /// The server.
        server: String,
        /// The field: `url`, `env.TOKEN`.
        field: String,
        /// What is wrong, and a hint.
        problem: &'static str,
    },
    /// An invalid reference to a variable.
    #[error("server `{server}`: {field}: {problem}")]
    InvalidReference {
        /// The server.
        server: String,
        /// The field.
        field: String,
        /// What is wrong.
        problem: ReferenceError,
    },
}
