//! Where things are on this machine: the only place that looks at the home folder and the environment.

use std::path::{Path, PathBuf};

use etcetera::{AppStrategy as _, AppStrategyArgs};
use toolyard::{Settings, SettingsError, Surroundings};
use toolyard_tools::skill::{SkillFolder, SkillScope};

use crate::failure::{Code, Failure};

/// The name of the settings file.
const FILE_NAME: &str = "toolyard.toml";
/// Variables that programs of skills always see.
const HARMLESS: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM"];

/// Settings, where they came from, and what the machine offers.
#[derive(Debug)]
pub(crate) struct Workplace {
    pub(crate) settings: Settings,
    /// The file the settings came from; none when there is none.
    pub(crate) settings_file: Option<PathBuf>,
    pub(crate) surroundings: Surroundings,
}

/// Finds settings (`--config`, then the project's folder upwards, then the user's folder) and the folders around them.
pub(crate) fn workplace(config: Option<&Path>) -> Result<Workplace, Failure> {
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
    let settings_file = config.map(Path::to_owned).or(project_file).or(user_file);
    let settings = match &settings_file {
        Some(path) => read(path)?,
        None => Settings::default(),
    };
    let project = project_folder(&here, settings_file.as_deref().filter(|_| of_project));
    let mut skill_folders = skill_folders(&user.config_dir(), &project);
    let base = settings_file.as_deref().and_then(Path::parent).unwrap_or(&here);
    let scope = if of_project { SkillScope::Project } else { SkillScope::Own };
    for folder in &settings.skills.folders {
        skill_folders.push(SkillFolder { path: base.join(folder), scope });
    }
    let surroundings = Surroundings {
        skill_folders,
        trust_file: user.data_dir().join("trusted-skills.json"),
        cache_folder: user.cache_dir().join("skills"),
        results_folder: user.data_dir().join("results"),
        environment: environment(&settings.skills.environment),
        working_directory: here,
    };
    Ok(Workplace { settings, settings_file, surroundings })
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
