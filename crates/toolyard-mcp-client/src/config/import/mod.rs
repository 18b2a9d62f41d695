//! Imports servers from the files of other clients, without their secrets.
//!
//! One module per format parses the files of clients; `merge` combines several files; `stored_secrets` moves secrets to the
//! store of secrets; `client_file_edit` changes a client's file.

mod claude_code;
mod client_file_edit;
mod codex;
mod gemini;
mod mcp_servers;
mod merge;
mod registry;
mod registry_input;
mod registry_package;
mod stored_secrets;
mod vs_code;

pub use client_file_edit::{
    ClientFileEdit, ClientFileError, InputEdit, client_servers, edit_client_file, single_server_document,
};
pub use merge::{MergedServer, ServerOrigin, merge_servers};
pub use stored_secrets::{MovedSecret, move_secrets};

use super::{
    DocumentError, ExtractedSecret, FileContext, InvalidServer, ServerSettings,
    client_file::parsed_servers::ParsedServer, secrets,
};

/// A client whose configuration can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the products")]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Gemini,
    /// A `server.json` of the official registry.
    Registry,
}

/// The base of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRoot {
    /// The user's home folder.
    Home,
    /// The project folder.
    Project,
}

/// The operating system of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the systems")]
pub enum OperatingSystem {
    Linux,
    MacOs,
    Windows,
}

/// The path of a client's configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigPath {
    /// The base of the path.
    pub root: PathRoot,
    /// The operating system; all when absent.
    pub system: Option<OperatingSystem>,
    /// The path, with `/` as separator.
    pub path: &'static str,
}

impl ConfigPath {
    const fn home(path: &'static str) -> Self {
        Self { root: PathRoot::Home, system: None, path }
    }

    const fn project(path: &'static str) -> Self {
        Self { root: PathRoot::Project, system: None, path }
    }

    const fn home_on(system: OperatingSystem, path: &'static str) -> Self {
        Self { root: PathRoot::Home, system: Some(system), path }
    }
}

impl Client {
    /// All clients.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Registry,
    ];

    /// The product name.
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

    /// The name on the command line: `claude-code`.
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

    /// The configuration files on all systems; several may exist.
    pub fn config_paths(self) -> &'static [ConfigPath] {
        match self {
            Self::ClaudeDesktop => mcp_servers::CLAUDE_DESKTOP_PATHS,
            Self::ClaudeCode => claude_code::CONFIG_PATHS,
            Self::Cursor => mcp_servers::CURSOR_PATHS,
            Self::VsCode => vs_code::CONFIG_PATHS,
            Self::Codex => codex::CONFIG_PATHS,
            Self::Gemini => gemini::CONFIG_PATHS,
            Self::Registry => registry::CONFIG_PATHS,
        }
    }

    /// The configuration files on this system.
    pub fn config_paths_on(self, system: OperatingSystem) -> impl Iterator<Item = ConfigPath> {
        let applies = move |path: &ConfigPath| path.system.is_none_or(|only| only == system);
        self.config_paths().iter().copied().filter(applies)
    }
}

/// The servers of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedFile {
    /// Valid servers, without secrets.
    pub servers: Vec<ImportedServer>,
    /// Invalid servers.
    pub invalid: Vec<InvalidServer>,
}

/// One imported server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    /// A valid name.
    pub name: String,
    /// The name in the client's file.
    pub original_name: String,
    /// Its settings; it is not trusted.
    pub settings: ServerSettings,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The secrets of the client's file, and the variables that replace them.
    pub secrets: Vec<ExtractedSecret>,
}

/// Imports the servers of a client's file.
///
/// ```
/// use toolyard_mcp_client::config::{FileContext, import::{Client, import_servers}};
///
/// let text = r#"{"mcpServers": {"GitHub": {"url": "https://example.org/mcp",
///     "headers": {"Authorization": "Bearer hunter2"}}}}"#;
/// let imported = import_servers(Client::Cursor, text, FileContext::default())?;
/// let server = &imported.servers[0];
/// assert_eq!(server.name, "github");
/// assert_eq!(server.settings.headers["Authorization"], "Bearer ${GITHUB_TOKEN}");
/// # Ok::<(), toolyard_mcp_client::config::DocumentError>(())
/// ```
pub fn import_servers(
    client: Client,
    text: &str,
    context: FileContext<'_>,
) -> Result<ImportedFile, DocumentError> {
    let parsed = match client {
        Client::ClaudeDesktop | Client::Cursor => mcp_servers::parse(text, context),
        Client::ClaudeCode => claude_code::parse(text, context),
        Client::VsCode => vs_code::parse(text, context),
        Client::Codex => codex::parse(text, context),
        Client::Gemini => gemini::parse(text, context),
        Client::Registry => registry::parse(text),
    }?;
    let mut servers: Vec<ImportedServer> = parsed.servers.into_iter().map(into_imported).collect();
    merge::rename_conflicting_variables(servers.iter_mut());
    servers.iter_mut().for_each(ImportedServer::note_secrets);
    Ok(ImportedFile { servers, invalid: parsed.invalid })
}

/// Replaces the secrets of a server with references. Whether callers share the server is up to the operator, like trust: the
/// file may be of a project.
fn into_imported(server: ParsedServer) -> ImportedServer {
    let ParsedServer { name, original_name, mut settings, mut notes } = server;
    if settings.isolation.take().is_some() {
        notes.push("`isolation` was ignored: set it in your settings instead".to_owned());
    }
    let secrets = secrets::extract_secrets(&mut settings, &name);
    ImportedServer { name, original_name, settings, notes, secrets }
}

impl ImportedServer {
    fn note_secrets(&mut self) {
        for secret in &self.secrets {
            let note = not_copied_note(&secret.field, &secret.variable);
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

fn not_copied_note(field: &str, variable: &str) -> String {
    format!("the secret in {field} was not copied: set the environment variable `{variable}`")
}

#[cfg(test)]
mod malicious_file_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod registry_tests;
#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
