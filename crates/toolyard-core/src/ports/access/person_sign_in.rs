//! [`PersonSignIn`]: lets a person prove in a browser to be a caller, at the issuer of the callers' access tokens.

use std::fmt;

use crate::{BoxFuture, CallerIdentity};

/// Signs a person in by OpenID Connect (authorization code with PKCE).
pub trait PersonSignIn: Send + Sync + fmt::Debug {
    /// The issuer at which the person signs in.
    fn issuer(&self) -> &str;

    /// Begins a sign-in whose redirect comes to `redirect_uri`.
    fn begin<'a>(&'a self, redirect_uri: &'a str) -> BoxFuture<'a, Result<PersonLogin, PersonSignInError>>;

    /// Redeems the code of the authorization response; `issuer` is its parameter `iss`. Whoever calls it has compared the state.
    fn finish<'a>(
        &'a self,
        login: PersonLogin,
        code: &'a str,
        issuer: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CallerIdentity, PersonSignInError>>;
}

/// A sign-in of a person in progress.
#[derive(Clone)]
pub struct PersonLogin {
    /// The page of the issuer.
    pub url: String,
    /// The state that the authorization response must repeat.
    pub state: String,
    /// The nonce that the ID token must repeat.
    pub nonce: String,
    /// The secret of PKCE.
    pub code_verifier: String,
    /// Where the response comes to.
    pub redirect_uri: String,
}

impl fmt::Debug for PersonLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonLogin").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// The identity of a person on the sign-in page could not be established; the text says why.
///
/// Remedy: check `[serve.oauth]` and the public client of `sign_in_client_id` at the issuer, then open a new link by
/// repeating the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PersonSignInError(pub String);
