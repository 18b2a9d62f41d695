//! The person at the other end, and the only kind of address that is put before one.

use std::fmt;

use toolyard_core::BoxFuture;
use url::Url;

use super::{OAuthError, address::AddressPolicy};
use crate::client::http_target::shown;

/// Someone who can show a page to a person. The door has one; the library opens no browser by itself.
pub trait Browser: Send + Sync {
    /// Puts the page before a person, who will be sent back to this machine. It need not wait for that. An error says why
    /// there is no page.
    fn open<'a>(&'a self, server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), String>>;
}

/// An address that may be opened: http or https, and checked. Whoever opens it gives it to a program as ONE argument, never
/// to a shell: it comes from a server, and a shell would read more in it than an address (CVE-2025-6514).
#[derive(Clone, PartialEq, Eq)]
pub struct BrowserUrl(Url);

impl BrowserUrl {
    /// Checks an address that came out of a server's metadata.
    pub(super) fn new(text: &str, policy: &AddressPolicy) -> Result<Self, OAuthError> {
        let url = Url::parse(text)
            .map_err(|_| OAuthError::Address { url: "?".to_owned(), reason: "it is not an address" })?;
        policy.check(&url)?;
        // The url crate escapes these; should that ever change, it must not be found out by a shell.
        if url
            .as_str()
            .chars()
            .any(|character| !character.is_ascii_graphic() || "\"'<>`\\^{}|".contains(character))
        {
            return Err(OAuthError::Address { url: shown(&url), reason: "it has characters no address has" });
        }
        Ok(Self(url))
    }

    /// The address, in printable ASCII without quotes, spaces, backslashes and angle brackets.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Who is at that address, for asking a person whether to go there.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

impl fmt::Debug for BrowserUrl {
    // The query holds the state of the flow.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BrowserUrl({})", shown(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy() -> AddressPolicy {
        AddressPolicy::new(&Url::parse("https://mcp.example.org/mcp").unwrap(), false)
    }

    #[test]
    fn opens_pages_and_nothing_else() {
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
    fn a_shell_would_not_find_quotes_or_spaces() {
        let url = BrowserUrl::new("https://h.example.org/a b\\c\n?q=\"'<> \u{202e}", &policy()).unwrap();
        assert_eq!(url.as_str(), "https://h.example.org/a%20b/c?q=%22%27%3C%3E%20%E2%80%AE");
        for text in ["https://h.example.org/'$(x)'", "https://h.example.org/?q=`x`"] {
            assert!(BrowserUrl::new(text, &policy()).is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn whatever_passes_is_a_plain_web_address(text in "(https?|file|javascript|a)?:?/{0,3}\\PC{0,40}") {
            if let Ok(url) = BrowserUrl::new(&text, &policy()) {
                prop_assert!(url.as_str().starts_with("https://"));
                prop_assert!(url.as_str().chars().all(|character| character.is_ascii_graphic()));
                prop_assert!(!url.as_str().contains(['"', '\'', '`', '\\', '<', '>', '|', '^']));
            }
        }
    }
}
