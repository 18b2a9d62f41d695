//! URL, headers and authorizer of a server.

use std::{fmt, sync::Arc};

use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use toolyard_core::{BoxFuture, CallerIdentity};
use url::Url;

use crate::{config::CallerHeader, sanitize::sanitize_line, transport::error::TransportError};

/// Shorter header values are too likely to be ordinary words to be redacted.
const MIN_SECRET_BYTES: usize = 6;

/// The URL of a server and what every request to it carries. Header values are secrets and never shown.
#[derive(Clone)]
pub struct HttpTarget {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Headers whose values depend on the caller of each request.
    caller_headers: Vec<CallerHeader>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
}

/// Gets tokens for a server and handles its challenges.
pub trait Authorizer: Send + Sync {
    /// The header with the current token, if there is one.
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>>;

    /// Handles a 401, or a 403 for insufficient scope, to a request that carried `sent_token`. Returns whether the
    /// request may succeed if it is sent again; if the token was replaced in the meantime, that is enough.
    fn handle_challenge<'a>(
        &'a self,
        sent_token: Option<&'a SecretHeader>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ChallengeError>>;
}

/// Why a challenge cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChallengeError {
    /// The caller whose tokens are used must sign in.
    #[error("{0}")]
    SignInRequired(String),
    /// Authorization at the server failed; the text says why.
    ///
    /// Remedy: sign in again: `toolyard servers login NAME`.
    #[error("{0}")]
    Failed(String),
}

/// A header with a secret value, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHeader {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

impl SecretHeader {
    /// A header with a secret value; none if name or value is not valid.
    pub fn new(name: &str, value: &str) -> Option<Self> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some(Self { name, value })
    }

    /// `Authorization: Bearer …`.
    pub fn bearer(token: &str) -> Option<Self> {
        Self::new(AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }
}

impl fmt::Debug for SecretHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretHeader({}: …)", self.name)
    }
}

impl HttpTarget {
    /// A target with these headers, whose values contain no unresolved references.
    pub fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, TransportError> {
        let invalid = |problem: String| TransportError::Unreachable(problem);
        let url = Url::parse(url).map_err(|error| invalid(format!("invalid URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("unsupported URL scheme `{}`; use http or https", url.scheme())));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // The value may be a secret, so the error has only the name.
            let header = SecretHeader::new(&name, &value)
                .filter(|header| header.name != CONTENT_LENGTH && header.name != TRANSFER_ENCODING)
                .ok_or_else(|| invalid(format!("invalid header {name:?}")))?;
            map.append(header.name, header.value);
        }
        Ok(Self { url, headers: map, caller_headers: Vec::new(), authorizer: None })
    }

    /// Removes the header `Authorization` and user information in the URL.
    pub(crate) fn remove_credentials(&mut self) {
        self.headers.remove(AUTHORIZATION);
        // Only a URL without a host refuses this; such a URL has no user information.
        let _ = self.url.set_username("");
        let _ = self.url.set_password(None);
    }

    /// Adds an authorizer.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Sets the headers whose values depend on the caller. Requests without a caller carry those of `identity`, the caller that
    /// the connection belongs to, or else defaults.
    pub(crate) fn set_caller_headers(
        &mut self,
        headers: Vec<CallerHeader>,
        identity: Option<&CallerIdentity>,
    ) -> Result<(), TransportError> {
        for header in &headers {
            if let Some((name, value)) = header.for_caller(identity)? {
                self.headers.insert(name, value);
            }
        }
        self.caller_headers = headers;
        Ok(())
    }

    /// Adds the headers for the caller of a request, if that is told apart from others.
    pub(crate) fn add_caller_headers(
        &self,
        headers: &mut HeaderMap,
        identity: Option<&CallerIdentity>,
    ) -> Result<(), TransportError> {
        let Some(identity) = identity.filter(|identity| identity.is_distinguished()) else { return Ok(()) };
        for header in &self.caller_headers {
            if let Some((name, value)) = header.for_caller(Some(identity))? {
                headers.insert(name, value);
            }
        }
        Ok(())
    }

    /// The URL without password and query values.
    pub fn display_url(&self) -> String {
        display_url(&self.url)
    }

    /// `text` without header values and token, in case the server repeats them.
    pub(crate) fn redact_secrets(&self, token: Option<&HeaderValue>, mut text: String) -> String {
        for value in self.headers.values().chain(token).filter_map(|value| value.to_str().ok()) {
            // `Bearer abc` is a scheme and a secret; the server may repeat the secret alone.
            let last = value.rsplit(' ').next().unwrap_or(value);
            for secret in [value, last].into_iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
                if text.contains(secret) {
                    text = text.replace(secret, "…");
                }
            }
        }
        text
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpTarget")
            .field("url", &self.display_url())
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("authorizer", &self.authorizer.is_some())
            .finish()
    }
}

/// A URL without password and query values.
pub(crate) fn display_url(url: &Url) -> String {
    let mut text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let mut separator = '?';
    for (name, _) in url.query_pairs() {
        text.push(separator);
        text.extend(name.chars().filter(char::is_ascii_graphic));
        text.push_str("=…");
        separator = '&';
    }
    sanitize_line(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn secrets_are_not_shown() {
        let target = HttpTarget::new(
            "https://user:word@example.org:8443/mcp?key=hidden&flag",
            headers(&[("Authorization", "Bearer abc-def-ghi"), ("X-Key", "s3cret-value")]),
        )
        .unwrap();
        let debug = format!("{target:?} {:?}", SecretHeader::bearer("abc-def-ghi"));
        for secret in ["word", "hidden", "abc-def", "s3cret"] {
            assert!(!debug.contains(secret), "{debug}");
        }
        assert_eq!(target.display_url(), "https://example.org:8443/mcp?key=…&flag=…");
        let token = SecretHeader::bearer("token-1").unwrap();
        let echoed = "you sent Bearer abc-def-ghi, abc-def-ghi, token-1 and s3cret-value".to_owned();
        assert_eq!(target.redact_secrets(Some(&token.value), echoed), "you sent …, …, … and …");
    }

    #[test]
    fn credentials_of_the_settings_are_removed() {
        let headers = headers(&[("authorization", "Bearer abc-def-ghi"), ("X-Key", "s3cret-value")]);
        let mut target = HttpTarget::new("https://user:word@example.org/mcp?a=b", headers).unwrap();
        target.remove_credentials();
        assert_eq!(target.url.as_str(), "https://example.org/mcp?a=b");
        assert_eq!(target.headers.keys().collect::<Vec<_>>(), ["x-key"]);
    }

    #[test]
    fn invalid_targets_are_rejected_without_showing_secrets() {
        for (url, pairs) in [
            ("not a url", headers(&[])),
            ("file:///etc/passwd", headers(&[])),
            ("http://h/", headers(&[("X-Key", "line\nbreak-secret")])),
            ("http://h/", headers(&[("bad name", "secret")])),
            ("http://h/", headers(&[("Content-Length", "3")])),
        ] {
            let error = HttpTarget::new(url, pairs).unwrap_err();
            assert!(error.had_no_effect());
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
