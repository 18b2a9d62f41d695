//! Authorization errors.

use super::{CallbackError, TokenStoreError};

/// Why no token is available. Contains no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The user must log in, and no browser is available.
    #[error("server `{server}` requires authentication: run `toolyard servers login {server}`")]
    LoginRequired {
        /// The server.
        server: String,
    },
    /// The token lacks a scope, and no browser is available.
    #[error(
        "the token for server `{server}` lacks the scopes {scopes}: run `toolyard servers login {server} --scope \"{scopes}\"`"
    )]
    InsufficientScope {
        /// The server.
        server: String,
        /// The required scopes.
        scopes: String,
    },
    /// The required scopes were requested already.
    #[error(
        "server `{server}` refuses a token with the requested scopes {scopes}: its operator must grant access"
    )]
    ScopeRefused {
        /// The server.
        server: String,
        /// The requested scopes.
        scopes: String,
    },
    /// Too many attempts in a short time.
    #[error(
        "authorization for server `{server}` failed {times} times within minutes: wait, then run `toolyard servers login {server}`"
    )]
    TooManyAttempts {
        /// The server.
        server: String,
        /// The number of attempts.
        times: usize,
    },
    /// The flow leads to a forbidden address.
    #[error("refusing to use {url} for authorization: {reason}")]
    Address {
        /// The URL without its query.
        url: String,
        /// Why.
        reason: &'static str,
    },
    /// The authorization server could not be discovered.
    #[error("failed to discover the authorization server: {0}")]
    Discovery(String),
    /// The server names another issuer than the one the client is registered with.
    #[error(
        "server `{server}` now requires tokens of {issuer}, where this client is not registered: if that is expected, set \
         `oauth.issuer` or run `toolyard servers login {server}`"
    )]
    IssuerMismatch {
        /// The server.
        server: String,
        /// The issuer it names.
        issuer: String,
    },
    /// The client could not be registered.
    #[error("failed to register the client ({0}): register one manually and set `oauth.client_id`")]
    Registration(String),
    /// The authorization server refused.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// The authorization server could not be reached or returned no token.
    #[error("the authorization server returned no token: {0}")]
    Unavailable(String),
    /// The browser could not be opened.
    #[error("failed to open the browser: {0}")]
    Browser(String),
    /// No authorization response arrived.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// Tokens could not be loaded or stored.
    #[error(transparent)]
    Store(#[from] TokenStoreError),
    /// The key of the client is invalid.
    #[error("the key of the client is invalid: {0}")]
    Key(&'static str),
}
