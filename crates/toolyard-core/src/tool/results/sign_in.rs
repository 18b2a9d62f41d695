//! [`SignInLink`]: where a caller signs in to a source, so that calls can be made with tokens of its own.

use std::{borrow::Cow, fmt};

/// The path of the pages, before their tickets.
const PAGE_PATH: &str = "/sign-in/";
/// Tickets are hexadecimal digits, at least this many.
const MIN_TICKET_CHARS: usize = 32;

/// A page at which a caller signs in to a source. Whoever has the link must prove to be the caller before anything happens;
/// nevertheless it is shown to nobody else and never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInLink {
    /// The source, as the caller knows it.
    pub source: String,
    /// Identifies the sign-in; not secret.
    pub id: String,
    url: String,
    instruction: String,
}

impl SignInLink {
    /// The page at this URL.
    pub fn new(source: &str, id: &str, url: String) -> Self {
        let instruction =
            format!("open {url} in your browser to sign in to `{source}`, then repeat the call");
        Self { source: source.to_owned(), id: id.to_owned(), url, instruction }
    }

    /// The URL of the page.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Why the person is asked to open the page.
    pub fn message(&self) -> String {
        format!("Sign in to `{}`, so that its tools can be used in your name.", self.source)
    }

    /// A text for a log, without what makes links of sign-ins valid.
    pub fn redact(text: &str) -> Cow<'_, str> {
        let mut parts = text.split(PAGE_PATH);
        let mut redacted = parts.next().unwrap_or_default().to_owned();
        let mut is_changed = false;
        for part in parts {
            redacted.push_str(PAGE_PATH);
            let ticket = part.bytes().take_while(u8::is_ascii_hexdigit).count();
            if ticket >= MIN_TICKET_CHARS {
                is_changed = true;
                redacted.push('…');
                redacted.push_str(part.get(ticket..).unwrap_or_default());
            } else {
                redacted.push_str(part);
            }
        }
        if is_changed { Cow::Owned(redacted) } else { Cow::Borrowed(text) }
    }

    /// What to do, for a client that can only show text.
    pub fn instruction(&self) -> &str {
        &self.instruction
    }
}

impl fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInLink")
            .field("source", &self.source)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_texts_for_logs_lose_their_tickets() {
        let ticket = "0123456789abcdef".repeat(4);
        let text = format!("open https://a/sign-in/{ticket} now, or https://b/x/sign-in/{ticket}");
        assert_eq!(SignInLink::redact(&text), "open https://a/sign-in/… now, or https://b/x/sign-in/…");
        let other = "see /sign-in/callback and docs/sign-in/";
        assert_eq!(SignInLink::redact(other), other);
    }
}
