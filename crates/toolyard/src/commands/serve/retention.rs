//! Removes what the store need not keep any longer, by `[retention]`: one gateway of a store at a time.

use std::time::Duration;

use tokio::time::sleep;
use toolyard::Toolyard;
use toolyard_core::SessionLeases as _;
use toolyard_store::{Removed, Store, StoreError};

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
    let holder = format!("{:016x}", random_number());
    sleep(INTERVAL / 10).await;
    loop {
        match apply(store, toolyard, &holder).await {
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

async fn apply(store: &Store, toolyard: &Toolyard, holder: &str) -> Result<Removed, StoreError> {
    let lease = store.take_lease(LEASE, holder, LEASE_DURATION).await;
    match lease {
        Ok(lease) if lease.holder == holder => store.apply_retention(&toolyard.retention(), REMOVED_BY).await,
        Ok(_) => Ok(Removed::default()),
        Err(error) => Err(StoreError::Database(error.to_string())),
    }
}

fn random_number() -> u64 {
    let mut number = [0; 8];
    // Without random numbers, two gateways may both remove what is old, which harms nobody.
    let _ = getrandom::fill(&mut number);
    u64::from_be_bytes(number)
}
