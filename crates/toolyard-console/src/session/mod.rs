//! Sessions of visitors: signed session cookies, CSRF tokens, one-time codes and roles.

mod codes;
mod keys;

pub use codes::CodeError;
pub(crate) use codes::SignInCodes;
pub(crate) use keys::{SESSION_COOKIE, SESSION_SECONDS, Session, SessionKeys};

/// The rights of a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Signed in with the gateway's access token: may do what the HTTP API lets every client do.
    Caller,
    /// Signed in with a one-time link from a terminal of the gateway's machine: may also decide for its operator.
    Operator,
}
