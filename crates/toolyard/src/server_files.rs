//! MCP servers from all files that may name some: settings and plain `mcp.json` files, of the user and of a project.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toolyard::Settings;
use toolyard_core::SourceId;
use toolyard_mcp::config::{McpServerConfig, ServerSettings, read_mcp_json};
use toolyard_store::Store;

use crate::{failure::Failure, folders::is_trusted};

/// Plain files of a project that may name servers; a later one outweighs an earlier one.
const OF_PROJECT: [&str; 3] = [".mcp.json", "mcp.json", "mcp.local.json"];

/// What was found so far. What comes later outweighs what came before.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) servers: BTreeMap<SourceId, McpServerConfig>,
    /// Servers of settings files as they were written.
    pub(crate) written: BTreeMap<String, ServerSettings>,
    /// What there is to say about servers of plain files.
    pub(crate) notes: Vec<String>,
    pub(crate) problems: Vec<String>,
    pub(crate) not_trusted: Vec<String>,
    pub(crate) trustable: Vec<PathBuf>,
}

impl Gathered {
    /// The servers of a settings file.
    pub(crate) fn settings(&mut self, settings: &Settings, file: Option<&Path>) {
        let Some(file) = file else { return };
        let (configs, problems) = settings.servers(file.parent().unwrap_or(file));
        self.problems.extend(problems);
        self.written.extend(settings.servers.clone());
        self.servers.extend(configs.into_iter().map(|config| (config.id.clone(), config)));
    }

    /// The servers of a plain file; a file that is not there names none.
    pub(crate) fn mcp_file(&mut self, file: &Path) {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.problems.push(format!("{}: {error}", file.display())),
        };
        match read_mcp_json(&text, file.parent().unwrap_or(file)) {
            Ok(read) => {
                let said = |problem| format!("{}: {problem}", file.display());
                self.problems.extend(read.problems.iter().map(said));
                let notes = read.servers.iter().flat_map(|server| &server.notes);
                self.notes.extend(notes.map(|note| format!("{}: {note}", file.display())));
                self.servers
                    .extend(read.servers.into_iter().map(|server| (server.config.id.clone(), server.config)));
            }
            Err(error) => self.problems.push(format!("{}: {error}", file.display())),
        }
    }

    /// The servers of a project's plain files, as far as somebody trusted these: they may start any program.
    pub(crate) async fn of_project(&mut self, project: &Path, store: Option<&Store>) -> Result<(), Failure> {
        for name in OF_PROJECT {
            let file = project.join(name);
            if !file.is_file() {
                continue;
            }
            if is_trusted(&file, store).await? {
                self.mcp_file(&file);
            } else {
                self.not_trusted.push(format!("servers of {name}"));
                self.trustable.push(file);
            }
        }
        Ok(())
    }
}
