//! The store of a [`Toolyard`](crate::Toolyard) and its background writers.

use std::{path::PathBuf, sync::Arc};

use toolyard_core::{DataOwner, PastRequest, PastRequests as _, SourceId};
use toolyard_hub::HubConfig;
use toolyard_store::{
    AuditConfig, Store, StoreError, StoredAudit, StoredHistory, StoredPastRequests, ToolStatistics,
};

use crate::{Error, Toolyard};

#[derive(Debug)]
pub(super) struct Persistence {
    pub(super) store: Store,
    history: Arc<StoredHistory>,
    past_requests: Arc<StoredPastRequests>,
    audit: Arc<StoredAudit>,
}

impl Persistence {
    pub(super) async fn open(
        store: &Store,
        data_folder: Option<PathBuf>,
        audit_required: bool,
        loads_lazily: bool,
    ) -> Result<Self, StoreError> {
        let history = StoredHistory::open(store).await?;
        let past_requests = match loads_lazily {
            true => StoredPastRequests::open_lazy(store),
            false => StoredPastRequests::open(store).await?,
        };
        let audit = AuditConfig { data_folder, required: audit_required, ..AuditConfig::default() };
        let audit = Arc::new(StoredAudit::start(store, &audit));
        Ok(Self { store: store.clone(), history, past_requests, audit })
    }

    /// Makes a hub use the store.
    pub(super) fn configure(&self, config: &mut HubConfig) {
        config.results = Arc::new(self.store.clone());
        config.history = Arc::clone(&self.history) as _;
        config.audit = Some(Arc::clone(&self.audit) as _);
        config.past_requests = Some(Arc::clone(&self.past_requests) as _);
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.audit.close().await;
        self.history.flush().await?;
        self.past_requests.flush().await
    }
}

impl Toolyard {
    /// The store, if there is one.
    pub fn store(&self) -> Option<&Store> {
        self.persistence.as_ref().map(|persistence| &persistence.store)
    }

    /// Success rates and latencies by tool and source; empty without a store.
    pub fn statistics(&self) -> Vec<ToolStatistics> {
        self.persistence.as_ref().map(|persistence| persistence.history.statistics()).unwrap_or_default()
    }

    /// Statistics and audit records for the HTTP API.
    #[cfg(feature = "gateway")]
    pub(crate) fn stored_records(&self) -> Option<crate::admin::StoredRecords> {
        let persistence = self.persistence.as_ref()?;
        let (store, history) = (persistence.store.clone(), Arc::clone(&persistence.history));
        Some(crate::admin::StoredRecords { store, history, audit: Arc::clone(&persistence.audit) })
    }

    /// The operator's requests for which a tool of a source was called successfully, the oldest first; empty without a store.
    #[doc(hidden)]
    pub fn past_requests(&self, tool: &str, source: &SourceId) -> Vec<String> {
        let past = self.persistence.as_ref().map(|persistence| persistence.past_requests.recent(usize::MAX));
        let is_of_tool = |past: &PastRequest| {
            past.owner == DataOwner::Operator && past.tool == tool && past.source == *source
        };
        past.unwrap_or_default().into_iter().filter(is_of_tool).map(|past| past.request).collect()
    }
}

/// Opens the store of a builder, if it has one.
pub(super) async fn open(
    store: Option<&Store>,
    data_folder: Option<PathBuf>,
    audit_required: bool,
    loads_lazily: bool,
) -> Result<Option<Persistence>, Error> {
    match store {
        Some(store) => Ok(Some(Persistence::open(store, data_folder, audit_required, loads_lazily).await?)),
        None if audit_required => Err(Error::AuditWithoutStore),
        None => Ok(None),
    }
}
