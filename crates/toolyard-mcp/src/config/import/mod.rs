//! Servers that people configured in other clients, taken over with their secrets left where they are.

mod claude_code;
mod claude_desktop;
mod codex;
mod cursor;
mod gemini;
mod merge;
mod registry;
mod registry_package;
mod vs_code;

pub use merge::{Merged, merge};

use super::{
    DocumentError, Lifted, Place, Problem, ServerSettings,
    draft::{Draft, Drafts},
    secret,
};

/// A program whose configuration can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Client {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// A `server.json` of the official registry.
    Registry,
}

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The person's home folder.
    Home,
    /// The project's folder.
    Project,
}

/// The kind of machine a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the systems")]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

/// A file that may hold a client's servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Where the path begins.
    pub root: Root,
    /// The system it is for; none for all.
    pub system: Option<System>,
    /// The path, with `/` between its parts.
    pub path: &'static str,
}

impl Candidate {
    const fn home(path: &'static str) -> Self {
        Self { root: Root::Home, system: None, path }
    }

    const fn project(path: &'static str) -> Self {
        Self { root: Root::Project, system: None, path }
    }

    const fn home_on(system: System, path: &'static str) -> Self {
        Self { root: Root::Home, system: Some(system), path }
    }
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Registry,
    ];

    /// What people call it.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Registry => "registry",
        }
    }

    /// The word for it on a command line: `claude-code`.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Registry => "registry",
        }
    }

    /// The files that may hold its servers on any system; all that exist count.
    pub fn candidates(self) -> &'static [Candidate] {
        match self {
            Self::ClaudeDesktop => claude_desktop::CANDIDATES,
            Self::ClaudeCode => claude_code::CANDIDATES,
            Self::Cursor => cursor::CANDIDATES,
            Self::VsCode => vs_code::CANDIDATES,
            Self::Codex => codex::CANDIDATES,
            Self::Gemini => gemini::CANDIDATES,
            Self::Registry => registry::CANDIDATES,
        }
    }

    /// The files that may hold its servers on this system.
    pub fn candidates_on(self, system: System) -> impl Iterator<Item = Candidate> {
        let is_for = move |candidate: &Candidate| candidate.system.is_none_or(|only| only == system);
        self.candidates().iter().copied().filter(is_for)
    }
}

/// What one file brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The servers, fit for a file of ours: no secret stands in them.
    pub servers: Vec<ImportedServer>,
    /// What was left out, and why.
    pub problems: Vec<Problem>,
}

/// One server that was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    /// A valid name.
    pub name: String,
    /// Its settings. It is not trusted, whatever the client thought of it.
    pub settings: ServerSettings,
    /// What there is to say about it.
    pub notes: Vec<String>,
    /// The secrets that stood in the client's file, and the variables that stand for them now.
    pub secrets: Vec<Lifted>,
}

/// Takes over the servers of a client's file.
///
/// ```
/// use toolyard_mcp::config::{Place, import::{Client, read}};
///
/// let text = r#"{"mcpServers": {"GitHub": {"url": "https://example.org/mcp",
///     "headers": {"Authorization": "Bearer hunter2"}}}}"#;
/// let imported = read(Client::Cursor, text, Place::default())?;
/// let server = &imported.servers[0];
/// assert_eq!(server.name, "github");
/// assert_eq!(server.settings.headers["Authorization"], "Bearer ${GITHUB_TOKEN}");
/// # Ok::<(), toolyard_mcp::config::DocumentError>(())
/// ```
pub fn read(client: Client, text: &str, place: Place<'_>) -> Result<Imported, DocumentError> {
    let drafts = match client {
        Client::ClaudeDesktop => claude_desktop::read(text, place),
        Client::ClaudeCode => claude_code::read(text, place),
        Client::Cursor => cursor::read(text, place),
        Client::VsCode => vs_code::read(text, place),
        Client::Codex => codex::read(text, place),
        Client::Gemini => gemini::read(text, place),
        Client::Registry => registry::read(text),
    }?;
    Ok(imported(drafts))
}

fn imported(drafts: Drafts) -> Imported {
    let mut servers: Vec<ImportedServer> = drafts.drafts.into_iter().map(without_secrets).collect();
    merge::tell_secrets_apart(servers.iter_mut());
    for server in &mut servers {
        server.tell_secrets();
    }
    Imported { servers, problems: drafts.problems }
}

fn without_secrets(draft: Draft) -> ImportedServer {
    let Draft { name, mut settings, notes, .. } = draft;
    let secrets = secret::lift(&mut settings, &name);
    ImportedServer { name, settings, notes, secrets }
}

impl ImportedServer {
    fn tell_secrets(&mut self) {
        for secret in &self.secrets {
            let Lifted { place, variable, .. } = secret;
            let note = format!(
                "the secret in {place} was not copied: set the environment variable `{variable}` to it"
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod registry_tests;
#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
