//! [`Authenticator`]: tells who sent a request by the credentials that came with it.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use super::person_sign_in::PersonSignIn;
use crate::{BoxFuture, CallerIdentity};

/// Tells callers apart. It is asked for requests that do not present the local token of the gateway.
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// Who presented these credentials.
    fn authenticate<'a>(
        &'a self,
        credentials: Credentials<'a>,
    ) -> BoxFuture<'a, Result<Arc<CallerIdentity>, AuthenticationError>>;

    /// The OAuth metadata of the protected resource at a path (RFC 9728), as JSON; `None` if the path is not one of
    /// `/.well-known/oauth-protected-resource`, or if clients do not sign in by OAuth.
    fn resource_metadata(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// Lets a person prove in a browser to be a caller with access tokens; `None` if that is not configured.
    fn person_sign_in(&self) -> Option<Arc<dyn PersonSignIn>> {
        None
    }

    /// The address of the client, for logs: that of the connection, unless a trusted proxy names another in `X-Forwarded-For`.
    /// `forwarded_for` has all values of this header, joined with commas.
    fn client_address(&self, connection: IpAddr, forwarded_for: &str) -> IpAddr {
        let _ = forwarded_for;
        connection
    }

    /// The value of `WWW-Authenticate` for a request to this path that was refused.
    fn challenge(&self, path: &str, error: &AuthenticationError) -> String;
}

/// What a request presents to prove who sent it.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The bearer token.
    pub bearer: Option<&'a str>,
    /// The value of a header, by its name in lower case; `None` if it is absent.
    pub header: &'a (dyn Fn(&str) -> Result<Option<&'a str>, InvalidHeader> + Send + Sync),
    /// The address of the client, or of the proxy in front of this gateway.
    pub client_address: IpAddr,
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("client_address", &self.client_address).finish_non_exhaustive()
    }
}

/// A header that is there but cannot be read: it is repeated, or not text. It is not the same as an absent one, which may mean less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidHeader;

/// Why a request is not accepted. The texts are for the client: they tell what is wrong and reveal nothing else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The request has no credentials.
    ///
    /// Remedy: send the header `Authorization: Bearer TOKEN` with the token that `toolyard serve` prints, or an API key
    /// of `toolyard callers add NAME`.
    #[error("missing bearer token: send Authorization: Bearer TOKEN")]
    Missing,
    /// The credentials are not valid; the text says why.
    ///
    /// Remedy: send a valid token: that of the gateway, an API key (`toolyard callers list` shows whether it is valid)
    /// or an access token of the issuer in `[serve.oauth]`.
    #[error("invalid bearer token: {0}")]
    Invalid(&'static str),
    /// The access token is valid, but lacks a scope that `[serve.oauth] scopes` requires.
    ///
    /// Remedy: request the scope when you sign in, and allow it for the client at the issuer.
    #[error("the token lacks a scope: {0}")]
    InsufficientScope(String),
    /// The issuer's keys, or the API keys in the store, cannot be read, so the gateway cannot tell whether the credentials
    /// are valid.
    ///
    /// Remedy: try again later; as the operator, check the issuer of `[serve.oauth]` and the store (`toolyard doctor`).
    #[error("cannot check credentials: reading {service} {}; try again in {} s", failure(.outage), .retry_after.as_secs().max(1))]
    Unavailable {
        /// What cannot be read.
        service: &'static str,
        /// How long ago the first failed attempt since the last success was, if there was one.
        outage: Option<Duration>,
        /// When to try again.
        retry_after: Duration,
    },
}

/// In steps of ten seconds, so that a log does not have a line for each second.
fn failure(outage: &Option<Duration>) -> String {
    match outage.map_or(0, |outage| outage.as_secs() / 10 * 10) {
        0 => "failed".to_owned(),
        seconds => format!("has failed for {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_named_with_its_duration() {
        let text = |outage: Option<u64>| {
            let outage = outage.map(Duration::from_secs);
            let retry_after = Duration::from_millis(300);
            AuthenticationError::Unavailable { service: "the API keys in the store", outage, retry_after }
                .to_string()
        };
        assert_eq!(
            text(Some(34)),
            "cannot check credentials: reading the API keys in the store has failed for 30 s; try again in 1 s"
        );
        let unknown = "cannot check credentials: reading the API keys in the store failed; try again in 1 s";
        assert_eq!((text(None).as_str(), text(Some(9)).as_str()), (unknown, unknown));
    }
}
