//! Trust in a project's files: a file counts only with the content that the operator trusted.

use std::path::Path;

use toolyard::SettingsError;
use toolyard_core::{ContentHash, Servers as _, TrustDecision};
use toolyard_store::Store;

use crate::error::CliError;

/// The kind of trust decision that covers settings and mcp.json files.
const TRUST_KIND: &str = "settings";

/// Whether a file is trusted with its current content.
pub(crate) async fn is_trusted(path: &Path, store: Option<&Store>) -> Result<bool, CliError> {
    let Some(store) = store else { return Ok(false) };
    let Ok(current) = trust_decision(path, 0) else { return Ok(false) };
    let decisions = store.trust_decisions(TRUST_KIND).await?;
    Ok(decisions.iter().any(|known| known.subject == current.subject && known.content == current.content))
}

/// The decision to trust a file with its current content.
pub(crate) fn trust_decision(path: &Path, decided_at: i64) -> Result<TrustDecision, SettingsError> {
    let unreadable = |error| SettingsError::Unreadable { path: path.to_owned(), error };
    let canonical = path.canonicalize().map_err(unreadable)?;
    let content = ContentHash::of(std::fs::read(&canonical).map_err(unreadable)?);
    Ok(TrustDecision {
        kind: TRUST_KIND.to_owned(),
        subject: canonical.to_string_lossy().into_owned(),
        content,
        decided_at,
    })
}
