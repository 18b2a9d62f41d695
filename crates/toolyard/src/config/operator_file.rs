//! The operator's settings file, which commands such as `servers add`, `models add` and `import` edit.

use std::path::{Path, PathBuf};

use toolyard_core::{AuditedDecision, ContentHash};

use super::{
    CliContext,
    decisions::{current_user, record_decision_by},
    files,
    running_hubs::ReloadRequests,
};
use crate::error::CliError;

/// The path and content of the file; the content is empty if it does not exist.
pub(crate) fn read(context: &CliContext) -> Result<(PathBuf, String), CliError> {
    let file = context.operator_file.clone();
    let text = files::read_if_exists(&file)?.unwrap_or_default();
    Ok((file, text))
}

/// Writes the file, records the change, such as `server x added`, in the audit log, and asks running hubs to take it over.
pub(crate) async fn write(
    file: &Path,
    text: &str,
    change: &str,
    context: &CliContext,
) -> Result<(), CliError> {
    write_by(&current_user(), file, text, change, context).await
}

/// Like [`write()`], for somebody else than the user of this command.
pub(crate) async fn write_by(
    changed_by: &str,
    file: &Path,
    text: &str,
    change: &str,
    context: &CliContext,
) -> Result<(), CliError> {
    let subject = format!("{}: {change}", file.display());
    let (decision, content) = (AuditedDecision::ChangeSettings, ContentHash::of(text));
    record_decision_by(changed_by, decision, &subject, content, context).await?;
    files::write(file, text, files::Access::OwnerOnly)?;
    ReloadRequests::listen(file, &context.data_folder).send();
    Ok(())
}
