//! Configuration files of other clients on this machine, and their servers.

use std::path::{Path, PathBuf};

use toolyard_mcp_client::config::{
    DocumentError, FileContext,
    import::{Client, ImportedFile, ImportedServer, OperatingSystem, PathRoot, import_servers},
};

use crate::{
    config::{CliContext, is_trusted},
    error::CliError,
};

/// A client's configuration file.
#[derive(Debug)]
pub(super) struct ClientFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    /// Whether it belongs to the project.
    pub(super) of_project: bool,
    pub(super) servers: Vec<ImportedServer>,
    /// Servers that were skipped, or why the file was not read.
    pub(super) problems: Vec<String>,
}

impl ClientFile {
    fn new(client: Client, path: PathBuf, of_project: bool, imported: ImportedFile) -> Self {
        let problems = imported.invalid.iter().map(ToString::to_string).collect();
        Self { client, path, of_project, servers: imported.servers, problems }
    }

    fn unread(client: Client, path: PathBuf, of_project: bool, problem: String) -> Self {
        Self { client, path, of_project, servers: Vec::new(), problems: vec![problem] }
    }

    /// The client's name, for the user.
    pub(super) fn label(&self) -> String {
        let name = self.client.display_name();
        if self.of_project { format!("{name}, this project") } else { name.to_owned() }
    }
}

/// A client by its id.
pub(super) fn client(id: &str) -> Result<Client, CliError> {
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
    let candidates = match client.or_else(|| client_of_path(&file)) {
        Some(client) => vec![client],
        None => vec![Client::ClaudeCode, Client::VsCode, Client::Registry],
    };
    let mut last = DocumentError::NoServers { expected: "a table of servers" };
    for client in candidates {
        let folder = base_folder(client, &file);
        match import_servers(client, &text, FileContext { workspace: folder.to_str() }) {
            Ok(imported) => {
                let of_project = file.starts_with(&context.project);
                return Ok(ClientFile::new(client, file.clone(), of_project, imported));
            }
            Err(error) => last = error,
        }
    }
    Err(unreadable(&last)
        .with_hint("choose its format with --client claude-code, cursor, vscode, codex or gemini"))
}

/// The client whose files have this path.
fn client_of_path(file: &Path) -> Option<Client> {
    let known =
        |client: &Client| client.config_paths().iter().any(|candidate| file.ends_with(candidate.path));
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    Client::ALL.into_iter().find(known).or_else(|| is_toml.then_some(Client::Codex))
}

/// Reads the files of all clients. An unattended import skips untrusted files of a project: they could add any program.
pub(super) async fn read_all(
    only: Option<Client>,
    is_unattended: bool,
    context: &CliContext,
) -> Result<Vec<ClientFile>, CliError> {
    let home = home_folder()?;
    let project = &context.project;
    let mut all: Vec<ClientFile> = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| only.is_none_or(|only| only == *client)) {
        for candidate in client.config_paths_on(SYSTEM) {
            let is_home = candidate.root == PathRoot::Home;
            let file = if is_home { &home } else { project }.join(candidate.path);
            if !file.is_file() || all.iter().any(|known| known.path == file) {
                continue;
            }
            if !is_home && is_unattended && !is_trusted(&file, context.store.as_ref()).await? {
                let problem = format!("skipped with --yes, not trusted: toolyard import {}", file.display());
                all.push(ClientFile::unread(client, file, true, problem));
                continue;
            }
            let place = FileContext { workspace: project.to_str().filter(|_| !is_home) };
            all.extend(read_client_file(client, file, !is_home, place));
        }
    }
    Ok(all)
}

/// Reads a client's file; `None` if it has no servers.
fn read_client_file(
    client: Client,
    path: PathBuf,
    of_project: bool,
    place: FileContext<'_>,
) -> Option<ClientFile> {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Some(ClientFile::unread(client, path, of_project, error.to_string())),
    };
    match import_servers(client, &text, place) {
        Ok(imported) => Some(ClientFile::new(client, path, of_project, imported)),
        Err(DocumentError::NoServers { .. }) => None,
        Err(error) => Some(ClientFile::unread(client, path, of_project, error.to_string())),
    }
}

/// The user's home folder.
pub(in crate::commands) fn home_folder() -> Result<PathBuf, CliError> {
    etcetera::home_dir().map_err(|error| {
        CliError::failed(format!("failed to find your home folder: {error}"))
            .with_hint("set the environment variable HOME")
    })
}

/// The folder that relative paths in a client's file refer to: the one that contains the client's own folder.
fn base_folder(client: Client, file: &Path) -> PathBuf {
    let known = client.config_paths().iter().find(|candidate| file.ends_with(candidate.path));
    let up = known.map_or(1, |candidate| candidate.path.split('/').count());
    file.ancestors().nth(up).unwrap_or(file).to_owned()
}

pub(crate) const SYSTEM: OperatingSystem = if cfg!(target_os = "macos") {
    OperatingSystem::MacOs
} else if cfg!(windows) {
    OperatingSystem::Windows
} else {
    OperatingSystem::Linux
};
