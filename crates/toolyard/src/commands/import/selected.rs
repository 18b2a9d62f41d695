//! Imports selected servers for the HTTP API, without questions: untrusted, and never over servers that exist.

use toolyard::{
    Settings,
    gateway::{ImportFile, ImportReport, ImportServer, ImportState},
};
use toolyard_mcp_client::config::{
    ConflictPolicy, ImportPlan, PlannedServer,
    import::{MergedServer, merge_servers, move_secrets},
    plan_import,
};

use super::{
    client_files::{self, ClientFile},
    endpoint_summary, origin_label, secrets_to_store,
};
use crate::{
    config::{CliContext, operator_file},
    error::CliError,
    terminal::pluralize,
};

/// The servers of other clients. Files of a project count only if they are trusted.
pub(in crate::commands) async fn list(context: &CliContext) -> Result<ImportReport, CliError> {
    let files = client_files::read_all(None, true, context).await?;
    let mut merged = merge(&files);
    move_secrets(&mut merged, &context.stored_secrets().read()?);
    let (settings_file, text) = operator_file::read(context)?;
    let plan = plan_import(&text, &merged, ConflictPolicy::Keep)
        .map_err(|error| CliError::usage(format!("{}: {error}", settings_file.display())))?;
    Ok(ImportReport {
        files: files.iter().map(import_file).collect(),
        servers: import_servers(&plan, &merged),
        settings_file: settings_file.display().to_string(),
        written: false,
    })
}

/// Adds the named servers to the operator's settings and returns what was added, or the first name that is none of a new server.
pub(in crate::commands) async fn import(
    names: &[String],
    context: &CliContext,
) -> Result<Result<ImportReport, String>, CliError> {
    let files = client_files::read_all(None, true, context).await?;
    let mut merged = merge(&files);
    merged.retain(|merged| names.contains(&merged.server.name));
    let stored_secrets = context.stored_secrets();
    let moved = move_secrets(&mut merged, &stored_secrets.read()?);
    let (settings_file, text) = operator_file::read(context)?;
    let invalid = |error| CliError::usage(format!("{}: {error}", settings_file.display()));
    let plan = plan_import(&text, &merged, ConflictPolicy::Keep).map_err(invalid)?;
    let is_new = |name: &&String| plan.added.iter().any(|planned| planned.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_new(name)) {
        return Ok(Err(unknown.clone()));
    }
    // Before the settings that refer to them.
    let secrets = secrets_to_store(moved, &plan, false);
    stored_secrets.insert(secrets.into_iter().map(|secret| (secret.name, secret.value)))?;
    let change = format!("{} imported", pluralize(plan.added.len(), "server"));
    operator_file::write(&settings_file, &plan.text, &change, context).await?;
    let now = Settings::parse(&plan.text, &settings_file)?.servers;
    stored_secrets.remove_unused(&Settings::parse(&text, &settings_file)?.servers, &now)?;
    Ok(Ok(ImportReport {
        files: files.iter().map(import_file).collect(),
        servers: import_servers(&plan, &merged),
        settings_file: settings_file.display().to_string(),
        written: true,
    }))
}

fn merge(files: &[ClientFile]) -> Vec<MergedServer> {
    merge_servers(files.iter().map(|file| (file.label(), file.servers.clone())))
}

fn import_file(file: &ClientFile) -> ImportFile {
    ImportFile {
        client: file.label(),
        file: file.path.display().to_string(),
        servers: file.servers.len(),
        problems: file.problems.clone(),
    }
}

fn import_servers(plan: &ImportPlan, merged: &[MergedServer]) -> Vec<ImportServer> {
    let server = |planned: &PlannedServer, state| ImportServer {
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
    let skipped = plan.skipped.iter().map(|skipped| ImportServer {
        name: skipped.name.clone(),
        endpoint: String::new(),
        state: ImportState::Skipped,
        clients: Vec::new(),
        notes: vec![skipped.reason.to_string()],
    });
    let mut servers: Vec<ImportServer> = added.chain(existing).chain(conflicting).chain(skipped).collect();
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers
}
