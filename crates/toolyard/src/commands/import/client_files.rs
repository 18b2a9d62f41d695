//! Configuration files of other clients on this machine, and their servers.

use std::path::{Path, PathBuf};

use toolyard_mcp_client::config::{
    DocumentError, FileContext, Template,
    import::{Client, ImportedFile, ImportedServer, OperatingSystem, PathRoot, import_servers},
};

use crate::{
    config::{CliContext, HashedFile},
    error::CliError,
};

#[derive(Debug)]
pub(super) struct ClientFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    /// Whether it belongs to the project.
    pub(super) is_project_file: bool,
    pub(super) servers: Vec<ImportedServer>,
    /// Servers that were skipped, or why the file was not read.
    pub(super) problems: Vec<String>,
}

impl ClientFile {
    fn new(client: Client, path: PathBuf, is_project_file: bool, imported: ImportedFile) -> Self {
        let problems = imported.invalid.iter().map(ToString::to_string).collect();
        Self { client, path, is_project_file, servers: imported.servers, problems }
    }

    fn unread(client: Client, path: PathBuf, is_project_file: bool, problem: String) -> Self {
        Self { client, path, is_project_file, servers: Vec::new(), problems: vec![problem] }
    }

    /// The client's name, for the user.
    pub(super) fn label(&self) -> String {
        let name = self.client.display_name();
        if self.is_project_file { format!("{name}, this project") } else { name.to_owned() }
    }
}

pub(super) fn parse_client(id: &str) -> Result<Client, CliError> {
    Client::ALL.into_iter().find(|client| client.id() == id).ok_or_else(|| {
        let known: Vec<&str> = Client::ALL.iter().map(|client| client.id()).collect();
        CliError::usage(format!("client `{id}` is not known"))
            .with_hint(format!("known clients: {}", known.join(", ")))
    })
}

/// Reads one file. Its client is given, or guessed by the file's name, else by its content.
pub(super) fn read_file(
    file: &Path,
    client: Option<Client>,
    context: &CliContext,
) -> Result<ClientFile, CliError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("failed to read {}: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    let file = file.canonicalize().map_err(|error| unreadable(&error))?;
    let known = client.or_else(|| client_of_path(&file));
    let candidates =
        known.map_or_else(|| vec![Client::ClaudeCode, Client::VsCode, Client::Registry], |one| vec![one]);
    let mut last_error = DocumentError::NoServers { expected: "a table of servers" };
    for client in candidates {
        let folder = base_folder(client, &file);
        let file_context = FileContext { workspace: folder.to_str(), read_env_file: Some(&read_env_file) };
        match import_servers(client, &text, file_context) {
            Ok(imported) => {
                let is_project_file = file.starts_with(&context.project);
                return Ok(ClientFile::new(client, file.clone(), is_project_file, imported));
            }
            Err(error) => last_error = error,
        }
    }
    if let (DocumentError::NoServers { .. }, None) = (&last_error, known) {
        last_error = DocumentError::NoServers { expected: "`mcpServers`, `servers` or `packages`" };
    }
    Err(unreadable(&last_error).with_optional_hint(format_hint(&last_error, known)))
}

/// How to make a file readable: another format helps only if the file is intact.
fn format_hint(error: &DocumentError, known: Option<Client>) -> Option<String> {
    match error {
        DocumentError::NotJson { line, .. } => {
            Some(format!("correct the JSON at line {line}, then import again"))
        }
        DocumentError::NotToml { line, .. } => {
            Some(format!("correct the TOML at line {line}, then import again"))
        }
        DocumentError::NoServers { .. } => {
            let format = known.map(|client| format!("it was read as a file of {}; ", client.display_name()));
            let choice =
                "choose the format with --client claude-code, cursor, vscode, codex, gemini or registry";
            Some(format!("{}{choice}", format.unwrap_or_default()))
        }
        _ => None,
    }
}

/// The client whose files have this path.
fn client_of_path(file: &Path) -> Option<Client> {
    let has_path =
        |client: &Client| client.config_paths().iter().any(|candidate| file.ends_with(candidate.path));
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    Client::ALL.into_iter().find(has_path).or_else(|| is_toml.then_some(Client::Codex))
}

/// Who decides about files of a project that are not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UntrustedFiles {
    /// The user, who is asked.
    Read,
    /// Nobody: the import was called with `--yes`.
    SkipWithYes,
    /// Nobody: the import is one of the HTTP API.
    Skip,
}

/// Reads the files of all clients. An unattended import skips untrusted files of a project: they could add any program.
pub(super) async fn read_all(
    only: Option<Client>,
    untrusted: UntrustedFiles,
    context: &CliContext,
) -> Result<Vec<ClientFile>, CliError> {
    let home = home_folder()?;
    let project = &context.project;
    let mut all: Vec<ClientFile> = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| only.is_none_or(|only| only == *client)) {
        for candidate in client.config_paths_on(CURRENT_SYSTEM) {
            let is_home = candidate.root == PathRoot::Home;
            let file = if is_home { &home } else { project }.join(candidate.path);
            if !file.is_file() || all.iter().any(|known| known.path == file) {
                continue;
            }
            let read = match HashedFile::read(&file) {
                Ok(read) => read,
                Err(error) => {
                    all.push(ClientFile::unread(client, file, !is_home, error.to_string()));
                    continue;
                }
            };
            let is_skipped = !is_home && untrusted != UntrustedFiles::Read;
            if is_skipped && !read.is_trusted(context.operator_store.as_ref()).await? {
                let problem = match untrusted {
                    UntrustedFiles::SkipWithYes => {
                        format!("skipped with --yes, not trusted: toolyard import {}", file.display())
                    }
                    UntrustedFiles::Read | UntrustedFiles::Skip => "not trusted".to_owned(),
                };
                all.push(ClientFile::unread(client, file, !is_home, problem));
                continue;
            }
            let file_context = FileContext {
                workspace: project.to_str().filter(|_| !is_home),
                read_env_file: Some(&read_env_file),
            };
            all.extend(parse_client_file(client, file, read.text(), !is_home, file_context));
        }
    }
    Ok(all)
}

/// Parses the text of a client's file; `None` if it has no servers.
fn parse_client_file(
    client: Client,
    path: PathBuf,
    text: &str,
    is_project_file: bool,
    file_context: FileContext<'_>,
) -> Option<ClientFile> {
    match import_servers(client, text, file_context) {
        Ok(imported) => Some(ClientFile::new(client, path, is_project_file, imported)),
        Err(DocumentError::NoServers { .. }) => None,
        Err(error) => Some(ClientFile::unread(client, path, is_project_file, error.to_string())),
    }
}

/// The text of an `envFile`; `None` if it cannot be read.
pub(in crate::commands) fn read_env_file(path: &Template) -> Option<String> {
    const MAX_ENV_FILE_BYTES: u64 = 1 << 20;
    let path = path.expand(|name| std::env::var(name).ok()).ok()?;
    let path = match path.expose().strip_prefix("~/") {
        Some(rest) => home_folder().ok()?.join(rest),
        None => PathBuf::from(path.expose()),
    };
    // A pipe could block for ever, and a relative path would depend on the current folder.
    let is_readable = |file: std::fs::Metadata| file.is_file() && file.len() <= MAX_ENV_FILE_BYTES;
    if !path.is_absolute() || !path.metadata().is_ok_and(is_readable) {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// The user's home folder.
pub(in crate::commands) fn home_folder() -> Result<PathBuf, CliError> {
    etcetera::home_dir().map_err(|error| {
        CliError::failed(format!("failed to find your home folder: {error}"))
            .with_hint("set the environment variable HOME")
    })
}

/// The folder that relative paths in a client's file refer to: the one that contains the client's own folder.
pub(in crate::commands) fn base_folder(client: Client, file: &Path) -> PathBuf {
    let known = client.config_paths().iter().find(|candidate| file.ends_with(candidate.path));
    let levels_up = known.map_or(1, |candidate| candidate.path.split('/').count());
    file.ancestors().nth(levels_up).unwrap_or(file).to_owned()
}

pub(crate) const CURRENT_SYSTEM: OperatingSystem = if cfg!(target_os = "macos") {
    OperatingSystem::MacOs
} else if cfg!(windows) {
    OperatingSystem::Windows
} else {
    OperatingSystem::Linux
};
