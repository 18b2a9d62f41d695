//! What all servers of one manager share besides their host.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::broadcast;
use toolyard_core::SourceId;

use crate::sync::lock;

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
    /// The resource with this URI changed.
    ResourceUpdated(SourceId, String),
}

/// What all servers of one manager share.
#[derive(Debug)]
pub(super) struct ManagerShared {
    events: broadcast::Sender<ServerEvent>,
    keeps_reconnecting: AtomicBool,
    log_level: Mutex<Option<String>>,
}

impl Default for ManagerShared {
    fn default() -> Self {
        Self {
            events: broadcast::Sender::new(MAX_QUEUED_EVENTS),
            keeps_reconnecting: AtomicBool::new(false),
            log_level: Mutex::default(),
        }
    }
}

impl ManagerShared {
    pub(super) fn publish(&self, event: ServerEvent) {
        // There may be no receiver.
        let _ = self.events.send(event);
    }

    pub(super) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }

    pub(super) fn keep_reconnecting(&self) {
        self.keeps_reconnecting.store(true, Ordering::Release);
    }

    pub(super) fn keeps_reconnecting(&self) -> bool {
        self.keeps_reconnecting.load(Ordering::Acquire)
    }

    pub(super) fn set_log_level(&self, level: &str) {
        *lock(&self.log_level) = Some(level.to_owned());
    }

    pub(super) fn log_level(&self) -> Option<String> {
        lock(&self.log_level).clone()
    }
}
