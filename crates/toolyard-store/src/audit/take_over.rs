//! Appends the spill files of processes that ended to the store.

use std::time::Duration;

use tokio::{task::spawn_blocking, time::sleep};

use super::{
    append::MAX_RECORDS_PER_COMMIT,
    spill::{SpillFile, SpillLocation},
};
use crate::{error::StoreError, sql::Durability, store::Store};

/// How often spill files of processes that ended are looked for.
const TAKE_OVER_INTERVAL: Duration = Duration::from_secs(60);

/// Appends what processes left behind to the store, now and from time to time.
pub(super) async fn take_over(store: Store, location: SpillLocation) {
    loop {
        let location = location.clone();
        match blocking(move || location.take_over()).await {
            Ok(files) => {
                for file in files {
                    if let Err(error) = append_spilled(&store, file).await {
                        tracing::warn!(%error, "failed to append the spill file of an earlier process to the audit log");
                        break;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "failed to look for audit spill files"),
        }
        sleep(TAKE_OVER_INTERVAL).await;
    }
}

async fn append_spilled(store: &Store, mut file: SpillFile) -> Result<(), StoreError> {
    loop {
        let (returned, batches) = blocking(move || {
            let batches = file.read(MAX_RECORDS_PER_COMMIT as u64);
            (file, batches)
        })
        .await;
        file = returned;
        if batches.is_empty() {
            if let Err(error) = blocking(move || file.delete()).await {
                tracing::warn!(%error, "failed to delete an audit spill file");
            }
            return Ok(());
        }
        let count = batches.len();
        // The file is deleted afterwards.
        store.append_audit_batches(batches, Durability::Synced).await?;
        file.acknowledge(count);
    }
}

/// Does blocking work on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(result) => result,
        // The runtime is shutting down, and this task with it.
        Err(_) => std::future::pending().await,
    }
}
