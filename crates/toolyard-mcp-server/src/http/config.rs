//! [`HttpConfig`]: access control, timeouts and limits of the HTTP server.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use aws_lc_rs::{constant_time::verify_slices_are_equal, digest};
use toolyard_core::{Authenticator, CallerIdentity};

use crate::http::{health::ReadinessProbe, routes::HttpRoutes};

static ANONYMOUS: LazyLock<Arc<CallerIdentity>> = LazyLock::new(|| Arc::new(CallerIdentity::anonymous()));

/// Whoever needs no credential.
pub(crate) fn anonymous() -> Arc<CallerIdentity> {
    Arc::clone(&ANONYMOUS)
}

/// How a server is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Who may send requests; can be replaced while serving.
    pub access: SharedAccessRules,
    /// Whether to serve the HTTP+SSE transport of 2024-11-05 at `/sse` and `/messages`.
    pub legacy_sse: bool,
    /// Concurrent connections; further ones wait to be accepted.
    pub max_connections: usize,
    /// Connections close after this time without a complete request head, an in-flight request or a successful write. Idle
    /// connections may live up to twice as long.
    pub idle_timeout: Duration,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Duration,
    /// How long an event stream may be silent before a keep-alive comment is sent.
    pub keep_alive_interval: Duration,
    /// How long an idle connection stays open after shutdown begins. A request that arrives meanwhile is answered with
    /// `Connection: close`. Closing at once could lose a request that is on its way, and neither client nor proxy may repeat
    /// it.
    pub shutdown_grace: Duration,
    /// How long in-flight requests may run after shutdown begins.
    pub drain_timeout: Duration,
    /// Decides what `/readyz` answers, besides whether the server is stopping.
    pub readiness: Option<Arc<dyn ReadinessProbe>>,
    /// Handlers for other paths.
    pub routes: Option<Arc<dyn HttpRoutes>>,
}

impl HttpConfig {
    /// A configuration with default limits.
    pub fn new(access: Access) -> Self {
        Self {
            access: SharedAccessRules::new(AccessRules::new(access)),
            legacy_sse: false,
            max_connections: 16_384,
            idle_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            keep_alive_interval: Duration::from_secs(20),
            shutdown_grace: Duration::from_millis(500),
            drain_timeout: Duration::from_secs(30),
            readiness: None,
            routes: None,
        }
    }
}

/// Which requests are accepted.
#[derive(Debug, Clone)]
pub struct AccessRules {
    /// Who may send requests.
    pub access: Access,
    /// Tells callers apart that present other credentials than the token of `access`; without one, they are refused.
    pub authenticator: Option<Arc<dyn Authenticator>>,
    /// Allowed names and addresses in the `Host` header, without port, besides those of this machine; `*` for any. Protects
    /// against DNS rebinding.
    pub hosts: Vec<String>,
    /// Allowed origins of web pages, such as `https://example.com`, besides those of this machine; `*` for any.
    pub origins: Vec<String>,
}

impl AccessRules {
    /// Rules that accept requests to this machine's addresses only.
    pub fn new(access: Access) -> Self {
        Self { access, authenticator: None, hosts: Vec::new(), origins: Vec::new() }
    }
}

/// Access rules that can be replaced while serving. Clones share the rules.
#[derive(Debug, Clone)]
pub struct SharedAccessRules(Arc<ArcSwap<AccessRules>>);

impl SharedAccessRules {
    /// Shares these rules.
    pub fn new(rules: AccessRules) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(rules)))
    }

    /// Replaces the rules for all requests from now on. Sessions of clients with another token end.
    pub fn replace(&self, rules: AccessRules) {
        self.0.store(Arc::new(rules));
    }

    pub(crate) fn current(&self) -> Guard<Arc<AccessRules>> {
        self.0.load()
    }

    /// Whoever presents the token, or everybody if none is needed.
    pub fn local_identity(&self) -> Arc<CallerIdentity> {
        self.current().access.identity()
    }

    /// Whether clients need no credential.
    pub fn is_open(&self) -> bool {
        matches!(self.current().access, Access::Open)
    }

    /// What tells callers apart; `None` if there are only clients with the token.
    pub fn authenticator(&self) -> Option<Arc<dyn Authenticator>> {
        self.current().authenticator.clone()
    }

    /// Whether this is the bearer token of clients; compared in constant time. No token is accepted where none is needed.
    pub fn accepts_token(&self, presented: &str) -> bool {
        matches!(&self.current().access, Access::Token(token) if token.matches(presented))
    }
}

/// Who may send requests.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Access {
    /// Clients with this bearer token.
    Token(AccessToken),
    /// All clients.
    Open,
}

/// A bearer token; never printed.
#[derive(Clone)]
pub struct AccessToken {
    text: String,
    identity: Arc<CallerIdentity>,
}

impl AccessToken {
    /// A token, without surrounding whitespace.
    pub fn new(text: &str) -> Self {
        let text = text.trim().to_owned();
        Self { identity: Arc::new(CallerIdentity::local_token(sha256(&text))), text }
    }

    /// The identity of the token's holder if `presented` is this token.
    pub fn holder(&self, presented: &str) -> Option<Arc<CallerIdentity>> {
        self.matches(presented).then(|| Arc::clone(&self.identity))
    }

    /// Whether a client presented the token; compared in constant time.
    pub(crate) fn matches(&self, presented: &str) -> bool {
        !self.text.is_empty() && verify_slices_are_equal(self.text.as_bytes(), presented.as_bytes()).is_ok()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessToken(***)")
    }
}

impl Access {
    /// Whoever passes, to whom sessions are bound.
    pub(crate) fn identity(&self) -> Arc<CallerIdentity> {
        match self {
            Self::Token(token) => Arc::clone(&token.identity),
            Self::Open => anonymous(),
        }
    }
}

fn sha256(text: &str) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().try_into().unwrap_or_default()
}
