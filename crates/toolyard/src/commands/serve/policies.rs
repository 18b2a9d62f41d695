//! Records in the audit log which policy files a gateway loads.

use toolyard::settings::AuditSetting;
use toolyard_core::{AuditedDecision, ContentHash};

use crate::{
    config::{CliContext, record_decision},
    error::CliError,
};

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
