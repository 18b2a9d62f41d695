//! Why there is no token, and what to do about it.

use super::{CallbackError, TokenStoreError};

/// Why there is no token. Nothing in it is a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A person has to consent, and none is there.
    #[error("it wants to know who asks: run `toolyard servers login {server}`")]
    LoginNeeded {
        /// The server.
        server: String,
    },
    /// The token does not allow what was asked for, and no person is there who could allow more.
    #[error(
        "the token of {server} does not allow this (wanted: {scopes}): run `toolyard servers login {server} --scope \"{scopes}\"`"
    )]
    ScopeNeeded {
        /// The server.
        server: String,
        /// What the server wants.
        scopes: String,
    },
    /// What the server wants was asked for already, and it still says no.
    #[error("{server} refuses a token that was asked for {scopes}: its operator must allow it")]
    StillRefused {
        /// The server.
        server: String,
        /// What was asked for.
        scopes: String,
    },
    /// Consent was asked for too often in too short a time.
    #[error(
        "authorization for {server} was tried {times} times within minutes and is still refused: wait, then run `toolyard servers login {server}`"
    )]
    TooOften {
        /// The server.
        server: String,
        /// How often.
        times: usize,
    },
    /// An address of the flow must not be used.
    #[error("the address {url} is not used for authorization: {reason}")]
    Address {
        /// The address, without its query.
        url: String,
        /// Why.
        reason: &'static str,
    },
    /// Nothing could be found out about the authorization server.
    #[error("its authorization server could not be found: {0}")]
    Discovery(String),
    /// The server names another issuer than the one that knows the client.
    #[error(
        "{server} now wants tokens of {issuer}, which is not the issuer that knows this client: if that is right, set \
         `oauth.issuer` or run `toolyard servers login {server}`"
    )]
    OtherIssuer {
        /// The server.
        server: String,
        /// The issuer it names.
        issuer: String,
    },
    /// The client could not be registered.
    #[error("the client could not be registered ({0}): register one by hand and set `oauth.client_id`")]
    Registration(String),
    /// The authorization server said no.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// The authorization server could not be asked just now.
    #[error("the authorization server gave no token: {0}")]
    Unavailable(String),
    /// The browser could not be opened.
    #[error("the browser could not be opened: {0}")]
    Browser(String),
    /// The redirect to this machine did not come.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// Tokens could not be read or kept.
    #[error(transparent)]
    Store(#[from] TokenStoreError),
    /// The key of the client is not usable.
    #[error("the key of the client is not usable: {0}")]
    Key(&'static str),
}
