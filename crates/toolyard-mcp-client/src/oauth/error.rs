//! Authorization errors.

use super::{CallbackError, CallerTokenError, TokenStoreError};

/// Why no token is available. Contains no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum OAuthError {
    #[error("server `{server}` requires authentication")]
    LoginRequired { server: String },
    #[error("the token for server `{server}` lacks the scopes {scopes}")]
    InsufficientScope { server: String, scopes: String },
    #[error(
        "server `{server}` refuses a token with the requested scopes {scopes}: its operator must grant access"
    )]
    ScopeRefused { server: String, scopes: String },
    #[error("authorization for server `{server}` failed {times} times within minutes")]
    TooManyAttempts { server: String, times: usize },
    #[error("refusing to use {url} for authorization: {reason}")]
    Address {
        /// The URL without its query.
        url: String,
        reason: &'static str,
    },
    #[error("failed to discover the authorization server: {0}")]
    Discovery(String),
    #[error("server `{server}` now requires tokens of {issuer}, where this client is not registered")]
    IssuerMismatch { server: String, issuer: String },
    #[error("failed to register the client ({0}): register one manually and set `oauth.client_id`")]
    Registration(String),
    #[error("the authorization server refused: {0}")]
    Refused(String),
    #[error("the authorization server returned no token: {0}")]
    Unavailable(String),
    #[error("failed to open the browser: {0}")]
    Browser(String),
    #[error(transparent)]
    Callback(#[from] CallbackError),
    #[error(transparent)]
    Store(#[from] TokenStoreError),
    #[error("the sign-in to server `{server}` was removed while it was in progress")]
    SignInRemoved { server: String },
    #[error(transparent)]
    CallerToken(#[from] CallerTokenError),
    #[error("the key of the client is invalid: {0}")]
    Key(&'static str),
}
