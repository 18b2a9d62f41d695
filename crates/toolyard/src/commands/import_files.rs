//! The files of other clients on this machine, and the servers that stand in them.

use std::path::{Path, PathBuf};

use toolyard_mcp::config::{
    DocumentError, Place,
    import::{Client, Imported, ImportedServer, Root, System, read},
};

use crate::{
    failure::{Code, Failure},
    folders::{Workplace, is_trusted},
};

/// A file that was looked at.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) client: Client,
    pub(super) file: PathBuf,
    /// Whether it came with the project.
    pub(super) of_project: bool,
    pub(super) servers: Vec<ImportedServer>,
    /// What was left out of it, or why it was not read at all.
    pub(super) problems: Vec<String>,
}

impl Found {
    /// Where its servers come from, in words.
    pub(super) fn label(&self) -> String {
        let name = self.client.display_name();
        if self.of_project { format!("{name}, this project") } else { name.to_owned() }
    }
}

/// A client by the word for it.
pub(super) fn client(word: &str) -> Result<Client, Failure> {
    Client::ALL.into_iter().find(|client| client.id() == word).ok_or_else(|| {
        let known: Vec<&str> = Client::ALL.iter().map(|client| client.id()).collect();
        Failure::new(Code::BadUse, format!("no client is called `{word}`"))
            .with_hint(format!("there are {}", known.join(", ")))
    })
}

/// The servers of one file. Who wrote it is said, or told by its name, or else by what is in it.
pub(super) fn in_file(file: &Path, client: Option<Client>, workplace: &Workplace) -> Result<Found, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(Code::BadUse, format!("failed to read {}: {error}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    let file = file.canonicalize().map_err(|error| unreadable(&error))?;
    let guesses = match client.or_else(|| by_name(&file)) {
        Some(client) => vec![client],
        None => vec![Client::ClaudeCode, Client::VsCode, Client::Registry],
    };
    let mut last = DocumentError::NoServers { expected: "a table of servers" };
    for client in guesses {
        let folder = base(client, &file);
        match read(client, &text, Place { workspace: folder.to_str() }) {
            Ok(imported) => {
                let of_project = file.starts_with(&workplace.project);
                return Ok(found(client, file.clone(), of_project, imported));
            }
            Err(error) => last = error,
        }
    }
    Err(unreadable(&last)
        .with_hint("say whose file it is: --from claude-code, cursor, vscode, codex, gemini"))
}

/// The client that keeps its servers in files of this name.
fn by_name(file: &Path) -> Option<Client> {
    let known = |client: &Client| client.candidates().iter().any(|candidate| file.ends_with(candidate.path));
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    Client::ALL.into_iter().find(known).or_else(|| is_toml.then_some(Client::Codex))
}

/// The servers of all files where clients keep them. Files of a project that nobody trusted are read only when a person
/// decides about what is in them: they could bring any program.
pub(super) async fn on_this_machine(
    only: Option<Client>,
    nobody_looks: bool,
    workplace: &Workplace,
) -> Result<Vec<Found>, Failure> {
    let home = etcetera::home_dir()
        .map_err(|error| Failure::new(Code::Failed, format!("failed to find your home folder: {error}")))?;
    let project = &workplace.project;
    let mut all: Vec<Found> = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| only.is_none_or(|only| only == *client)) {
        for candidate in client.candidates_on(SYSTEM) {
            let is_home = candidate.root == Root::Home;
            let file = if is_home { &home } else { project }.join(candidate.path);
            if !file.is_file() || all.iter().any(|known| known.file == file) {
                continue;
            }
            if !is_home && nobody_looks && !is_trusted(&file, workplace.store.as_ref()).await? {
                let problem = format!("not read without a look at it: toolyard import {}", file.display());
                all.push(Found {
                    client,
                    file,
                    of_project: true,
                    servers: Vec::new(),
                    problems: vec![problem],
                });
                continue;
            }
            let place = Place { workspace: project.to_str().filter(|_| !is_home) };
            all.extend(of_client(client, file, !is_home, place));
        }
    }
    Ok(all)
}

/// What a client's file brings; none when it is for other things.
fn of_client(client: Client, file: PathBuf, of_project: bool, place: Place<'_>) -> Option<Found> {
    let unread = |problem: String| Found {
        client,
        file: file.clone(),
        of_project,
        servers: Vec::new(),
        problems: vec![problem],
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => return Some(unread(error.to_string())),
    };
    match read(client, &text, place) {
        Ok(imported) => Some(found(client, file, of_project, imported)),
        Err(DocumentError::NoServers { .. }) => None,
        Err(error) => Some(unread(error.to_string())),
    }
}

fn found(client: Client, file: PathBuf, of_project: bool, imported: Imported) -> Found {
    let problems = imported.problems.iter().map(ToString::to_string).collect();
    Found { client, file, of_project, servers: imported.servers, problems }
}

/// The folder where relative paths of a client's file begin: above its own folder, where it has one.
fn base(client: Client, file: &Path) -> PathBuf {
    let known = client.candidates().iter().find(|candidate| file.ends_with(candidate.path));
    let up = known.map_or(1, |candidate| candidate.path.split('/').count());
    file.ancestors().nth(up).unwrap_or(file).to_owned()
}

pub(super) const SYSTEM: System = if cfg!(target_os = "macos") {
    System::MacOs
} else if cfg!(windows) {
    System::Windows
} else {
    System::Linux
};
