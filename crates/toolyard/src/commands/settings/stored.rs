//! `toolyard settings stored`, `store`, `history` and `restore`: versions of the settings in the store.

use std::path::Path;

use serde_json::json;
use toolyard::settings::SettingsLayer;
use toolyard_core::{SettingsVersion, StoredSettings as _};

use crate::{
    commands::{
        runs::format_timestamp,
        servers::edit::{print_change, print_reload_note},
    },
    config::{CliContext, SettingsDocument, SettingsPlace},
    error::CliError,
    terminal::Output,
};

/// Prints the settings of a version; of the one in effect by default.
pub(super) async fn show(
    version: Option<i64>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let found = match version {
        Some(number) => find(number, context).await?,
        None => match context.require_operator_store()?.latest_settings().await.map_err(CliError::store)? {
            Some(latest) => latest,
            None if output.is_json() => {
                output.json(&json!({"version": 0, "text": ""}));
                return Ok(());
            }
            None => {
                output.message("The store has no settings yet. Add a server to them: toolyard servers add --store NAME …");
                return Ok(());
            }
        },
    };
    if output.is_json() {
        output.json(&json!({"version": found.number, "text": found.text}));
    } else {
        output.verbatim(found.text.trim_end());
    }
    Ok(())
}

/// Replaces the settings in the store by those of a file.
pub(super) async fn store(file: &Path, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let text = std::fs::read_to_string(file).map_err(|error| CliError::file("read", file, error))?;
    let layer = SettingsLayer::parse(&text, file)?;
    let (_, problems) = layer.settings().servers(&context.config_folder);
    if let Some(problem) = problems.into_iter().next() {
        return Err(CliError::usage(format!("{}: {problem}", file.display())));
    }
    let servers = &layer.settings().servers;
    for warning in servers.iter().flat_map(|(name, settings)| settings.warnings(name)) {
        output.message(&format!("note: {warning}"));
    }
    let document = SettingsDocument::read(true, context).await?;
    replace(document, &text, "replaced by a file", "stored", context, output).await
}

/// Makes the settings of an earlier version those in effect, as a new version.
pub(super) async fn restore(version: i64, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let found = find(version, context).await?;
    let document = SettingsDocument::read(true, context).await?;
    if document.text == found.text {
        output.report(&json!({"version": version}), &format!("version {version} is in effect already"));
        return Ok(());
    }
    let change = format!("version {version} restored");
    replace(document, &found.text, &change, "restored", context, output).await
}

async fn replace(
    document: SettingsDocument,
    text: &str,
    change: &str,
    action: &str,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let place: SettingsPlace = document.replace(text, change, context).await?;
    print_change(output, "settings", "settings", action, &place);
    print_reload_note(&place, context, output);
    Ok(())
}

/// Lists versions, newest first.
pub(super) async fn history(limit: usize, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let versions =
        context.require_operator_store()?.settings_versions(limit).await.map_err(CliError::store)?;
    if output.is_json() {
        let entry = |version: &SettingsVersion| {
            json!({
                "version": version.number,
                "changed_at": version.changed_at,
                "changed_by": version.changed_by,
                "change": version.change,
            })
        };
        output.json(&versions.iter().map(entry).collect::<Vec<_>>());
    } else if versions.is_empty() {
        output.message(
            "The store has no settings yet. Add a server to them: toolyard servers add --store NAME …",
        );
    } else {
        let row = |version: &SettingsVersion| {
            [
                version.number.to_string(),
                format_timestamp(version.changed_at),
                version.changed_by.clone(),
                version.change.clone(),
            ]
        };
        output.table(["VERSION", "WHEN", "BY", "CHANGE"], versions.iter().map(row).collect());
    }
    Ok(())
}

async fn find(number: i64, context: &CliContext) -> Result<SettingsVersion, CliError> {
    let found = context.require_operator_store()?.settings_version(number).await.map_err(CliError::store)?;
    found.ok_or_else(|| {
        CliError::usage(format!("the settings in the store have no version {number}"))
            .with_hint("list versions: toolyard settings history")
    })
}
