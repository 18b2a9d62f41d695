//! The context of one invocation. This module alone looks at the home folder and finds settings files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use etcetera::{AppStrategy, AppStrategyArgs};
use toolyard::{Settings, SettingsError, SkillEnvironment, settings::ServeSettings};
use toolyard_mcp_client::config::{McpServerConfig, ServerSettings};
use toolyard_store::{Location, Store, StoreError};
use toolyard_tools::skill::{SkillFolder, SkillScope};

use super::{is_trusted, server_files::ServerCollection};
use crate::{error::CliError, terminal::progress::with_progress};

const SETTINGS_FILE: &str = "toolyard.toml";
const LEXICON_FOLDER: &str = "lexicons";
const LEXICON_EXTENSION: &str = "lexicon";
/// Environment variables that skill programs always see.
const SAFE_VARIABLES: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Settings, where they came from, and the folders and store that go with them.
#[derive(Debug)]
pub(crate) struct CliContext {
    pub(crate) settings: Settings,
    /// `[serve]` of the operator, unless a trusted project has its own.
    pub(crate) serve: ServeSettings,
    pub(crate) settings_file: Option<PathBuf>,
    /// Project settings that are ignored because their file is not trusted.
    pub(crate) untrusted_settings: Vec<String>,
    /// Project files that `toolyard trust` would trust.
    pub(crate) untrusted_files: Vec<PathBuf>,
    /// The MCP servers of all files together.
    pub(crate) servers: Vec<McpServerConfig>,
    pub(crate) server_problems: Vec<String>,
    /// Notes on servers of mcp.json files.
    pub(crate) server_notes: Vec<String>,
    /// Servers of settings files, with unresolved variables.
    pub(crate) server_settings: BTreeMap<String, ServerSettings>,
    pub(crate) skill_environment: SkillEnvironment,
    /// The project's root folder.
    pub(crate) project: PathBuf,
    pub(crate) config_folder: PathBuf,
    /// The operator's settings file, which may not exist yet.
    pub(crate) operator_file: PathBuf,
    pub(crate) data_folder: PathBuf,
    /// The folder of an embedding model for tool search.
    pub(crate) tool_search_model: Option<PathBuf>,
    /// The store; `None` if the default location is not writable.
    pub(crate) store: Option<Store>,
}

impl CliContext {
    /// Finds settings (`--config`, then the current folder and its ancestors, then the user's folder) and opens the store.
    pub(crate) async fn load(config: Option<&Path>) -> Result<Self, CliError> {
        let current_folder = std::env::current_dir()
            .map_err(|error| CliError::failed(format!("failed to find the current folder: {error}")))?;
        let user_folders = user_folders()?;
        let project_file =
            current_folder.ancestors().map(|folder| folder.join(SETTINGS_FILE)).find(|file| file.is_file());
        let user_file = Some(user_folders.config_dir().join(SETTINGS_FILE)).filter(|file| file.is_file());
        // A file that came with a project has fewer rights than the user's own.
        let uses_project_file = config.is_none() && project_file.is_some();
        let operator_file = config.map(Path::to_owned).or_else(|| user_file.clone());
        let operator_settings = operator_file.as_deref().map(read_settings).transpose()?.unwrap_or_default();
        let store =
            open_store(&operator_settings, operator_file.as_deref(), &user_folders.data_dir()).await?;
        let settings_file = config.map(Path::to_owned).or(project_file).or(user_file);
        let (mut settings, untrusted_keys, store) = match &settings_file {
            Some(path) if uses_project_file => project_settings(path, store).await?,
            _ => (operator_settings.clone(), Vec::new(), store),
        };
        if uses_project_file {
            settings.merge_operator(&operator_settings);
        }
        let project = project_folder(&current_folder, settings_file.as_deref().filter(|_| uses_project_file));
        let untrusted_settings =
            untrusted_keys.iter().map(|key| format!("{key} of {SETTINGS_FILE}")).collect();
        let mut collected = ServerCollection { untrusted_settings, ..ServerCollection::default() };
        if config.is_none() {
            collected.add_mcp_json(&user_folders.config_dir().join("mcp.json"));
        }
        collected.add_settings(&operator_settings, operator_file.as_deref());
        if config.is_none() {
            collected.add_project(&project, store.as_ref()).await?;
        }
        if uses_project_file {
            collected.untrusted_files.extend(settings_file.clone().filter(|_| !untrusted_keys.is_empty()));
            collected.add_settings(&settings, settings_file.as_deref());
        }
        let mut skill_folders = skill_folders(&user_folders.config_dir(), &project);
        let settings_folder = settings_file.as_deref().and_then(Path::parent).unwrap_or(&current_folder);
        let scope = if uses_project_file { SkillScope::Project } else { SkillScope::User };
        for folder in &settings.skills.folders {
            skill_folders.push(SkillFolder { path: settings_folder.join(folder), scope });
        }
        // A project without [serve] must not discard the restrictions of the operator's.
        let serve = if uses_project_file && settings.serve == ServeSettings::default() {
            operator_settings.serve.clone()
        } else {
            settings.serve.clone()
        };
        let tool_search_model =
            settings.tool_search_model.as_ref().map(|folder| settings_folder.join(folder));
        let environment = skill_variables(&settings.skills.environment);
        let skill_environment =
            SkillEnvironment { skill_folders, environment, working_directory: current_folder };
        Ok(Self {
            settings,
            serve,
            settings_file,
            untrusted_settings: collected.untrusted_settings,
            untrusted_files: collected.untrusted_files,
            servers: collected.servers.into_values().collect(),
            server_problems: collected.problems,
            server_notes: collected.notes,
            server_settings: collected.server_settings,
            skill_environment,
            project,
            operator_file: operator_file.unwrap_or_else(|| user_folders.config_dir().join(SETTINGS_FILE)),
            config_folder: user_folders.config_dir(),
            data_folder: user_folders.data_dir(),
            tool_search_model,
            store,
        })
    }

    /// The file of a language's lexicon, which may not exist.
    pub(crate) fn lexicon_file(&self, language: &str) -> PathBuf {
        self.data_folder.join(LEXICON_FOLDER).join(format!("{language}.{LEXICON_EXTENSION}"))
    }

    /// The lexicons that were added, sorted by name.
    pub(crate) fn lexicon_files(&self) -> Vec<PathBuf> {
        let entries =
            std::fs::read_dir(self.data_folder.join(LEXICON_FOLDER)).into_iter().flatten().flatten();
        let is_lexicon =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == LEXICON_EXTENSION);
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_lexicon).collect();
        files.sort();
        files
    }
}

/// The folders of settings and data in the user's home.
fn user_folders() -> Result<impl AppStrategy, CliError> {
    let app = AppStrategyArgs { app_name: "toolyard".to_owned(), ..AppStrategyArgs::default() };
    etcetera::choose_app_strategy(app).map_err(|error| {
        CliError::failed(format!("failed to find your home folder: {error}"))
            .with_hint("set the environment variable HOME")
    })
}

/// A project's settings: complete if the file is trusted, otherwise without privileged keys, whose names are returned too.
async fn project_settings(
    path: &Path,
    store: Option<Store>,
) -> Result<(Settings, Vec<&'static str>, Option<Store>), CliError> {
    let settings = read_settings(path)?;
    let (unprivileged, removed) = settings.without_privileged_keys();
    if removed.is_empty() || !is_trusted(path, store.as_ref()).await? {
        return Ok((unprivileged, removed, store));
    }
    let base = path.parent().unwrap_or(path);
    let store = match settings.store_location(base, |name| std::env::var(name).ok())? {
        Some(location) => Some(Store::open(location).await?),
        None => store,
    };
    Ok((settings, Vec::new(), store))
}

/// The operator's store. A configured store must open; the default one may be missing.
async fn open_store(
    settings: &Settings,
    file: Option<&Path>,
    data_folder: &Path,
) -> Result<Option<Store>, CliError> {
    let base = file.and_then(Path::parent).unwrap_or(data_folder);
    if let Some(location) = settings.store_location(base, |name| std::env::var(name).ok())? {
        return Ok(Some(with_progress("the store", Store::open(location)).await??));
    }
    match Store::open(Location::Sqlite(data_folder.join("toolyard.db"))).await {
        Ok(store) => Ok(Some(store)),
        // A store written by a newer version must not be ignored; an unwritable folder may be.
        Err(error @ StoreError::NewerSchema { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "no store: state is lost when this process ends");
            Ok(None)
        }
    }
}

fn read_settings(path: &Path) -> Result<Settings, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| SettingsError::Unreadable { path: path.to_owned(), error })?;
    Settings::parse(&text, path)
}

/// The folder of the project's settings file, else of the repository, else the current one.
fn project_folder(current: &Path, settings_file: Option<&Path>) -> PathBuf {
    let of_settings = settings_file.and_then(Path::parent);
    let of_repository = || current.ancestors().find(|folder| folder.join(".git").exists());
    of_settings.or_else(of_repository).unwrap_or(current).to_owned()
}

/// Skill folders: the user's own, those shared with other programs, the project's.
fn skill_folders(config_folder: &Path, project: &Path) -> Vec<SkillFolder> {
    const SHARED_SKILL_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];
    let mut folders = vec![SkillFolder { path: config_folder.join("skills"), scope: SkillScope::User }];
    let home = etcetera::home_dir().ok();
    let mut add = |folder: &Path, scope| {
        folders.extend(SHARED_SKILL_FOLDERS.map(|name| SkillFolder { path: folder.join(name), scope }));
    };
    if let Some(home) = &home {
        add(home, SkillScope::Shared);
    }
    if home.as_deref() != Some(project) {
        add(project, SkillScope::Project);
    }
    folders
}

fn skill_variables(additional: &[String]) -> Vec<(String, String)> {
    let names = SAFE_VARIABLES.iter().copied().chain(additional.iter().map(String::as_str));
    names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect()
}
