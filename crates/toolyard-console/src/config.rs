//! [`ConsoleConfig`]: the API behind the console, who may sign in, and how requests to the API are marked.

use std::{fmt, sync::Arc};

use axum::Router;
use http::Extensions;

use crate::session::Role;

/// Checks the access token of the gateway, which may change while the console runs.
pub trait ConsoleAccess: Send + Sync + fmt::Debug {
    /// Whether clients need no token (`toolyard serve --no-auth`): visitors are signed in as callers.
    fn is_open(&self) -> bool;

    /// Whether this is the access token; compared in constant time.
    fn accepts_token(&self, presented: &str) -> bool;

    /// A hash of the access token. Sessions end when it changes.
    fn credential_hash(&self) -> [u8; 32];
}

/// Access without authentication, as with `toolyard serve --no-auth`: every visitor is a caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAccess;

impl ConsoleAccess for OpenAccess {
    fn is_open(&self) -> bool {
        true
    }

    fn accepts_token(&self, _: &str) -> bool {
        false
    }

    fn credential_hash(&self) -> [u8; 32] {
        [0; 32]
    }
}

/// Marks a request to the API as one of a signed-in visitor with this role.
pub type AuthorizeRequest = Arc<dyn Fn(&mut Extensions, Role) + Send + Sync>;

/// Configuration of a [`Console`](crate::Console).
#[derive(Clone)]
pub struct ConsoleConfig {
    /// The HTTP API of the gateway, which authenticates nobody.
    pub api: Router,
    /// Checks the access token.
    pub access: Arc<dyn ConsoleAccess>,
    /// Prepares requests to the API: sets the caller's credential, and permits an operator what only operators may do.
    pub authorize: AuthorizeRequest,
    /// Signs session cookies. With a key that survives a restart, sessions do, too.
    pub session_key: [u8; 32],
    /// Secret that authorizes requests for one-time codes; `None` disables them.
    pub operator_secret: Option<String>,
    /// The version of Toolyard, shown on every page.
    pub version: &'static str,
}

impl ConsoleConfig {
    /// A console without an operator secret, whose requests to the API are not marked.
    pub fn new(api: Router, access: Arc<dyn ConsoleAccess>, session_key: [u8; 32]) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { api, access, authorize: Arc::new(|_, _| {}), session_key, operator_secret: None, version }
    }
}

impl fmt::Debug for ConsoleConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleConfig").field("access", &self.access).finish_non_exhaustive()
    }
}
