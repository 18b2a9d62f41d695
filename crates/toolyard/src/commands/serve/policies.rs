//! Policies of a running gateway: follows changes in the store, and records in the audit log which files are loaded.

use std::time::Duration;

use tokio::time::sleep;
use toolyard::{Toolyard, settings::AuditSetting};
use toolyard_core::{AuditedDecision, ContentHash};

use crate::{
    config::{CliContext, record_decision},
    error::CliError,
    terminal::logging::SETTINGS_TARGET,
};

/// How often the store is read. A change counts in every gateway after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Puts every change of the policies in the store into effect, which other processes make. A store that cannot be read, or
/// policies that cannot be used, change nothing; they are tried again. Never completes.
pub(super) async fn follow_stored_policies(toolyard: &Toolyard) {
    let mut reported = None;
    loop {
        sleep(POLL_INTERVAL).await;
        match toolyard.follow_stored_policies().await {
            Ok(is_changed) => {
                reported = None;
                if is_changed {
                    tracing::info!(target: SETTINGS_TARGET, "policies of the store changed");
                }
            }
            Err(error) => {
                // Not every two seconds.
                let error = Some(error.to_string());
                if reported != error {
                    reported = error;
                    let error = reported.as_deref().unwrap_or_default();
                    tracing::error!(target: SETTINGS_TARGET, "the previous policies of the store stay in effect: {error}");
                }
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
