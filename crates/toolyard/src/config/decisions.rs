//! Records the operator's decisions in the audit log.

use toolyard::settings::AuditSetting;
use toolyard_core::{AuditRecord, AuditedDecision, ContentHash, unix_millis};

use super::CliContext;
use crate::error::CliError;

/// Records a decision of the user of this command. Called before the decision takes effect, so that none is made without a
/// record.
pub(crate) async fn record_decision(
    decision: AuditedDecision,
    subject: &str,
    content: ContentHash,
    context: &CliContext,
) -> Result<(), CliError> {
    record_decision_by(&current_user(), decision, subject, content, context).await
}

/// Records a decision of somebody else, such as the operator of the console.
pub(crate) async fn record_decision_by(
    decided_by: &str,
    decision: AuditedDecision,
    subject: &str,
    content: ContentHash,
    context: &CliContext,
) -> Result<(), CliError> {
    // The log that records a decision is in the store that holds it.
    let is_of_project = matches!(decision, AuditedDecision::ApproveDefinition | AuditedDecision::GiveName);
    let store = if is_of_project { &context.store } else { &context.operator_store };
    let Some(store) = store else {
        if context.settings.audit == AuditSetting::Required {
            return Err(CliError::failed("`audit = \"required\"` needs a store, and there is none")
                .with_hint("set `store` in toolyard.toml, or make the data folder writable"));
        }
        tracing::warn!(decision = decision.label(), subject, "no store: the decision is not audited");
        return Ok(());
    };
    let record = AuditRecord::decision(unix_millis(), decision, decided_by, subject, content);
    Ok(store.append_audit(vec![record]).await?)
}

/// The user id, which unlike the name in the environment cannot be chosen.
pub(crate) fn current_user() -> String {
    format!("cli (user {})", rustix::process::getuid().as_raw())
}
