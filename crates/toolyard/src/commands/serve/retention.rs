//! Removes what the store need not keep any longer, by `[retention]`: one gateway of a store at a time.

use std::time::Duration;

use tokio::time::sleep;
use toolyard::Toolyard;
use toolyard_core::{SessionLeases as _, StorageError};
use toolyard_store::{Removed, Retention, Store};

use crate::commands::setup::process_owner;

/// How often it is done; the first time after a tenth of it.
const INTERVAL: Duration = Duration::from_hours(1);
/// The name of the lease that says which gateway does it.
const LEASE: &str = "retention";
const LEASE_DURATION: Duration = Duration::from_mins(30);
/// Who removes audit records, in the audit log.
const REMOVED_BY: &str = "gateway";

/// Removes old data from time to time. Never completes.
pub(super) async fn keep(toolyard: &Toolyard) {
    let Some(store) = toolyard.store() else { return std::future::pending().await };
    let holder = process_owner();
    sleep(INTERVAL / 10).await;
    loop {
        match apply(store, &toolyard.retention(), &holder).await {
            Ok(removed) if removed.is_empty() => {}
            Ok(Removed { audit_records, runs, results }) => {
                tracing::info!(audit_records, runs, results, "old data removed from the store");
            }
            Err(error) => {
                tracing::warn!(%error, "old data was not removed from the store; it is tried again");
            }
        }
        sleep(INTERVAL).await;
    }
}

/// Removes old data if no other gateway of the store does it now.
async fn apply(store: &Store, retention: &Retention, holder: &str) -> Result<Removed, StorageError> {
    let lease = store.take_lease(LEASE, holder, LEASE_DURATION).await?;
    if lease.holder != holder {
        return Ok(Removed::default());
    }
    Ok(store.apply_retention(retention, REMOVED_BY).await?)
}

#[cfg(test)]
mod tests {
    use toolyard_core::{AuditRecord, AuditedDecision, ContentHash};
    use toolyard_store::Location;

    use super::*;

    #[tokio::test]
    async fn one_gateway_of_a_store_removes_old_data() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
        let old = AuditRecord::decision(1, AuditedDecision::Approve, "ada", "call", ContentHash::of("x"));
        store.append_audit(vec![old]).await.unwrap();
        let retention = Retention { audit: Some(Duration::from_hours(24)), ..Retention::default() };
        let lease = store.take_lease(LEASE, "other", LEASE_DURATION).await.unwrap();
        assert_eq!(apply(&store, &retention, "this").await.unwrap(), Removed::default());
        store.release_lease(LEASE, lease.fence).await.unwrap();
        assert_eq!(apply(&store, &retention, "this").await.unwrap().audit_records, 1);
        assert_eq!(apply(&store, &retention, "this").await.unwrap(), Removed::default());
    }
}
