//! Authorization errors.

use super::{CallbackError, CallerTokenError, TokenStoreError};

/// Why no token is available. Contains no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum OAuthError {
    /// The server needs a sign-in, and Toolyard has no tokens for it.
    ///
    /// Remedy: sign in with `toolyard servers login NAME`, or set its `headers` (`Authorization = "Bearer
    /// ${secret:TOKEN}"`).
    #[error("server `{server}` requires authentication")]
    LoginRequired { server: String },
    /// The server demands scopes that the stored token does not have.
    ///
    /// Remedy: sign in again with them: `toolyard servers login NAME --scope SCOPES`.
    #[error("the token for server `{server}` lacks the scopes {scopes}")]
    InsufficientScope { server: String, scopes: String },
    /// The server refuses a token although it has the scopes that the server asked for.
    ///
    /// Remedy: ask the operator of the server to grant your account access.
    #[error(
        "server `{server}` refuses a token with the requested scopes {scopes}: its operator must grant access"
    )]
    ScopeRefused { server: String, scopes: String },
    /// The server refuses every new token.
    ///
    /// Remedy: wait some minutes, then sign in again: `toolyard servers login NAME`; see its log with `toolyard servers
    /// logs NAME`.
    #[error("authorization for server `{server}` failed {times} times within minutes")]
    TooManyAttempts { server: String, times: usize },
    /// A URL that the server or the issuer names for authorization is not safe to use.
    ///
    /// Remedy: check the `url` of the server and `oauth.issuer`; addresses in private networks are accepted only if the
    /// server itself is in one.
    #[error("refusing to use {url} for authorization: {reason}")]
    Address {
        /// The URL without its query.
        url: String,
        reason: &'static str,
    },
    /// The server does not say, or not consistently, where its tokens are issued.
    ///
    /// Remedy: check the `url` of the server; set `oauth.issuer`, or pass a token of your own in its `headers`.
    #[error("failed to discover the authorization server: {0}")]
    Discovery(String),
    /// The server changed its authorization server, and the client is registered at the former one.
    ///
    /// Remedy: register a client there and set `oauth.client_id`, or remove `oauth.client_id` so that Toolyard
    /// registers itself; then `toolyard servers login NAME`.
    #[error("server `{server}` now requires tokens of {issuer}, where this client is not registered")]
    IssuerMismatch { server: String, issuer: String },
    /// The authorization server does not register clients by itself.
    ///
    /// Remedy: create a client at the provider, with the redirect URI `http://127.0.0.1:PORT/callback`, and set
    /// `oauth.client_id` and `oauth.callback_port`.
    #[error("failed to register the client ({0}): register one manually and set `oauth.client_id`")]
    Registration(String),
    /// The authorization server refused the request; the text is its answer.
    ///
    /// Remedy: sign in again: `toolyard servers login NAME`; check `oauth.client_id`, `oauth.client_secret` and
    /// `oauth.scopes`.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// The authorization server did not answer with a token; the text says why.
    ///
    /// Remedy: try again later; check that this machine reaches the authorization server, and the client there.
    #[error("the authorization server returned no token: {0}")]
    Unavailable(String),
    /// The program that opens pages could not be started.
    ///
    /// Remedy: open the printed address yourself, in a browser on this machine.
    #[error("failed to open the browser: {0}")]
    Browser(String),
    #[error(transparent)]
    Callback(#[from] CallbackError),
    #[error(transparent)]
    Store(#[from] TokenStoreError),
    /// Somebody signed out, or removed the server, while the sign-in was in progress.
    ///
    /// Remedy: sign in again: `toolyard servers login NAME`.
    #[error("the sign-in to server `{server}` was removed while it was in progress")]
    SignInRemoved { server: String },
    #[error(transparent)]
    CallerToken(#[from] CallerTokenError),
    /// The private key for the client cannot be used; the text says why.
    ///
    /// Remedy: use a P-256 (ES256) or RSA (RS256) key as PKCS#8 in PEM: `openssl pkcs8 -topk8 -nocrypt -in KEY`.
    #[error("the key of the client is invalid: {0}")]
    Key(&'static str),
}
