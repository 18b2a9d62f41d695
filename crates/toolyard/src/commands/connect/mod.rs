//! `toolyard connect`: points a client at Toolyard in place of the servers that were imported from it, and undoes that.
//!
//! - `coverage`: which servers of a client Toolyard has, too.
//! - `claude_permissions`: tools that Claude Code's own rules deny.
//! - `client_profile`: the profile that offers a client what it had.
//! - `profile_selection`: which profile it gets, and the change of the settings.
//! - `entry`: Toolyard's own entry in the client's file.
//! - `undo_record`: what is needed to undo the change.
//! - `report`: what the user is told.

mod claude_permissions;
mod client_profile;
mod coverage;
pub(super) mod entry;
mod profile_selection;
mod report;
pub(super) mod undo_record;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp_client::config::{
    DocumentError, FileContext, ServerSettings, ToolFilter,
    import::{
        Client, ClientFileEdit, ClientFileError, InputEdit, PathRoot, client_servers, edit_client_file,
        import_servers,
    },
    is_private_reference,
};

use self::{
    claude_permissions::DeniedTools,
    coverage::compare,
    entry::{GatewayConnection, OWN_NAME, TOKEN_INPUT, entry, is_own, token_input},
    profile_selection::{SettingsChange, remove_created_profile, select_profile},
    report::{redacted_lines, report, report_undo},
    undo_record::{CreatedProfile, RECORD_FOLDER, TextPatch, UndoRecord},
};
use crate::{
    cli::ConnectArgs,
    commands::{
        import::client_files::{CURRENT_SYSTEM, base_folder, home_folder, read_env_file},
        line_diff::changed_lines,
        own_program::installed_program,
    },
    config::{CliContext, files},
    error::CliError,
    terminal::{Output, confirm},
};

const CLIENTS: [Client; 6] = [
    Client::ClaudeCode,
    Client::ClaudeDesktop,
    Client::Cursor,
    Client::VsCode,
    Client::Codex,
    Client::Gemini,
];

impl FileChange {
    fn is_unchanged(&self) -> bool {
        self.before == self.after
    }
}

/// Digits of a file's hash in the name of its undo record.
const FILE_HASH_DIGITS: usize = 12;

/// A planned change of a client's file.
struct FileChange {
    client: Client,
    /// The client's name as given on the command line.
    argument: String,
    file: PathBuf,
    /// The file of the undo record.
    record_file: PathBuf,
    before: String,
    after: String,
    /// Lines that Toolyard adds; all others may hold secrets.
    own_lines: String,
    servers: ClientServers,
    /// The profile that the client gets; all tools when absent.
    profile: Option<String>,
}

/// The servers of a client's file, by what becomes of them. Names are those in the file.
#[derive(Debug, Default)]
struct ClientServers {
    /// Servers that are removed from the file, or restored to it.
    moved: Map<String, Value>,
    /// The servers of Toolyard that take the place of the removed ones, and the tools of each that the client may use.
    replacements: BTreeMap<String, ToolFilter>,
    /// Removed servers that have another name in Toolyard.
    renamed: Vec<(String, String)>,
    /// Servers that stay, because Toolyard does not have them.
    unknown: Vec<String>,
    /// Servers that stay, because the client or Toolyard does not use them.
    disabled: Vec<String>,
    /// Servers that stay, because these variables are not set for Toolyard.
    missing_variables: Vec<(String, Vec<String>)>,
    /// Toolyard's own entries.
    own: Vec<String>,
    /// Environment variables that the replacements need.
    needed_variables: BTreeSet<String>,
}

pub(super) async fn run(
    arguments: &ConnectArgs,
    config: Option<&Path>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let client = parse_client(&arguments.client)?;
    if client == Client::ClaudeDesktop && arguments.http.is_some() {
        let message = "Claude Desktop takes no URLs from its file: it skips such entries, or does not start";
        return Err(CliError::usage(message)
            .with_hint("omit --http: Claude Desktop then starts `toolyard serve --stdio` itself"));
    }
    let chosen_file = arguments.file.as_deref().map(canonical_path).transpose()?;
    let record_file = record_file(client, chosen_file.as_deref(), context);
    let folder = chosen_file.as_deref().map(|file| base_folder(client, file));
    let file = chosen_file.map_or_else(|| default_file(client), Ok)?;
    let record = UndoRecord::read(&record_file, &context.stored_secrets())?;
    if arguments.undo {
        let Some(record) = record else {
            let message = format!("{} is not connected to Toolyard", client.display_name());
            return Err(CliError::usage(message)
                .with_hint(format!("connect it: toolyard connect {}", arguments.client)));
        };
        return undo(client, arguments, &record_file, &record, context, output).await;
    }
    let text = files::read_if_exists(&file)?;
    let before = text.clone().unwrap_or_default();
    let file_context = FileContext {
        workspace: folder.as_deref().and_then(Path::to_str),
        read_env_file: Some(&read_env_file),
    };
    let servers = classify_servers(client, &file, &before, file_context, context)?;
    let selection = select_profile(client, arguments, &record_file, record.as_ref(), &servers, context)?;
    let profile = selection.as_ref().map(|selection| selection.name.clone());
    let connection = connection(arguments, profile.as_deref(), &servers, config)?;
    let settings_change = match selection.and_then(|selection| selection.created) {
        Some(created) => Some(SettingsChange::new(created)?),
        None => None,
    };
    let change = plan_change(client, arguments, (file, record_file), before, servers, &connection, profile)?;
    let is_confirmed = confirm_change(&change, settings_change.as_ref(), arguments, output)?;
    if is_confirmed {
        if let Some(settings_change) = &settings_change {
            settings_change.write(context).await?;
        }
        let created = settings_change.map(|settings_change| settings_change.profile);
        let record = merge_records(record, &change, text.is_some(), created);
        check_unchanged(&change)?;
        // The undo record first, so that the change can always be undone.
        record.write(&change.record_file, &context.stored_secrets())?;
        files::write(&change.file, &change.after, files::Access::Default)?;
    }
    report(&change, &connection, is_confirmed, output);
    Ok(())
}

/// Sorts the servers of a client's file.
fn classify_servers(
    client: Client,
    file: &Path,
    text: &str,
    file_context: FileContext<'_>,
    context: &CliContext,
) -> Result<ClientServers, CliError> {
    let invalid = |error: &dyn std::fmt::Display| invalid_file(file, error);
    match import_servers(client, text, file_context) {
        Ok(_) | Err(DocumentError::NoServers { .. }) => {}
        Err(_) if text.trim().is_empty() => {}
        Err(error) => return Err(invalid(&error)),
    }
    let existing = client_servers(client, text).map_err(|error| invalid(&error))?;
    let secrets = context.stored_secrets();
    let own_servers = &context.server_settings;
    let coverage = compare(client, &existing, own_servers, file_context, |name| secrets.variable(name));
    let denied = match client {
        Client::ClaudeCode => {
            let settings = files::read_if_exists(&home_folder()?.join(claude_permissions::SETTINGS_FILE))?;
            DeniedTools::parse(&settings.unwrap_or_default())
        }
        _ => DeniedTools::default(),
    };
    let mut servers = ClientServers::default();
    let mut filters: BTreeMap<String, Vec<ToolFilter>> = BTreeMap::new();
    for (name, server) in &existing {
        if is_own(name, server) {
            servers.own.push(name.clone());
        } else if let Some(covered) = coverage.covered.get(name.as_str()) {
            servers.moved.insert(name.clone(), server.clone());
            filters.entry(covered.name.clone()).or_default().push(denied.restrict(name, &covered.tools));
            if covered.name != *name {
                servers.renamed.push((name.clone(), covered.name.clone()));
            }
        } else if name == OWN_NAME {
            return Err(invalid(&format!("it has a different server named `{OWN_NAME}`")));
        } else if let Some(variables) = coverage.missing_variables.get(name.as_str()) {
            servers.missing_variables.push((name.clone(), variables.iter().cloned().collect()));
        } else if coverage.disabled.contains(name.as_str()) {
            servers.disabled.push(name.clone());
        } else {
            servers.unknown.push(name.clone());
        }
    }
    let required =
        filters.keys().filter_map(|name| own_servers.get(name)).flat_map(ServerSettings::required_variables);
    servers.needed_variables = required.filter(|name| !is_private_reference(name)).collect();
    // Two entries of one server: the client could use what either of them allowed.
    let union = |(name, filters): (String, Vec<ToolFilter>)| (name, ToolFilter::union(&filters));
    servers.replacements = filters.into_iter().map(union).collect();
    Ok(servers)
}

fn invalid_file(file: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::usage(format!("cannot change {}: {error}", file.display()))
}

/// The change of a client's file.
fn plan_change(
    client: Client,
    arguments: &ConnectArgs,
    (file, record_file): (PathBuf, PathBuf),
    before: String,
    servers: ClientServers,
    connection: &GatewayConnection,
    profile: Option<String>,
) -> Result<FileChange, CliError> {
    let own_entry = entry(client, connection);
    let obsolete_names = servers.own.iter().map(String::as_str).filter(|name| *name != OWN_NAME);
    let remove = servers.moved.keys().map(String::as_str).chain(obsolete_names).collect();
    let prompt = token_input();
    let input = Some(InputEdit {
        id: TOKEN_INPUT,
        input: matches!(connection, GatewayConnection::Http(_)).then_some(&prompt),
    });
    let edit = ClientFileEdit { remove, insert: vec![(OWN_NAME, &own_entry)], input };
    let after = edit_client_file(client, &before, &edit).map_err(|error| invalid_file(&file, &error))?;
    let own_lines = edit_client_file(
        client,
        "",
        &ClientFileEdit { remove: Vec::new(), insert: vec![(OWN_NAME, &own_entry)], input },
    );
    Ok(FileChange {
        client,
        argument: arguments.client.clone(),
        file,
        record_file,
        before,
        after,
        own_lines: own_lines.unwrap_or_default(),
        servers,
        profile,
    })
}

/// Undoes a connection: byte for byte if the file was not changed since; otherwise the own entry is removed and the removed
/// servers are restored.
async fn undo(
    client: Client,
    arguments: &ConnectArgs,
    record_file: &Path,
    record: &UndoRecord,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let before = files::read_if_exists(&record.file)?.unwrap_or_default();
    let original = record.original(&before);
    let is_file_removed = original.is_some() && !record.existed;
    let after = match original {
        Some(original) => original,
        None => without_own_entry(client, &before, record).map_err(|error| {
            let message = format!("cannot change {}: {error}", record.file.display());
            let hint = "correct the file, then run the same command again: it puts the removed servers back";
            CliError::failed(message).with_hint(hint)
        })?,
    };
    let change = FileChange {
        client,
        argument: arguments.client.clone(),
        file: record.file.clone(),
        record_file: record_file.to_owned(),
        before,
        after,
        own_lines: String::new(),
        servers: ClientServers { moved: record.moved.clone(), ..ClientServers::default() },
        profile: None,
    };
    let is_written = confirm_change(&change, None, arguments, output)?;
    if is_written {
        check_unchanged(&change)?;
        if is_file_removed {
            remove_file(&change.file)?;
        } else {
            files::write(&change.file, &change.after, files::Access::Default)?;
        }
        if let Some(profile) = &record.profile {
            remove_created_profile(profile, context).await?;
        }
        remove_file(record_file)?;
    }
    report_undo(&change, is_written, output);
    Ok(())
}

fn without_own_entry(client: Client, text: &str, record: &UndoRecord) -> Result<String, ClientFileError> {
    let existing = client_servers(client, text)?;
    let remove = existing.iter().filter(|(name, server)| is_own(name, server)).map(|(name, _)| name.as_str());
    let restored = record.moved.iter().filter(|(name, _)| !existing.contains_key(*name));
    let insert = restored.map(|(name, server)| (name.as_str(), server)).collect();
    edit_client_file(
        client,
        text,
        &ClientFileEdit {
            remove: remove.collect(),
            insert,
            input: Some(InputEdit { id: TOKEN_INPUT, input: None }),
        },
    )
}

/// The record that undoes this change, together with an earlier one of the same file. If the earlier record moved no
/// servers and the file no longer contains Toolyard's entry, the user has replaced the file: the earlier record is discarded.
fn merge_records(
    record: Option<UndoRecord>,
    change: &FileChange,
    existed: bool,
    profile: Option<CreatedProfile>,
) -> UndoRecord {
    let new_record = || {
        let patch = TextPatch::between(&change.before, &change.after);
        UndoRecord::new(&change.file, existed, change.servers.moved.clone(), Some(patch))
    };
    let Some(mut earlier) = record.filter(|record| record.file == change.file) else {
        return new_record().with_profile(profile);
    };
    if change.servers.own.is_empty() && earlier.moved.is_empty() {
        return new_record().with_profile(profile.or(earlier.profile));
    }
    let patch = earlier.original(&change.before).map(|original| TextPatch::between(&original, &change.after));
    earlier.moved.extend(change.servers.moved.clone());
    let profile = profile.or(earlier.profile);
    UndoRecord::new(&change.file, earlier.existed, earlier.moved, patch).with_profile(profile)
}

/// Shows the change and asks for confirmation, unless `--yes`. Returns whether to write it.
fn confirm_change(
    change: &FileChange,
    settings_change: Option<&SettingsChange>,
    arguments: &ConnectArgs,
    output: &Output,
) -> Result<bool, CliError> {
    if change.is_unchanged() {
        return Ok(false);
    }
    let lines = redacted_lines(change);
    let needs_confirmation = !arguments.yes && !arguments.dry_run;
    if !output.is_json() && (needs_confirmation || arguments.dry_run) {
        output.message(&format!("Changes to {}:", change.file.display()));
        lines.iter().for_each(|line| output.line(line));
        if let Some(settings_change) = settings_change {
            output.message(&format!("Changes to {}:", settings_change.profile.settings_file.display()));
            let lines = changed_lines(&settings_change.before, &settings_change.after);
            lines.iter().for_each(|line| output.line(line));
        }
    }
    if arguments.dry_run {
        return Ok(false);
    }
    if needs_confirmation && !confirm(&format!("Change {}?", change.file.display()), "nothing was changed")? {
        return Err(CliError::denied("nothing was changed"));
    }
    Ok(true)
}

fn connection(
    arguments: &ConnectArgs,
    profile: Option<&str>,
    servers: &ClientServers,
    config: Option<&Path>,
) -> Result<GatewayConnection, CliError> {
    if let Some(url) = &arguments.http {
        let url = url.trim_end_matches('/');
        let path = profile.map(|profile| format!("/{profile}")).unwrap_or_default();
        return Ok(GatewayConnection::Http(format!("{url}{path}")));
    }
    let command = installed_program()?;
    let mut args = Vec::new();
    if let Some(config) = config {
        let config = config.canonicalize().map_err(|error| CliError::file("find", config, error))?;
        args.extend(["--config".to_owned(), config.display().to_string()]);
    }
    args.extend(["serve", "--stdio"].map(str::to_owned));
    if let Some(profile) = profile {
        args.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    let command = command.display().to_string();
    Ok(GatewayConnection::Stdio {
        command,
        args,
        variables: servers.needed_variables.iter().cloned().collect(),
    })
}

fn parse_client(name: &str) -> Result<Client, CliError> {
    let id = if name == "claude" { Client::ClaudeCode.id() } else { name };
    CLIENTS.into_iter().find(|client| client.id() == id).ok_or_else(|| {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.id()).collect();
        CliError::usage(format!("client `{name}` is not known"))
            .with_hint(format!("known clients: claude, {}", known.join(", ")))
    })
}

/// The file of a client's user-level servers.
fn default_file(client: Client) -> Result<PathBuf, CliError> {
    let home = home_folder()?;
    let is_user_level = |path: &str| client != Client::VsCode || path.ends_with("/User/mcp.json");
    let mut candidates = client
        .config_paths_on(CURRENT_SYSTEM)
        .filter(|candidate| candidate.root == PathRoot::Home && is_user_level(candidate.path));
    let candidate = candidates.next().ok_or_else(|| {
        CliError::usage(format!(
            "the configuration file of {} on this system is not known",
            client.display_name()
        ))
        .with_hint("pass it with --file FILE")
    })?;
    Ok(home.join(candidate.path))
}

fn record_file(client: Client, file: Option<&Path>, context: &CliContext) -> PathBuf {
    let name = match file {
        None => client.id().to_owned(),
        Some(file) => {
            let hash = ContentHash::of(file.to_string_lossy().as_bytes()).to_string();
            format!("{}-{}", client.id(), hash.get(..FILE_HASH_DIGITS).unwrap_or_default())
        }
    };
    context.data_folder.join(RECORD_FOLDER).join(format!("{name}.json"))
}

/// The canonical path of a file that may not exist yet.
fn canonical_path(file: &Path) -> Result<PathBuf, CliError> {
    let folder_error =
        |error| CliError::usage(format!("failed to find the folder of {}: {error}", file.display()));
    let path = std::path::absolute(file).map_err(folder_error)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize().map_err(folder_error)?.join(name)),
        _ => Ok(path),
    }
}

/// Fails if the file was changed since it was read: clients may write to it at any time.
fn check_unchanged(change: &FileChange) -> Result<(), CliError> {
    if files::read_if_exists(&change.file)?.unwrap_or_default() == change.before {
        return Ok(());
    }
    let message = format!("{} changed while you were asked; nothing was written", change.file.display());
    Err(CliError::failed(message).with_hint("run the same command again"))
}

fn remove_file(file: &Path) -> Result<(), CliError> {
    std::fs::remove_file(file).map_err(|error| CliError::file("remove", file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_removal_names_the_file_that_could_not_be_removed() {
        let file = Path::new("/nonexistent/client/mcp.json");
        let error = remove_file(file).unwrap_err();
        assert!(error.message().starts_with("failed to remove /nonexistent/client/mcp.json: "), "{error:?}");
    }
}
