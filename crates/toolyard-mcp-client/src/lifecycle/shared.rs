//! What all servers of one manager share besides their host.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use toolyard_core::SourceId;

use super::{catalogue_sharing::CatalogueSharing, exclusions::Exclusions};

/// Events that may be queued for a receiver.
const MAX_QUEUED_EVENTS: usize = 1_024;

/// A change of what a server offers besides tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The prompts changed.
    PromptsChanged(SourceId),
    /// The resources, templates or skills changed.
    ResourcesChanged(SourceId),
    /// The stored record of the server changed: its tools, their approvals, prompts, resources or skills.
    RecordChanged(SourceId),
    /// The resource with this URI changed.
    ResourceUpdated(SourceId, String),
}

#[derive(Debug)]
pub(super) struct ManagerShared {
    pub(super) events: broadcast::Sender<ServerEvent>,
    /// Whether reconnecting a server that is down never ends, even if nobody uses the server.
    pub(super) keeps_reconnecting: AtomicBool,
    /// The minimum level of the log messages that legacy servers send.
    pub(super) log_level: Mutex<Option<String>>,
    /// The tools that the settings of all servers exclude.
    pub(super) exclusions: Mutex<Exclusions>,
    /// The other processes that use the same store, if there are any.
    pub(super) catalogue_sharing: OnceLock<Arc<dyn CatalogueSharing>>,
}

impl Default for ManagerShared {
    fn default() -> Self {
        Self {
            events: broadcast::Sender::new(MAX_QUEUED_EVENTS),
            keeps_reconnecting: AtomicBool::new(false),
            log_level: Mutex::default(),
            exclusions: Mutex::default(),
            catalogue_sharing: OnceLock::new(),
        }
    }
}

impl ManagerShared {
    pub(super) fn publish(&self, event: ServerEvent) {
        // There may be no receiver.
        let _ = self.events.send(event);
    }
}
