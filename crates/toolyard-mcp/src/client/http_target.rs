//! A server's address, what is sent there besides messages, and who may let us in.

use std::{fmt, sync::Arc};

use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use toolyard_core::BoxFuture;
use url::Url;

use super::TransportError;

/// Where a server is and what every request to it carries. Header values are secrets: nothing shows them.
#[derive(Clone)]
pub struct HttpTarget {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) authorizer: Option<Arc<dyn Authorizer>>,
}

/// The proof that a key is ours, and what a server wants to see in the next one (RFC 9449).
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Gets tokens for a server and answers its challenges.
pub trait Authorizer: Send + Sync {
    /// The header to send with the next request, if there is a token already.
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>>;

    /// What must go with the token in a request of this method to this address, where the token alone is not enough: a proof
    /// that is good for this one request.
    fn proof(&self, token: &SecretHeader, method: &str, url: &Url) -> Option<SecretHeader> {
        let _ = (token, method, url);
        None
    }

    /// The server said what it wants to see in the next proof.
    fn nonce(&self, nonce: &str) {
        let _ = nonce;
    }

    /// The server answered 401, or 403 for want of scope, to a request that carried `sent`: a token that was replaced in the
    /// meantime needs no more than another try. Whether it is worth sending the same message once more; an error says why
    /// not.
    fn challenged<'a>(
        &'a self,
        sent: Option<&'a SecretHeader>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, String>>;
}

/// A header whose value nothing shows.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

impl SecretHeader {
    /// A header with a secret in it; none when it cannot be a header.
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
    /// A target at `url` with more headers, in which no references are left.
    pub fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, TransportError> {
        let unusable = |problem: String| TransportError::Unreachable(problem);
        let url = Url::parse(url).map_err(|error| unusable(format!("its url is not one: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable(format!(
                "its url starts with {}: and not with http: or https:",
                url.scheme()
            )));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            // The value may be a secret, so only the name is said.
            let header = SecretHeader::new(&name, &value)
                .filter(|header| header.name != CONTENT_LENGTH && header.name != TRANSFER_ENCODING)
                .ok_or_else(|| unusable(format!("its header {name:?} cannot be sent")))?;
            map.append(header.name, header.value);
        }
        Ok(Self { url, headers: map, authorizer: None })
    }

    /// The same, with someone who gets tokens for it.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// The address for people: without a password and without the values of its query.
    pub fn shown(&self) -> String {
        shown(&self.url)
    }

    /// `text` without any of the header values or the token, should the server repeat them.
    pub(super) fn without_secrets(&self, token: Option<&HeaderValue>, mut text: String) -> String {
        for value in self.headers.values().chain(token).filter_map(|value| value.to_str().ok()) {
            // `Bearer abc` is a scheme and a secret; the secret alone may be repeated too.
            let last = value.rsplit(' ').next().unwrap_or(value);
            for secret in [value, last].into_iter().filter(|secret| secret.len() >= 6) {
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
            .field("url", &self.shown())
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("authorizer", &self.authorizer.is_some())
            .finish()
    }
}

/// An address for people: without a password and without the values of its query.
pub(super) fn shown(url: &Url) -> String {
    let mut text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let mut separator = '?';
    for (name, _) in url.query_pairs() {
        text.push(separator);
        text.extend(name.chars().filter(char::is_ascii_graphic));
        text.push_str("=…");
        separator = '&';
    }
    harmless(&text)
}

/// The beginning of a text from outside, on one line and without control or invisible characters.
pub(super) fn harmless(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if line.chars().count() >= LONGEST {
            break;
        }
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|&character| is_visible(character)).take(LONGEST + 1));
    }
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// The words of a page; any other text stays as it is.
pub(super) fn without_tags(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.to_owned();
    }
    let mut inside = false;
    let words = text.chars().filter_map(|character| match character {
        '<' => {
            inside = true;
            Some(' ')
        }
        '>' => {
            inside = false;
            None
        }
        character => (!inside).then_some(character),
    });
    words.collect()
}

/// Whether a character can be seen: no bidirectional controls, zero widths, tags or variation selectors.
fn is_visible(character: char) -> bool {
    !matches!(character,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn shows_no_secret() {
        let target = HttpTarget::new(
            "https://user:word@example.org:8443/mcp?key=hidden&flag",
            headers(&[("Authorization", "Bearer abc-def-ghi"), ("X-Key", "s3cret-value")]),
        )
        .unwrap();
        let debug = format!("{target:?} {:?}", SecretHeader::bearer("abc-def-ghi"));
        for secret in ["word", "hidden", "abc-def", "s3cret"] {
            assert!(!debug.contains(secret), "{debug}");
        }
        assert_eq!(target.shown(), "https://example.org:8443/mcp?key=…&flag=…");
        let token = SecretHeader::bearer("token-1").unwrap();
        let echoed = "you sent Bearer abc-def-ghi, abc-def-ghi, token-1 and s3cret-value".to_owned();
        assert_eq!(target.without_secrets(Some(&token.value), echoed), "you sent …, …, … and …");
    }

    #[test]
    fn refuses_what_cannot_be_sent_without_repeating_it() {
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

    #[test]
    fn makes_text_from_outside_harmless() {
        assert_eq!(harmless("a\u{1b}[31m\r\n\r\n b\u{202e}\u{e0041}c"), "a [31m bc");
        assert_eq!(harmless(&"é".repeat(500)).chars().count(), 201);
        assert_eq!(harmless(""), "");
        let page = "<!DOCTYPE html>\n<html><title>Error</title>\n<pre>Cannot POST /sse</pre></html>";
        assert_eq!(harmless(&without_tags(page)), "Error Cannot POST /sse");
        assert_eq!(without_tags("1 < 2"), "1 < 2", "not a page");
    }
}
