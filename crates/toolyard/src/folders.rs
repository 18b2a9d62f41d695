//! Where things are on this machine: the only place that looks at the home folder and the environment.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use etcetera::{AppStrategy as _, AppStrategyArgs};
use toolyard::{Settings, SettingsError, Surroundings, settings::ServeSettings};
use toolyard_core::{ContentHash, Servers as _, TrustDecision};
use toolyard_mcp::config::{McpServerConfig, ServerSettings};
use toolyard_store::{Location, Store, StoreError};
use toolyard_tools::skill::{SkillFolder, SkillScope};

use crate::{
    failure::{Code, Failure},
    progress::waiting,
    server_files::Gathered,
};

/// The name of the settings file.
const FILE_NAME: &str = "toolyard.toml";
/// The folder of lexicons, and how their files end.
const LEXICONS: &str = "lexicons";
const LEXICON: &str = "lexicon";
/// Variables that programs of skills always see.
const HARMLESS: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Settings, where they came from, and what the machine offers.
#[derive(Debug)]
pub(crate) struct Workplace {
    pub(crate) settings: Settings,
    /// What is served: the operator's own word, unless a trusted project has one.
    pub(crate) serve: ServeSettings,
    /// The file the settings came from; none when there is none.
    pub(crate) settings_file: Option<PathBuf>,
    /// What files of a project say and is not done, because nobody trusted them.
    pub(crate) not_trusted: Vec<String>,
    /// Files of a project that may be trusted, as they are now.
    pub(crate) trustable: Vec<PathBuf>,
    /// The MCP servers that may be started, from all files together.
    pub(crate) servers: Vec<McpServerConfig>,
    /// What is wrong with descriptions of servers.
    pub(crate) server_problems: Vec<String>,
    /// What there is to say about servers of plain files.
    pub(crate) server_notes: Vec<String>,
    /// Servers of settings files as they were written.
    pub(crate) written_servers: BTreeMap<String, ServerSettings>,
    pub(crate) surroundings: Surroundings,
    /// The folder of the project we stand in.
    pub(crate) project: PathBuf,
    /// Where the user's settings are.
    pub(crate) config_folder: PathBuf,
    /// The file in which the user's own servers stand, whether it is there yet or not.
    pub(crate) operators_file: PathBuf,
    /// Where the user's data is.
    pub(crate) data_folder: PathBuf,
    /// The folder of a model for finding tools.
    pub(crate) search_model: Option<PathBuf>,
    /// The store; none when the usual place cannot be written.
    pub(crate) store: Option<Store>,
}

impl Workplace {
    /// Where the lexicon of a language is, or would be.
    pub(crate) fn lexicon_file(&self, language: &str) -> PathBuf {
        self.data_folder.join(LEXICONS).join(format!("{language}.{LEXICON}"))
    }

    /// The lexicons that were added, by name.
    pub(crate) fn lexicon_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data_folder.join(LEXICONS)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_lexicon(path)).collect();
        files.sort();
        files
    }
}

fn is_lexicon(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == LEXICON)
}

/// The kind of decision that trusts a project's settings.
pub(crate) const SETTINGS: &str = "settings";

/// Finds settings (`--config`, then the project's folder upwards, then the user's folder), the folders around them, and
/// the store.
pub(crate) async fn workplace(config: Option<&Path>) -> Result<Workplace, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Code::Failed, format!("failed to find the current folder: {error}")))?;
    let name = AppStrategyArgs { app_name: "toolyard".to_owned(), ..AppStrategyArgs::default() };
    let user = etcetera::choose_app_strategy(name).map_err(|error| {
        Failure::new(Code::Failed, format!("failed to find your home folder: {error}"))
            .with_hint("set the variable HOME")
    })?;
    let project_file = here.ancestors().map(|folder| folder.join(FILE_NAME)).find(|file| file.is_file());
    let user_file = Some(user.config_dir().join(FILE_NAME)).filter(|file| file.is_file());
    // A file that came with a project speaks for the project, not for the user.
    let of_project = config.is_none() && project_file.is_some();
    let operators_file = config.map(Path::to_owned).or_else(|| user_file.clone());
    let operators = operators_file.as_deref().map(read).transpose()?.unwrap_or_default();
    let store = open_store(&operators, operators_file.as_deref(), &user.data_dir()).await?;
    let settings_file = config.map(Path::to_owned).or(project_file).or(user_file);
    let (mut settings, not_trusted, store) = match &settings_file {
        Some(path) if of_project => of_the_project(path, store).await?,
        _ => (operators.clone(), Vec::new(), store),
    };
    if of_project {
        settings.take_beside(&operators);
    }
    let project = project_folder(&here, settings_file.as_deref().filter(|_| of_project));
    let mut gathered = Gathered::default();
    gathered.not_trusted.extend(not_trusted.iter().map(|name| format!("{name} of {FILE_NAME}")));
    if config.is_none() {
        gathered.mcp_file(&user.config_dir().join("mcp.json"));
    }
    gathered.settings(&operators, operators_file.as_deref());
    if config.is_none() {
        gathered.of_project(&project, store.as_ref()).await?;
    }
    if of_project {
        gathered.trustable.extend(settings_file.clone().filter(|_| !not_trusted.is_empty()));
        gathered.settings(&settings, settings_file.as_deref());
    }
    let mut skill_folders = skill_folders(&user.config_dir(), &project);
    let base = settings_file.as_deref().and_then(Path::parent).unwrap_or(&here);
    let scope = if of_project { SkillScope::Project } else { SkillScope::Own };
    for folder in &settings.skills.folders {
        skill_folders.push(SkillFolder { path: base.join(folder), scope });
    }
    // A file that came with a project must not open what the operator closed by saying nothing.
    let serve = if of_project && settings.serve == ServeSettings::default() {
        operators.serve.clone()
    } else {
        settings.serve.clone()
    };
    let search_model = settings.search_model.as_ref().map(|folder| base.join(folder));
    let environment = environment(&settings.skills.environment);
    let surroundings = Surroundings { skill_folders, environment, working_directory: here };
    Ok(Workplace {
        settings,
        serve,
        settings_file,
        not_trusted: gathered.not_trusted,
        trustable: gathered.trustable,
        servers: gathered.servers.into_values().collect(),
        server_problems: gathered.problems,
        server_notes: gathered.notes,
        written_servers: gathered.written,
        surroundings,
        project,
        operators_file: operators_file.unwrap_or_else(|| user.config_dir().join(FILE_NAME)),
        config_folder: user.config_dir(),
        data_folder: user.data_dir(),
        search_model,
        store,
    })
}

/// A project's settings: whole if they were trusted as they are, else without what only the operator may decide.
async fn of_the_project(
    path: &Path,
    store: Option<Store>,
) -> Result<(Settings, Vec<&'static str>, Option<Store>), Failure> {
    let settings = read(path)?;
    let (harmless, taken) = settings.without_power();
    if taken.is_empty() || !is_trusted(path, store.as_ref()).await? {
        return Ok((harmless, taken, store));
    }
    let base = path.parent().unwrap_or(path);
    let store = match settings.store_location(base, |name| std::env::var(name).ok())? {
        Some(location) => Some(Store::open(location).await?),
        None => store,
    };
    Ok((settings, Vec::new(), store))
}

pub(crate) async fn is_trusted(path: &Path, store: Option<&Store>) -> Result<bool, Failure> {
    let Some(store) = store else { return Ok(false) };
    let Ok(now) = trust_in(path, 0) else { return Ok(false) };
    let decisions = store.trusted(SETTINGS).await.map_err(|error| Failure::new(Code::Failed, error))?;
    Ok(decisions.iter().any(|known| known.subject == now.subject && known.content == now.content))
}

/// The decision to trust a settings file as it is now.
pub(crate) fn trust_in(path: &Path, decided_at: i64) -> Result<TrustDecision, SettingsError> {
    let unreadable = |error| SettingsError::Unreadable { path: path.to_owned(), error };
    let canonical = path.canonicalize().map_err(unreadable)?;
    let content = ContentHash::of(std::fs::read(&canonical).map_err(unreadable)?);
    Ok(TrustDecision {
        kind: SETTINGS.to_owned(),
        subject: canonical.to_string_lossy().into_owned(),
        content,
        decided_at,
    })
}

/// The operator's store: where the settings say, which must work, or the usual place, which should.
async fn open_store(settings: &Settings, file: Option<&Path>, data: &Path) -> Result<Option<Store>, Failure> {
    let base = file.and_then(Path::parent).unwrap_or(data);
    if let Some(location) = settings.store_location(base, |name| std::env::var(name).ok())? {
        return Ok(Some(waiting("the store", Store::open(location)).await??));
    }
    match Store::open(Location::Sqlite(data.join("toolyard.db"))).await {
        Ok(store) => Ok(Some(store)),
        // A store that was written by a later version is a reason to stop; a folder that cannot be written is not.
        Err(error @ StoreError::Newer { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "nothing is kept beyond this process");
            Ok(None)
        }
    }
}

fn read(path: &Path) -> Result<Settings, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| SettingsError::Unreadable { path: path.to_owned(), error })?;
    Settings::parse(&text, path)
}

/// The folder of the settings file, else of the repository, else where we stand.
fn project_folder(here: &Path, settings_file: Option<&Path>) -> PathBuf {
    let of_settings = settings_file.and_then(Path::parent);
    let of_repository = || here.ancestors().find(|folder| folder.join(".git").exists());
    of_settings.or_else(of_repository).unwrap_or(here).to_owned()
}

/// The user's own folder, those shared with other programs, and those of the project.
fn skill_folders(config: &Path, project: &Path) -> Vec<SkillFolder> {
    const KNOWN: [&str; 2] = [".agents/skills", ".claude/skills"];
    let mut folders = vec![SkillFolder { path: config.join("skills"), scope: SkillScope::Own }];
    let home = etcetera::home_dir().ok();
    let mut add = |folder: &Path, scope| {
        folders.extend(KNOWN.map(|name| SkillFolder { path: folder.join(name), scope }));
    };
    if let Some(home) = &home {
        add(home, SkillScope::Shared);
    }
    if home.as_deref() != Some(project) {
        add(project, SkillScope::Project);
    }
    folders
}

fn environment(more: &[String]) -> Vec<(String, String)> {
    let names = HARMLESS.iter().copied().chain(more.iter().map(String::as_str));
    names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect()
}
