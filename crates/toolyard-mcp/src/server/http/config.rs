//! Who may come in over HTTP, and how long anybody may take.

use std::{fmt, sync::Arc, time::Duration};

use aws_lc_rs::{constant_time::verify_slices_are_equal, digest};

use super::Pages;

/// How a server is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Who may come in.
    pub access: Access,
    /// Names and addresses, without port, under which the server is known besides those of the machine itself; `*` for
    /// any. Whoever asks for another one is refused: a page in a browser that had its own name point here.
    pub hosts: Vec<String>,
    /// Origins of web pages, such as `https://example.com`, that may come in besides those of the machine itself; `*` for
    /// any.
    pub origins: Vec<String>,
    /// Whether the transport of the first revision is there too: `/sse` and `/messages`.
    pub legacy_sse: bool,
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// How long a connection may go without a request before it is closed, or with one whose head does not end, or with
    /// an answer that nobody reads. It may take twice as long until that is noticed.
    pub silence: Duration,
    /// How long the body of a request may take.
    pub body_time: Duration,
    /// After how much silence an open stream says that it is still there.
    pub stream_beat: Duration,
    /// How long a connection on which nothing is asked stays open once the server is to stop: what its client sends
    /// meanwhile is answered, and told to be the last. A client or a proxy that learns only from a closed connection that
    /// nobody is there cannot know what became of the request it had just sent.
    pub farewell: Duration,
    /// How long requests that are under way may go on once the server is to stop.
    pub drain_time: Duration,
    /// Whoever serves other addresses beside the endpoint.
    pub pages: Option<Arc<dyn Pages>>,
}

impl HttpConfig {
    /// What suits most.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            hosts: Vec::new(),
            origins: Vec::new(),
            legacy_sse: false,
            connections: 16_384,
            silence: Duration::from_secs(60),
            body_time: Duration::from_secs(30),
            stream_beat: Duration::from_secs(20),
            farewell: Duration::from_millis(500),
            drain_time: Duration::from_secs(30),
            pages: None,
        }
    }
}

/// Who may come in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Access {
    /// Whoever has this token.
    Token(AccessToken),
    /// Everybody who gets here.
    Open,
}

/// A token that lets in; it is never shown.
#[derive(Clone)]
pub struct AccessToken {
    text: String,
    hash: [u8; 32],
}

impl AccessToken {
    /// A token. Surrounding blanks do not belong to it.
    pub fn new(text: &str) -> Self {
        let text = text.trim().to_owned();
        Self { hash: hashed(&text), text }
    }

    /// Whether somebody has it. How much of it was right cannot be measured.
    pub(super) fn is(&self, shown: &str) -> bool {
        !self.text.is_empty() && verify_slices_are_equal(self.text.as_bytes(), shown.as_bytes()).is_ok()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessToken(***)")
    }
}

impl Access {
    /// A hash of what lets in, to which sessions are bound.
    pub(super) fn principal(&self) -> [u8; 32] {
        match self {
            Self::Token(token) => token.hash,
            Self::Open => [0; 32],
        }
    }
}

fn hashed(text: &str) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().try_into().unwrap_or_default()
}
