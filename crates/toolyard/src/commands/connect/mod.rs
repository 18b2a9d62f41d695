//! `toolyard connect`: points a client at Toolyard in place of the servers that were imported from it, and undoes that.

mod coverage;
pub(super) mod entry;
mod undo_record;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolyard_core::ContentHash;
use toolyard_mcp_client::config::{
    DocumentError, FileContext,
    import::{
        Client, ClientFileEdit, ClientFileError, InputEdit, PathRoot, client_servers, edit_client_file,
        import_servers,
    },
};

use self::{
    coverage::compare,
    entry::{GatewayConnection, OWN_NAME, TOKEN_INPUT, TOKEN_VARIABLE, entry, is_own, token_input},
    undo_record::{TextPatch, UndoRecord},
};
use crate::{
    cli::ConnectArgs,
    commands::{
        import::client_files::{CURRENT_SYSTEM, home_folder},
        line_diff::{changed_lines, without_value},
    },
    config::{CliContext, files},
    error::CliError,
    terminal::{Output, confirm, pluralize},
};

const CLIENTS: [Client; 6] = [
    Client::ClaudeCode,
    Client::ClaudeDesktop,
    Client::Cursor,
    Client::VsCode,
    Client::Codex,
    Client::Gemini,
];

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
    /// Servers that are removed from the file, or restored to it.
    moved: Vec<String>,
    /// Servers that stay, because Toolyard does not have them.
    unknown: Vec<String>,
    /// Servers that stay, because these variables are not set for Toolyard.
    missing_variables: Vec<(String, Vec<String>)>,
}

pub(super) fn run(
    arguments: &ConnectArgs,
    config: Option<&Path>,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let client = parse_client(&arguments.client)?;
    let chosen_file = arguments.file.as_deref().map(canonical_path).transpose()?;
    let record_file = record_file(client, chosen_file.as_deref(), context);
    let file = chosen_file.map_or_else(|| default_file(client), Ok)?;
    let record = UndoRecord::read(&record_file)?;
    if arguments.undo {
        let Some(record) = record else {
            let message = format!("{} is not connected to Toolyard", client.display_name());
            return Err(CliError::usage(message)
                .with_hint(format!("connect it: toolyard connect {}", arguments.client)));
        };
        return undo(client, arguments, &record_file, &record, output);
    }
    let text = files::read_if_exists(&file)?;
    let before = text.clone().unwrap_or_default();
    let connection = connection(arguments, config)?;
    let (change, moved) = plan_change(client, arguments, (file, record_file), before, &connection, context)?;
    let is_written = confirm_change(&change, arguments, output)?;
    if is_written {
        let record = merge_records(record, &change, text.is_some(), moved);
        check_unchanged(&change)?;
        // The undo record first, so that the change can always be undone.
        record.write(&change.record_file)?;
        files::write(&change.file, &change.after, files::Access::Default)?;
    }
    report(&change, &connection, is_written, output);
    Ok(())
}

/// The change of a client's file, and the servers that it removes.
fn plan_change(
    client: Client,
    arguments: &ConnectArgs,
    (file, record_file): (PathBuf, PathBuf),
    before: String,
    connection: &GatewayConnection,
    context: &CliContext,
) -> Result<(FileChange, Map<String, Value>), CliError> {
    let invalid =
        |error: &dyn std::fmt::Display| CliError::usage(format!("cannot change {}: {error}", file.display()));
    match import_servers(client, &before, FileContext::default()) {
        Ok(_) | Err(DocumentError::NoServers { .. }) => {}
        Err(_) if before.trim().is_empty() => {}
        Err(error) => return Err(invalid(&error)),
    }
    let existing = client_servers(client, &before).map_err(|error| invalid(&error))?;
    let (mut moved, mut unknown, mut own_names) = (Map::new(), Vec::new(), Vec::new());
    let mut missing_variables = Vec::new();
    let coverage = compare(client, &existing, &context.server_settings, |name| std::env::var(name).ok());
    for (name, server) in &existing {
        if is_own(name, server) {
            own_names.push(name.as_str());
        } else if coverage.covered.contains(name.as_str()) {
            moved.insert(name.clone(), server.clone());
        } else if name == OWN_NAME {
            return Err(invalid(&format!("it has a different server named `{OWN_NAME}`")));
        } else if let Some(variables) = coverage.missing_variables.get(name.as_str()) {
            missing_variables.push((name.clone(), variables.iter().cloned().collect()));
        } else {
            unknown.push(name.clone());
        }
    }
    let own_entry = entry(client, connection);
    let obsolete_names = own_names.into_iter().filter(|name| *name != OWN_NAME);
    let remove = moved.keys().map(String::as_str).chain(obsolete_names).collect();
    let prompt = token_input();
    let input = Some(InputEdit {
        id: TOKEN_INPUT,
        input: matches!(connection, GatewayConnection::Http(_)).then_some(&prompt),
    });
    let edit = ClientFileEdit { remove, insert: vec![(OWN_NAME, &own_entry)], input };
    let after = edit_client_file(client, &before, &edit).map_err(|error| invalid(&error))?;
    let own_lines = edit_client_file(
        client,
        "",
        &ClientFileEdit { remove: Vec::new(), insert: vec![(OWN_NAME, &own_entry)], input },
    );
    let change = FileChange {
        client,
        argument: arguments.client.clone(),
        file: file.clone(),
        record_file,
        before,
        after,
        own_lines: own_lines.unwrap_or_default(),
        moved: moved.keys().cloned().collect(),
        unknown,
        missing_variables,
    };
    Ok((change, moved))
}

/// Undoes a connection: byte for byte if the file was not changed since; otherwise the own entry is removed and the removed
/// servers are restored.
fn undo(
    client: Client,
    arguments: &ConnectArgs,
    record_file: &Path,
    record: &UndoRecord,
    output: &Output,
) -> Result<(), CliError> {
    let before = files::read_if_exists(&record.file)?.unwrap_or_default();
    let original = record.original(&before);
    let is_file_removed = original.is_some() && !record.existed;
    let after = match original {
        Some(original) => original,
        None => without_own_entry(client, &before, record).map_err(|error| {
            let message = format!("cannot change {}: {error}", record.file.display());
            let hint = format!("the servers removed from it are in {}", record_file.display());
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
        moved: record.moved.keys().cloned().collect(),
        unknown: Vec::new(),
        missing_variables: Vec::new(),
    };
    let is_written = confirm_change(&change, arguments, output)?;
    if is_written {
        check_unchanged(&change)?;
        if is_file_removed {
            remove_file(&change.file)?;
        } else {
            files::write(&change.file, &change.after, files::Access::Default)?;
        }
        remove_file(record_file)?;
    }
    if output.is_json() {
        output.json(&change_json(&change, is_written));
    } else if is_written {
        output.message(&format!(
            "Disconnected {}: {} restored in {}",
            client.display_name(),
            describe_servers(&change.moved),
            change.file.display()
        ));
    }
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

/// The record that undoes this change, together with an earlier one of the same file.
fn merge_records(
    record: Option<UndoRecord>,
    change: &FileChange,
    existed: bool,
    moved: Map<String, Value>,
) -> UndoRecord {
    let Some(mut earlier) = record.filter(|record| record.file == change.file) else {
        let patch = TextPatch::between(&change.before, &change.after);
        return UndoRecord::new(&change.file, existed, moved, Some(patch));
    };
    let patch = earlier.original(&change.before).map(|original| TextPatch::between(&original, &change.after));
    earlier.moved.extend(moved);
    UndoRecord::new(&change.file, earlier.existed, earlier.moved, patch)
}

/// Shows the change and asks for confirmation, unless `--yes`. Returns whether to write it.
fn confirm_change(change: &FileChange, arguments: &ConnectArgs, output: &Output) -> Result<bool, CliError> {
    if change.before == change.after {
        return Ok(false);
    }
    let lines = redacted_lines(change);
    let needs_confirmation = !arguments.yes && !arguments.dry_run;
    if !output.is_json() && (needs_confirmation || arguments.dry_run) {
        output.message(&format!("Changes to {}:", change.file.display()));
        lines.iter().for_each(|line| output.line(line));
    }
    if arguments.dry_run {
        return Ok(false);
    }
    if needs_confirmation && !confirm(&format!("Change {}?", change.file.display()), "nothing was changed")? {
        return Err(CliError::denied("nothing was changed"));
    }
    Ok(true)
}

fn report(change: &FileChange, connection: &GatewayConnection, is_written: bool, output: &Output) {
    if output.is_json() {
        return output.json(&change_json(change, is_written));
    }
    let name = change.client.display_name();
    let (verb, infinitive, target) = match connection {
        GatewayConnection::Stdio { .. } => ("starts", "start", "`toolyard serve --stdio`"),
        GatewayConnection::Http(url) => ("connects to", "connect to", url.as_str()),
    };
    let replaced = match change.moved.as_slice() {
        [] => String::new(),
        moved => format!(" in place of {}", describe_servers(moved)),
    };
    if change.before == change.after {
        output.message(&format!("{name} already {verb} {target}"));
    } else if is_written {
        let undo = format!("toolyard connect {} --undo", change.argument);
        output.message(&format!("{name} now {verb} {target}{replaced}. Undo: {undo}"));
    } else {
        output.message(&format!("{name} would {infinitive} {target}{replaced}"));
    }
    for (name, variables) in &change.missing_variables {
        let variables = variables.join(", ");
        output.message(&format!("  {name} was left in place: {variables} is not set"));
    }
    if !change.missing_variables.is_empty() {
        output.message("  hint: set the variables where Toolyard is started, then connect again");
    }
    if !change.unknown.is_empty() {
        let names = change.unknown.join(", ");
        output.message(&format!("  left in place, not in your settings: {names}"));
        output.message("  hint: import them with `toolyard import`, then connect again");
    }
    if let (GatewayConnection::Http(_), false) = (connection, change.client == Client::VsCode) {
        output.message(&format!(
            "  hint: set {TOKEN_VARIABLE} in the client's environment; `toolyard serve --http` prints the command"
        ));
    }
}

fn change_json(change: &FileChange, is_written: bool) -> Value {
    json!({
        "client": change.client.id(),
        "file": change.file,
        "moved": change.moved,
        "unknown": change.unknown,
        "missing_variables": change.missing_variables.iter().map(|(name, variables)| json!({
            "name": name, "variables": variables,
        })).collect::<Vec<_>>(),
        "written": is_written,
        "changes": redacted_lines(change),
    })
}

/// The changed lines; values of lines that Toolyard did not write are hidden, because they may be secrets.
fn redacted_lines(change: &FileChange) -> Vec<String> {
    let is_own = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        change.own_lines.lines().any(|own| own.trim().trim_end_matches(',') == line)
    };
    let redact_line = |line: String| match line.strip_prefix("+ ") {
        Some(new) if !is_own(new) => format!("+ {}", without_value(new)),
        _ => line,
    };
    changed_lines(&change.before, &change.after).into_iter().map(redact_line).collect()
}

/// `2 servers (excel, time)`.
fn describe_servers(names: &[String]) -> String {
    match names {
        [] => "no servers".to_owned(),
        names => format!("{} ({})", pluralize(names.len(), "server"), names.join(", ")),
    }
}

fn connection(arguments: &ConnectArgs, config: Option<&Path>) -> Result<GatewayConnection, CliError> {
    if let Some(url) = &arguments.http {
        let url = url.trim_end_matches('/');
        let path = arguments.profile.as_ref().map(|profile| format!("/{profile}")).unwrap_or_default();
        return Ok(GatewayConnection::Http(format!("{url}{path}")));
    }
    let command = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("failed to find this program: {error}")))?;
    let mut args = Vec::new();
    if let Some(config) = config {
        let config = config.canonicalize().map_err(|error| CliError::file("find", config, error))?;
        args.extend(["--config".to_owned(), config.display().to_string()]);
    }
    args.extend(["serve", "--stdio"].map(str::to_owned));
    if let Some(profile) = &arguments.profile {
        args.extend(["--profile".to_owned(), profile.clone()]);
    }
    Ok(GatewayConnection::Stdio { command: command.display().to_string(), args })
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
    context.data_folder.join("connect").join(format!("{name}.json"))
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
