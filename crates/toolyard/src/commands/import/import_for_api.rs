//! Imports selected servers for the HTTP API, without questions: untrusted, and never over servers that exist.

use std::collections::BTreeMap;

use toolyard::{Settings, SettingsError};
use toolyard_gateway::{ClientConfigFile, ImportReport, ImportState, ImportableServer};
use toolyard_mcp_client::{
    SecretText,
    config::{
        ConflictPolicy, ImportPlan, PlannedServer,
        import::{MergedServer, merge_servers, move_secrets},
        plan_import,
    },
};

use super::{
    client_files::{self, ClientFile, UntrustedFiles},
    endpoint_summary, origin_label, secrets_to_store,
};
use crate::{
    config::{CliContext, StoredSecrets, operator_file, secrets::SecretsError},
    error::CliError,
    terminal::pluralize,
};

/// The stored secrets. The gateway serves others while the keychain may wait for its owner.
async fn read_secrets(secrets: &StoredSecrets) -> Result<BTreeMap<String, SecretText>, CliError> {
    let secrets = secrets.clone();
    let reading = tokio::task::spawn_blocking(move || secrets.read()).await;
    Ok(reading.map_err(|error| CliError::failed(format!("failed to read stored secrets: {error}")))??)
}

/// The servers of other clients. Files of a project count only if they are trusted.
pub(in crate::commands) async fn list(context: &CliContext) -> Result<ImportReport, CliError> {
    let files = client_files::read_all(None, UntrustedFiles::Skip, context).await?;
    let mut merged = merge(&files);
    move_secrets(&mut merged, &read_secrets(&context.stored_secrets()).await?);
    let (settings_file, text) = operator_file::read(context)?;
    let plan = plan_import(&text, &merged, ConflictPolicy::Keep)
        .map_err(|error| CliError::usage(format!("{}: {error}", settings_file.display())))?;
    Ok(ImportReport {
        files: files.iter().map(import_file).collect(),
        servers: importable_servers(&plan, &merged),
        settings_file: settings_file.display().to_string(),
        written: false,
    })
}

/// Why servers were not imported.
#[derive(Debug)]
pub(in crate::commands) enum ImportError {
    /// No server of the files has this name.
    Unknown(String),
    /// The settings have the server already.
    Existing(String),
    /// The settings have another server of this name.
    Conflicting(String),
    /// The files or the settings cannot be read or written, or the server cannot be imported.
    Failed(CliError),
}

impl From<CliError> for ImportError {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl From<SecretsError> for ImportError {
    fn from(error: SecretsError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<SettingsError> for ImportError {
    fn from(error: SettingsError) -> Self {
        Self::Failed(error.into())
    }
}

/// Adds the named servers to the operator's settings and returns what was added. If one of them cannot be added, none is.
pub(in crate::commands) async fn import(
    names: &[String],
    imported_by: &str,
    context: &CliContext,
) -> Result<ImportReport, ImportError> {
    let files = client_files::read_all(None, UntrustedFiles::Skip, context).await?;
    let mut merged = merge(&files);
    merged.retain(|merged| names.contains(&merged.server.name));
    let stored_secrets = context.stored_secrets();
    let moved = move_secrets(&mut merged, &read_secrets(&stored_secrets).await?);
    let (settings_file, text) = operator_file::read(context)?;
    let invalid = |error| CliError::usage(format!("{}: {error}", settings_file.display()));
    let plan = plan_import(&text, &merged, ConflictPolicy::Keep).map_err(invalid)?;
    names.iter().try_for_each(|name| check_new(name, &plan))?;
    // Before the settings that refer to them.
    let secrets = secrets_to_store(moved, &plan, false);
    stored_secrets.insert(secrets.into_iter().map(|secret| (secret.name, secret.value)))?;
    let change = format!("{} imported", pluralize(plan.added.len(), "server"));
    operator_file::write_by(imported_by, &settings_file, &plan.text, &change, context).await?;
    let now = Settings::parse(&plan.text, &settings_file)?.servers;
    stored_secrets.remove_unused(&Settings::parse(&text, &settings_file)?.servers, &now)?;
    Ok(ImportReport {
        files: files.iter().map(import_file).collect(),
        servers: importable_servers(&plan, &merged),
        settings_file: settings_file.display().to_string(),
        written: true,
    })
}

/// Checks that a server will be added.
fn check_new(name: &str, plan: &ImportPlan) -> Result<(), ImportError> {
    if plan.added.iter().any(|planned| planned.name == name) {
        return Ok(());
    }
    if plan.existing.iter().any(|planned| planned.name == name) {
        return Err(ImportError::Existing(name.to_owned()));
    }
    if plan.conflicting.iter().any(|conflict| conflict.server.name == name) {
        return Err(ImportError::Conflicting(name.to_owned()));
    }
    match plan.skipped.iter().find(|skipped| skipped.name == name) {
        Some(skipped) => {
            let message = format!("server `{name}` cannot be imported: {}", skipped.reason);
            Err(ImportError::Failed(CliError::usage(message)))
        }
        None => Err(ImportError::Unknown(name.to_owned())),
    }
}

fn merge(files: &[ClientFile]) -> Vec<MergedServer> {
    merge_servers(files.iter().map(|file| (file.label(), file.servers.clone())))
}

fn import_file(file: &ClientFile) -> ClientConfigFile {
    ClientConfigFile {
        client: file.label(),
        file: file.path.display().to_string(),
        servers: file.servers.len(),
        problems: file.problems.clone(),
    }
}

fn importable_servers(plan: &ImportPlan, merged: &[MergedServer]) -> Vec<ImportableServer> {
    let server = |planned: &PlannedServer, state| ImportableServer {
        name: planned.name.clone(),
        endpoint: endpoint_summary(merged, &planned.name),
        state,
        clients: planned.found_in.iter().map(|origin| origin_label(origin, &planned.name)).collect(),
        notes: planned.notes.clone(),
    };
    let added = plan.added.iter().map(|planned| server(planned, ImportState::New));
    let existing = plan.existing.iter().map(|planned| server(planned, ImportState::Existing));
    let conflicting =
        plan.conflicting.iter().map(|conflict| server(&conflict.server, ImportState::Conflicting));
    let skipped = plan.skipped.iter().map(|skipped| ImportableServer {
        name: skipped.name.clone(),
        endpoint: String::new(),
        state: ImportState::Skipped,
        clients: Vec::new(),
        notes: vec![skipped.reason.to_string()],
    });
    let mut servers: Vec<ImportableServer> =
        added.chain(existing).chain(conflicting).chain(skipped).collect();
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}

#[cfg(test)]
mod tests {
    use toolyard_mcp_client::config::{
        FileContext,
        import::{Client, import_servers},
    };

    use super::*;

    #[test]
    fn only_servers_that_the_settings_do_not_have_are_imported() {
        let text = r#"{"mcpServers": {
            "new": {"command": "npx", "args": ["one"]},
            "same": {"command": "npx", "args": ["two"]},
            "other": {"command": "npx", "args": ["three"]}
        }}"#;
        let file_context = FileContext { workspace: None, read_env_file: None };
        let found = import_servers(Client::Cursor, text, file_context).unwrap().servers;
        let merged = merge_servers([("Cursor".to_owned(), found)]);
        let settings =
            "[servers.same]\ncommand = \"npx\"\nargs = [\"two\"]\n[servers.other]\ncommand = \"uvx\"\n";
        let plan = plan_import(settings, &merged, ConflictPolicy::Keep).unwrap();
        assert!(check_new("new", &plan).is_ok());
        assert!(matches!(check_new("same", &plan), Err(ImportError::Existing(_))));
        assert!(matches!(check_new("other", &plan), Err(ImportError::Conflicting(_))));
        assert!(matches!(check_new("none", &plan), Err(ImportError::Unknown(_))));
    }
}
