//! [`SignIns`]: begins sign-ins, and tells clients when they are over.

use std::{
    fmt,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::{Mutex, MutexGuard};
use toolyard_core::SignInLink;
use toolyard_mcp_server::{McpServer, SharedAccessRules};

use super::{
    pending::{PendingSignIns, SignInRequest},
    public_url::PublicUrl,
};

/// The sign-ins of callers at upstream servers.
pub struct SignIns {
    pub(super) public_url: PublicUrl,
    /// Tells callers apart.
    pub(super) access: SharedAccessRules,
    pending: Mutex<PendingSignIns>,
    /// Whose clients are told when a sign-in is done.
    server: OnceLock<Weak<McpServer>>,
}

impl SignIns {
    /// Sign-ins at pages below this URL.
    pub fn new(public_url: PublicUrl, access: SharedAccessRules) -> Self {
        Self { public_url, access, pending: Mutex::default(), server: OnceLock::new() }
    }

    /// Sets the MCP server whose clients are told when a sign-in is done; only the first one counts.
    pub fn notify_clients_of(&self, server: &Arc<McpServer>) {
        let _ = self.server.set(Arc::downgrade(server));
    }

    /// Begins a sign-in, or returns the one that is waiting for the same caller and server. `None` if there are too many.
    pub fn begin(&self, request: SignInRequest) -> Option<SignInLink> {
        let server = request.server.clone();
        let offer = self.pending().offer(request)?;
        let url = self.public_url.at(&format!("/sign-in/{}", offer.ticket));
        Some(SignInLink::new(&server, &offer.id, url))
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, PendingSignIns> {
        self.pending.lock()
    }

    /// Tells the clients that wait for a sign-in that it is over.
    pub(super) fn end(&self, id: &str, is_successful: bool) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            server.end_elicitation(id, is_successful);
        }
    }
}

impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIns").field("public_url", &self.public_url).finish_non_exhaustive()
    }
}
