//! The context of one invocation. This module alone looks at the home folder and finds settings files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use etcetera::{AppStrategy, AppStrategyArgs};
use toolyard::{Settings, SettingsError, SkillEnvironment, settings::SettingsLayer};
use toolyard_gateway::SettingsReport;
use toolyard_mcp_client::config::{McpServerConfig, ServerSettings};
use toolyard_store::{Location, Store};
use toolyard_tools::skill::{SkillFolder, SkillScope};

use super::{HashedFile, StoredSecrets, UntrustedFile, server_files::ServerCollection};
use crate::{error::CliError, terminal::progress::with_progress};

const SETTINGS_FILE: &str = "toolyard.toml";
/// Environment variables that skill programs always see.
const SAFE_VARIABLES: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Settings, where they came from, and the folders and store that go with them.
#[derive(Debug)]
pub(crate) struct CliContext {
    /// The settings of all layers together; see [`SettingsLayer`].
    pub(crate) settings: Settings,
    /// The files that were read, the operator's first.
    pub(crate) settings_files: Vec<PathBuf>,
    /// The settings of each file that take effect, the lowest layer first.
    layers: Vec<SettingsLayer>,
    /// Project settings that are ignored because their file is not trusted.
    pub(crate) untrusted_settings: Vec<String>,
    /// Project files that `toolyard trust` would trust.
    pub(crate) untrusted_files: Vec<UntrustedFile>,
    /// The MCP servers of all files together.
    pub(crate) servers: Vec<McpServerConfig>,
    pub(crate) server_problems: Vec<String>,
    /// Notes on servers of mcp.json files.
    pub(crate) server_notes: Vec<String>,
    /// Servers of settings files, with unresolved variables.
    pub(crate) server_settings: BTreeMap<String, ServerSettings>,
    /// Variables that the user's own settings need, apart from those of the project.
    pub(crate) own_variables: BTreeSet<String>,
    pub(crate) skill_environment: SkillEnvironment,
    /// The project's root folder.
    pub(crate) project: PathBuf,
    pub(crate) config_folder: PathBuf,
    /// The operator's settings file, which may not exist yet.
    pub(crate) operator_file: PathBuf,
    pub(crate) data_folder: PathBuf,
    stored_secrets: StoredSecrets,
    /// The store; `None` if the default location is not writable.
    pub(crate) store: Option<Store>,
    /// The operator's store, which holds trust in files and skills: a project's own store may have come with the project.
    pub(crate) operator_store: Option<Store>,
    /// The settings file that the command line names.
    config: Option<PathBuf>,
}

impl CliContext {
    /// Finds settings (`--config`, then the current folder and its ancestors, then the user's folder) and opens the store.
    pub(crate) async fn load(config: Option<&Path>) -> Result<Self, CliError> {
        Self::load_with_stores(config, None).await
    }

    /// The settings of all files, each with its origin, without secrets.
    pub(crate) fn settings_report(&self) -> Result<SettingsReport, SettingsError> {
        let files = self.settings_files.iter().map(|file| file.display().to_string()).collect();
        Ok(SettingsReport { files, ..SettingsLayer::report(&self.layers)? })
    }

    /// Reads all settings files again. The stores stay the same, even if the files name others.
    pub(crate) async fn reload(&self) -> Result<Self, CliError> {
        let reloaded =
            Self::load_with_stores(self.config.as_deref(), Some(self.operator_store.clone())).await?;
        Ok(Self { store: self.store.clone(), ..reloaded })
    }

    /// `operator_store` is opened unless it is given; then no other store is opened either.
    async fn load_with_stores(
        config: Option<&Path>,
        operator_store: Option<Option<Store>>,
    ) -> Result<Self, CliError> {
        let opens_stores = operator_store.is_none();
        let current_folder = current_folder()?;
        let user_folders = user_folders()?;
        let user_file = Some(user_folders.config_dir().join(SETTINGS_FILE)).filter(|file| file.is_file());
        let project_file = match config {
            Some(_) => None,
            None => find_project_file(&current_folder, user_file.as_deref())?,
        };
        let operator_file = config.map(Path::to_owned).or(user_file);
        let operator = operator_file.as_deref().map(read_layer).transpose()?.unwrap_or_default();
        let data_folder = user_folders.data_dir();
        let operator_store = match operator_store {
            Some(store) => store,
            None => open_store(operator.settings(), operator_file.as_deref(), &data_folder).await?,
        };
        let own = OwnSettings::new(operator, operator_file.as_deref(), &user_folders.config_dir());
        // A file that came with a project has fewer rights than the user's own.
        let (file, store) = (project_file.as_ref(), operator_store.as_ref());
        let project_settings = ProjectSettings::read(file, &own.layer, store, opens_stores).await?;
        let (layers, mut settings) = project_settings.merge(&own.layer)?;
        let project_path = file.map(HashedFile::path);
        let project = project_folder(&current_folder, project_path);
        let mut collected = ServerCollection::default();
        let mcp_json = config.is_none().then(|| user_folders.config_dir().join("mcp.json"));
        own.add_servers(&mut collected, mcp_json.as_deref());
        if config.is_none() {
            project_settings.add_servers(&mut collected, file, &project, store).await?;
        }
        let ProjectSettings { layer: project_layer, store, .. } = project_settings;
        let settings_files = [operator_file.as_deref(), project_path];
        let skills = skill_folders(&user_folders.config_dir(), &project);
        let mut paths = SettingsPaths { skills, ..SettingsPaths::default() };
        own.add_paths(&mut paths);
        paths.add(project_layer.settings(), project_path, SkillScope::Project);
        settings.policy.files = std::mem::take(&mut paths.policies);
        let skill_environment = SkillEnvironment {
            skill_folders: std::mem::take(&mut paths.skills),
            environment: skill_variables(&settings.skills.environment),
            working_directory: current_folder,
            trust_store: operator_store.clone(),
        };
        Ok(Self {
            settings,
            settings_files: settings_files.into_iter().flatten().map(Path::to_owned).collect(),
            layers,
            untrusted_settings: collected.untrusted_settings,
            untrusted_files: collected.untrusted_files,
            servers: collected.servers.into_values().collect(),
            server_problems: collected.problems,
            server_notes: collected.notes,
            server_settings: collected.server_settings,
            own_variables: collected.own_variables,
            skill_environment,
            project,
            operator_file: operator_file.unwrap_or_else(|| user_folders.config_dir().join(SETTINGS_FILE)),
            config_folder: user_folders.config_dir(),
            stored_secrets: StoredSecrets::from_environment(&data_folder),
            data_folder,
            store,
            operator_store,
            config: config.map(Path::to_owned),
        })
    }

    /// The operator's store, even if the project has its own.
    pub(crate) fn require_operator_store(&self) -> Result<&Store, CliError> {
        self.operator_store.as_ref().ok_or_else(CliError::no_store)
    }

    /// The secrets that settings refer to.
    pub(crate) fn stored_secrets(&self) -> StoredSecrets {
        self.stored_secrets.clone()
    }
}

fn current_folder() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::failed(format!("failed to find the current folder: {error}")))
}

/// The folders of settings and data in the user's home.
fn user_folders() -> Result<impl AppStrategy, CliError> {
    let app = AppStrategyArgs { app_name: "toolyard".to_owned(), ..AppStrategyArgs::default() };
    etcetera::choose_app_strategy(app).map_err(|error| {
        CliError::failed(format!("failed to find your home folder: {error}"))
            .with_hint("set the environment variable HOME")
    })
}

/// The user's own settings.
struct OwnSettings {
    layer: SettingsLayer,
    /// What relative paths are relative to: the operator's file, which may not exist.
    file: PathBuf,
}

impl OwnSettings {
    fn new(layer: SettingsLayer, file: Option<&Path>, config_folder: &Path) -> Self {
        let file = file.map_or_else(|| config_folder.join(SETTINGS_FILE), Path::to_owned);
        Self { layer, file }
    }

    /// Adds the servers of the user's mcp.json, and above them those of the settings.
    fn add_servers(&self, collected: &mut ServerCollection, mcp_json: Option<&Path>) {
        if let Some(file) = mcp_json {
            collected.add_mcp_json(file);
        }
        collected.add_settings(self.layer.settings(), Some(&self.file));
        collected.own_variables.extend(self.layer.required_variables());
        collected.mark_as_own();
    }

    fn add_paths(&self, paths: &mut SettingsPaths) {
        paths.add(self.layer.settings(), Some(&self.file), SkillScope::User);
    }
}

/// What counts of a project's settings file.
struct ProjectSettings {
    layer: SettingsLayer,
    /// What does not count, because the file is not trusted.
    untrusted: Option<UntrustedSettings>,
    /// The project's store if a trusted file names one, otherwise the operator's.
    store: Option<Store>,
}

struct UntrustedSettings {
    /// The names of the ignored keys.
    keys: Vec<String>,
    /// The whole file.
    settings: Settings,
}

impl ProjectSettings {
    fn none(operator_store: Option<&Store>) -> Self {
        Self { layer: SettingsLayer::default(), untrusted: None, store: operator_store.cloned() }
    }

    /// The whole file if it is trusted, otherwise its unprivileged keys.
    async fn read(
        file: Option<&HashedFile>,
        own: &SettingsLayer,
        operator_store: Option<&Store>,
        opens_stores: bool,
    ) -> Result<Self, CliError> {
        let Some(file) = file else { return Ok(Self::none(operator_store)) };
        let layer = SettingsLayer::parse(file.text(), file.path())?;
        let (unprivileged, mut keys) = layer.clone().without_privileged_keys()?;
        keys.extend(unprivileged.overridden_keys(own));
        if keys.is_empty() {
            return Ok(Self { layer: unprivileged, ..Self::none(operator_store) });
        }
        if !file.is_trusted(operator_store).await? {
            let untrusted = Some(UntrustedSettings { keys, settings: layer.settings().clone() });
            return Ok(Self { layer: unprivileged, untrusted, ..Self::none(operator_store) });
        }
        let base = file.path().parent().unwrap_or(file.path());
        let store = match layer.settings().store_location(base, |name| std::env::var(name).ok())? {
            Some(location) if opens_stores => Some(Store::open(location).await?),
            _ => operator_store.cloned(),
        };
        Ok(Self { layer, untrusted: None, store })
    }

    /// Adds the servers of the project's files, and what does not count of these files.
    async fn add_servers(
        &self,
        collected: &mut ServerCollection,
        file: Option<&HashedFile>,
        project: &Path,
        operator_store: Option<&Store>,
    ) -> Result<(), CliError> {
        if let Some(untrusted) = &self.untrusted {
            let names = untrusted.keys.iter().map(|key| format!("{key} of {SETTINGS_FILE}"));
            collected.untrusted_settings.extend(names);
        }
        collected.add_project(project, operator_store).await?;
        collected.add_settings(self.layer.settings(), file.map(HashedFile::path));
        if let (Some(file), Some(untrusted)) = (file, &self.untrusted) {
            collected.add_untrusted_settings(file.clone(), &untrusted.settings);
        }
        Ok(())
    }

    /// All layers, the lowest first, and their settings: a trusted project is above the user's own, any other below.
    fn merge(&self, own: &SettingsLayer) -> Result<(Vec<SettingsLayer>, Settings), SettingsError> {
        let layers = match self.untrusted {
            None => vec![own.clone(), self.layer.clone()],
            Some(_) => vec![self.layer.clone(), own.clone()],
        };
        let settings = SettingsLayer::merge(&layers)?;
        Ok((layers, settings))
    }
}

/// Paths of settings files, resolved.
#[derive(Default)]
struct SettingsPaths {
    skills: Vec<SkillFolder>,
    policies: Vec<PathBuf>,
}

impl SettingsPaths {
    /// Adds those of a file above the ones before; relative paths are relative to its folder.
    fn add(&mut self, settings: &Settings, file: Option<&Path>, scope: SkillScope) {
        let Some(folder) = file.and_then(Path::parent) else { return };
        let skills =
            settings.skills.folders.iter().map(|path| SkillFolder { path: folder.join(path), scope });
        self.skills.extend(skills);
        self.policies.extend(settings.policy.files.iter().map(|file| folder.join(file)));
    }
}

/// The nearest settings file in a folder or its ancestors, unless it is the user's own.
fn find_project_file(folder: &Path, user_file: Option<&Path>) -> Result<Option<HashedFile>, SettingsError> {
    let path = folder.ancestors().map(|folder| folder.join(SETTINGS_FILE)).find(|file| file.is_file());
    let Some(path) = path.filter(|path| Some(path.as_path()) != user_file) else { return Ok(None) };
    HashedFile::read(&path).map(Some).map_err(|error| SettingsError::Unreadable { path, error })
}

/// The operator's store. A configured store must open, and so must the default one if it exists: it may contain callers
/// and approvals. Without any, state is kept in memory.
async fn open_store(
    settings: &Settings,
    file: Option<&Path>,
    data_folder: &Path,
) -> Result<Option<Store>, CliError> {
    let base = file.and_then(Path::parent).unwrap_or(data_folder);
    if let Some(location) = settings.store_location(base, |name| std::env::var(name).ok())? {
        return Ok(Some(with_progress("the store", Store::open(location)).await??));
    }
    let database = data_folder.join("toolyard.db");
    let is_missing =
        |error: &std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let may_exist = !std::fs::symlink_metadata(&database).is_err_and(|error| is_missing(&error));
    match Store::open(Location::Sqlite(database)).await {
        Ok(store) => Ok(Some(store)),
        Err(error) if may_exist => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "no store: state is lost when this process ends");
            Ok(None)
        }
    }
}

fn read_layer(path: &Path) -> Result<SettingsLayer, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| SettingsError::Unreadable { path: path.to_owned(), error })?;
    SettingsLayer::parse(&text, path)
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
