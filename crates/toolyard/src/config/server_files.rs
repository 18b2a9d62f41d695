//! Collects MCP servers from all files that may define some: settings and mcp.json files, of the user and of a project.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toolyard::Settings;
use toolyard_core::SourceId;
use toolyard_mcp_client::config::{McpServerConfig, ServerSettings, read_mcp_json};
use toolyard_store::Store;

use super::is_trusted;
use crate::error::CliError;

/// A project's mcp.json files; a later one overrides an earlier one.
const PROJECT_FILES: [&str; 3] = [".mcp.json", "mcp.json", "mcp.local.json"];

/// Servers collected so far. Files added later override earlier ones.
#[derive(Debug, Default)]
pub(crate) struct ServerCollection {
    pub(crate) servers: BTreeMap<SourceId, McpServerConfig>,
    /// Servers of settings files, with unresolved variables.
    pub(crate) server_settings: BTreeMap<String, ServerSettings>,
    /// Notes on servers of mcp.json files.
    pub(crate) notes: Vec<String>,
    pub(crate) problems: Vec<String>,
    /// Project settings that are ignored because their file is not trusted.
    pub(crate) untrusted_settings: Vec<String>,
    /// Project files that `toolyard trust` would trust.
    pub(crate) untrusted_files: Vec<PathBuf>,
}

impl ServerCollection {
    pub(crate) fn add_settings(&mut self, settings: &Settings, file: Option<&Path>) {
        let Some(file) = file else { return };
        let (configs, problems) = settings.servers(file.parent().unwrap_or(file));
        self.problems.extend(problems);
        self.server_settings.extend(settings.servers.clone());
        self.servers.extend(configs.into_iter().map(|config| (config.id.clone(), config)));
    }

    /// Adds the servers of an mcp.json file, if it exists.
    pub(crate) fn add_mcp_json(&mut self, file: &Path) {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.problems.push(format!("{}: {error}", file.display())),
        };
        match read_mcp_json(&text, file.parent().unwrap_or(file)) {
            Ok(parsed) => {
                self.problems
                    .extend(parsed.invalid.iter().map(|problem| format!("{}: {problem}", file.display())));
                let notes = parsed.servers.iter().flat_map(|server| &server.notes);
                self.notes.extend(notes.map(|note| format!("{}: {note}", file.display())));
                self.servers.extend(
                    parsed.servers.into_iter().map(|server| (server.config.id.clone(), server.config)),
                );
            }
            Err(error) => self.problems.push(format!("{}: {error}", file.display())),
        }
    }

    /// Adds the servers of a project's mcp.json files that are trusted: servers may start any program.
    pub(crate) async fn add_project(
        &mut self,
        project: &Path,
        store: Option<&Store>,
    ) -> Result<(), CliError> {
        for name in PROJECT_FILES {
            let file = project.join(name);
            if !file.is_file() {
                continue;
            }
            if is_trusted(&file, store).await? {
                self.add_mcp_json(&file);
            } else {
                self.untrusted_settings.push(format!("servers of {name}"));
                self.untrusted_files.push(file);
            }
        }
        Ok(())
    }
}
