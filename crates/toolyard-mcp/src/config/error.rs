//! Why a configured server cannot be used; never with a value that was configured.

use super::{NameProblem, ReferenceProblem};

/// Why a configured server cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name that cannot be used.
    #[error("`{name}` is no name for a server: {problem}; `{better}` would be one")]
    Name {
        /// The name, without letters that could hide something.
        name: String,
        /// Why.
        problem: NameProblem,
        /// A name that can be used.
        better: String,
    },
    /// Nothing says how it is reached.
    #[error(
        "server `{server}` has neither `command` nor `url`: give the program to start or the address to ask"
    )]
    NoTransport {
        /// The server.
        server: String,
    },
    /// Something that has no meaning beside something else.
    #[error("server `{server}`: {field} has no meaning beside `{beside}`: take one of them away")]
    Contradiction {
        /// The server.
        server: String,
        /// What is too much.
        field: &'static str,
        /// What it contradicts.
        beside: &'static str,
    },
    /// A value that cannot be used.
    #[error("server `{server}`: {field} {problem}")]
    Value {
        /// The server.
        server: String,
        /// Where it stands: `url`, `env.TOKEN`.
        field: String,
        /// What is wrong and what to do.
        problem: &'static str,
    },
    /// A reference to a variable that cannot be understood.
    #[error("server `{server}`: {field}: {problem}")]
    Reference {
        /// The server.
        server: String,
        /// Where it stands.
        field: String,
        /// What is wrong.
        problem: ReferenceProblem,
    },
}
