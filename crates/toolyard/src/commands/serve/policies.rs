//! Policies of a running gateway: notices changes in the store, and records in the audit log which files are loaded.

use std::time::Duration;

use tokio::time::sleep;
use toolyard::settings::AuditSetting;
use toolyard_core::{AuditedDecision, ContentHash, PolicyStore as _, StoredPolicy};
use toolyard_store::Store;

use crate::{
    config::{CliContext, record_decision},
    error::CliError,
};

/// How often the store is read. A change counts in every gateway after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Notices changes of the policies in the store, which other processes make.
#[derive(Debug)]
pub(super) struct StoredPolicyWatch {
    store: Option<Store>,
    seen: Option<Vec<StoredPolicy>>,
}

impl StoredPolicyWatch {
    pub(super) async fn start(store: Option<Store>) -> Self {
        let seen = match &store {
            Some(store) => store.stored_policies().await.ok(),
            None => None,
        };
        Self { store, seen }
    }

    /// Completes when the policies differ from those of the last time. Never completes without a store. A store that cannot be
    /// read changes nothing: the policies in effect stay.
    pub(super) async fn changed(&mut self) {
        let Some(store) = &self.store else { return std::future::pending().await };
        loop {
            sleep(POLL_INTERVAL).await;
            let Ok(current) = store.stored_policies().await else { continue };
            if self.seen.as_ref() != Some(&current) {
                self.seen = Some(current);
                return;
            }
        }
    }
}

/// Records in the audit log which policy files a gateway loads.
pub(super) async fn record_policy_files(context: &CliContext) -> Result<(), CliError> {
    for file in &context.settings.policy.files {
        let text = std::fs::read(file).map_err(|error| CliError::file("read", file, error))?;
        let subject = format!("{}: loaded by serve", file.display());
        let recorded =
            record_decision(AuditedDecision::ChangePolicy, &subject, ContentHash::of(text), context).await;
        match recorded {
            Err(error) if context.settings.audit == AuditSetting::Required => return Err(error),
            Err(error) => tracing::warn!(error = error.message(), "the loading of policies is not audited"),
            Ok(()) => {}
        }
    }
    Ok(())
}
