//! The browser in which the user logs in, and the URLs it may open.

use std::fmt;

use toolyard_core::BoxFuture;
use url::Url;

use super::{OAuthError, address_policy::AddressPolicy};
use crate::transport::http::target::display_url;

/// Why a login page could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BrowserError(String);

impl BrowserError {
    /// An error with this reason.
    pub fn new(reason: &dyn fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// Opens pages for the user. The program provides it; the library opens no browser itself.
pub trait Browser: Send + Sync {
    /// Opens the login page of a server. Need not wait for the redirect back.
    fn open<'a>(&'a self, server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), BrowserError>>;
}

/// A checked http or https URL. Pass it to a program as ONE argument, never through a shell: it comes from a server and
/// could contain shell syntax (CVE-2025-6514).
#[derive(Clone, PartialEq, Eq)]
pub struct BrowserUrl(Url);

impl BrowserUrl {
    pub(super) fn new(text: &str, policy: &AddressPolicy) -> Result<Self, OAuthError> {
        let url =
            Url::parse(text).map_err(|_| OAuthError::Address { url: "?".to_owned(), reason: "not a URL" })?;
        policy.check(&url)?;
        // The url crate escapes these; this check does not rely on it.
        if url
            .as_str()
            .chars()
            .any(|character| !character.is_ascii_graphic() || "\"'<>`\\^{}|".contains(character))
        {
            return Err(OAuthError::Address {
                url: display_url(&url),
                reason: "the URL contains invalid characters",
            });
        }
        Ok(Self(url))
    }

    /// The URL, in printable ASCII without quotes, spaces, backslashes and angle brackets.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The origin of the URL, for display.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

impl fmt::Debug for BrowserUrl {
    // The query holds the state of the flow.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BrowserUrl({})", display_url(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> AddressPolicy {
        AddressPolicy::new(&Url::parse("https://mcp.example.org/mcp").unwrap())
    }

    #[test]
    fn only_web_pages_are_opened() {
        for text in ["https://login.example.org/authorize?state=x&a=b", "https://login.example.org:8443/"] {
            assert_eq!(BrowserUrl::new(text, &policy()).unwrap().as_str(), text);
        }
        for text in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "a:$(calc.exe)",
            "ms-msdt:/id",
            "http://login.example.org/authorize",
            "https://user:word@login.example.org/",
            "https://127.0.0.1/authorize",
            "https://169.254.169.254/latest",
            "--version",
            "https://login.example.org/#a|b",
            "",
        ] {
            assert!(BrowserUrl::new(text, &policy()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_url_contains_no_quotes_or_spaces() {
        let url = BrowserUrl::new("https://h.example.org/a b\\c\n?q=\"'<> \u{202e}", &policy()).unwrap();
        assert_eq!(url.as_str(), "https://h.example.org/a%20b/c?q=%22%27%3C%3E%20%E2%80%AE");
        for text in ["https://h.example.org/'$(x)'", "https://h.example.org/?q=`x`"] {
            assert!(BrowserUrl::new(text, &policy()).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn accepted_urls_are_plain_https_urls(text in "(https?|file|javascript|a)?:?/{0,3}\\PC{0,40}") {
            if let Ok(url) = BrowserUrl::new(&text, &policy()) {
                prop_assert!(url.as_str().starts_with("https://"));
                prop_assert!(url.as_str().chars().all(|character| character.is_ascii_graphic()));
                prop_assert!(!url.as_str().contains(['"', '\'', '`', '\\', '<', '>', '|', '^']));
            }
        }
    }
}
