//! Which of several servers a command still waits for.

use std::{cell::RefCell, sync::Arc};

use toolyard_mcp_client::ManagedServer;

/// The servers that a command still waits for.
pub(super) struct PendingServers(RefCell<Vec<String>>);

impl PendingServers {
    pub(super) fn for_all(servers: &[Arc<ManagedServer>]) -> Self {
        Self(RefCell::new(servers.iter().map(|server| server.config().id.to_string()).collect()))
    }

    pub(super) fn remove(&self, server: &ManagedServer) {
        self.0.borrow_mut().retain(|name| *name != *server.config().id.as_str());
    }

    /// Their names, for a line of progress.
    pub(super) fn names(&self) -> String {
        self.0.borrow().join(", ")
    }
}
