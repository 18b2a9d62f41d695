//! [`MainTools`]: the tools of the main endpoint for the HTTP API.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use toolyard_core::Journal;
use toolyard_hub::{Profile, ToolHub};

use super::HubService;

/// The tools that clients of the main endpoint can call, for callers of the HTTP API. Clones share the profile, so that both
/// follow a reload of the settings.
#[derive(Clone)]
pub struct MainTools {
    hub: Arc<ToolHub>,
    journal: Option<Arc<dyn Journal>>,
    service: Arc<ArcSwap<HubService>>,
}

impl MainTools {
    pub(crate) fn new(hub: Arc<ToolHub>, journal: Option<Arc<dyn Journal>>, profile: Profile) -> Self {
        let service = Arc::new(ArcSwap::from_pointee(hub_service(&hub, journal.as_ref(), profile)));
        Self { hub, journal, service }
    }

    /// Replaces the profile. Calls in flight finish with the previous one.
    pub fn set_profile(&self, profile: Profile) {
        self.service.store(Arc::new(hub_service(&self.hub, self.journal.as_ref(), profile)));
    }

    pub(crate) fn service(&self) -> Arc<HubService> {
        self.service.load_full()
    }
}

impl fmt::Debug for MainTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MainTools").field("service", &self.service.load()).finish_non_exhaustive()
    }
}

/// The tools of a profile; calls are journaled if there is a journal.
pub(crate) fn hub_service(
    hub: &Arc<ToolHub>,
    journal: Option<&Arc<dyn Journal>>,
    profile: Profile,
) -> HubService {
    let service = HubService::new(Arc::clone(hub), profile);
    match journal {
        Some(journal) => {
            let lease_owner = format!("serve-{}", std::process::id());
            service.with_journal(Arc::clone(journal), lease_owner)
        }
        None => service,
    }
}
