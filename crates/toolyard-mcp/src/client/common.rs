//! What all servers of one manager have in common besides their host: what they tell, and how long they go on.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::broadcast;
use toolyard_core::SourceId;

/// How many events may wait for whoever follows them.
const EVENTS: usize = 1_024;

/// Something that changed of what a server offers besides tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Its prompts.
    PromptsChanged(SourceId),
    /// Its list of resources, of templates or of skills.
    ResourcesChanged(SourceId),
    /// One resource, by its address.
    ResourceUpdated(SourceId, String),
}

/// What all servers of one manager have in common.
#[derive(Debug)]
pub(super) struct Common {
    events: broadcast::Sender<ServerEvent>,
    keeps_reviving: AtomicBool,
    log_level: Mutex<Option<String>>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            events: broadcast::Sender::new(EVENTS),
            keeps_reviving: AtomicBool::new(false),
            log_level: Mutex::default(),
        }
    }
}

impl Common {
    pub(super) fn tell(&self, event: ServerEvent) {
        // Nobody may be interested.
        let _ = self.events.send(event);
    }

    pub(super) fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }

    pub(super) fn keep_reviving(&self) {
        self.keeps_reviving.store(true, Ordering::Release);
    }

    pub(super) fn keeps_reviving(&self) -> bool {
        self.keeps_reviving.load(Ordering::Acquire)
    }

    pub(super) fn set_log_level(&self, level: &str) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level.to_owned());
    }

    pub(super) fn log_level(&self) -> Option<String> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
