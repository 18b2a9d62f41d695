//! [`PublicUrl`]: where browsers reach this gateway.

use http::Uri;

/// The URL at which browsers reach this gateway, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    base: String,
    origin: String,
    is_https: bool,
}

/// `[serve] public_url` is not the URL of a gateway; the text says why.
///
/// Remedy: set `public_url` to the URL at which browsers reach the gateway, such as `https://tools.example.com`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPublicUrl(&'static str);

impl PublicUrl {
    /// Reads a URL such as `https://tools.example.com`.
    ///
    /// # Errors
    /// If it is not a URL, or one over which codes would be sent unencrypted to another machine.
    pub fn parse(text: &str) -> Result<Self, InvalidPublicUrl> {
        let base = text.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|_| InvalidPublicUrl("it is not a URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(InvalidPublicUrl("it is not a URL"));
        };
        let is_plain = base.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>`\\^{}|".contains(&byte));
        if !is_plain || uri.query().is_some() || base.contains('#') || authority.as_str().contains('@') {
            return Err(InvalidPublicUrl(
                "it has a query, a fragment, a user name or characters that need escapes",
            ));
        }
        let is_loopback = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
        match scheme {
            "https" => {}
            "http" if is_loopback => {}
            _ => return Err(InvalidPublicUrl("use https; http is only for this machine")),
        }
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        Ok(Self { base: base.to_owned(), origin, is_https: scheme == "https" })
    }

    /// The origin of all pages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host of all pages, without its port.
    pub fn host(&self) -> &str {
        let authority = self.origin.split_once("://").map_or("", |(_, authority)| authority);
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    pub(super) fn is_https(&self) -> bool {
        self.is_https
    }

    /// The URL of a page.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_need_encryption_unless_they_are_of_this_machine() {
        let url = PublicUrl::parse("https://Tools.example.com/yard/").unwrap();
        assert_eq!(url.at("/x"), "https://Tools.example.com/yard/x");
        assert_eq!((url.origin(), url.host()), ("https://tools.example.com", "tools.example.com"));
        let local = PublicUrl::parse("http://[::1]:7300").unwrap();
        assert_eq!((local.origin(), local.host()), ("http://[::1]:7300", "[::1]"));
        for text in [
            "",
            "tools.example",
            "http://tools.example",
            "ftp://a",
            "https://a?x",
            "https://a#b",
            "https://u:p@a",
            "https://a/\"b",
        ] {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
    }
}
