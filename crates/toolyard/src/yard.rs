//! Puts the rooms together: settings and surroundings in, a hub with all its tools out.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::{RawJson, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput};
use toolyard_hub::{CallOptions, HubConfig, RetryPolicy, ToolHub};
use toolyard_tools::{
    IntoOutput, function,
    native::{NativeTools, SearchSettings},
    skill::{self, LoadedSkills, SkillFolder, TrustError, TrustFile},
};

use crate::{FolderResults, Settings, SettingsError};

/// What a yard may use of the machine it runs on. Nothing is looked up by the library itself.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where skills are looked for.
    pub skill_folders: Vec<SkillFolder>,
    /// Which skills were trusted.
    pub trust_file: PathBuf,
    /// Where descriptions of skills' programs are remembered.
    pub cache_folder: PathBuf,
    /// Where whole results are kept.
    pub results_folder: PathBuf,
    /// What programs of skills see of the environment.
    pub environment: Vec<(String, String)>,
    /// Where programs of skills run.
    pub working_directory: PathBuf,
}

/// Why there is no yard, or why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The decisions on trust cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] ToolError),
}

/// A hub with its tools.
#[derive(Debug)]
pub struct Toolyard {
    hub: ToolHub,
    options: CallOptions,
    skills: LoadedSkills,
}

/// What a yard is made of.
#[derive(Default)]
pub struct ToolyardBuilder {
    settings: Settings,
    search: SearchSettings,
    surroundings: Option<Surroundings>,
    tools: Vec<Arc<dyn Tool>>,
}

impl std::fmt::Debug for ToolyardBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolyardBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Toolyard {
    /// Begins a yard with the native tools.
    pub fn builder() -> ToolyardBuilder {
        ToolyardBuilder::default()
    }

    /// Calls a tool by name.
    pub async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, ToolError> {
        self.hub.execute(&ToolCallRequest::new(tool, arguments), &self.options).await
    }

    /// The hub, for everything else.
    pub fn hub(&self) -> &ToolHub {
        &self.hub
    }

    /// How calls are carried out unless somebody says otherwise.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// The skills that were found, and what is wrong with them.
    pub fn skills(&self) -> &LoadedSkills {
        &self.skills
    }
}

impl ToolyardBuilder {
    /// Uses these settings.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Searches the web with this engine.
    #[must_use]
    pub fn search(mut self, search: SearchSettings) -> Self {
        self.search = search;
        self
    }

    /// Uses skills, and keeps results beyond the life of the process.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// Adds an async function as a tool; its schema comes from its type. See [`toolyard_tools::function()`].
    #[must_use]
    pub fn tool<A, F, Fut>(self, name: &str, description: &str, f: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutput> + Send + 'static,
    {
        self.with(function(name, description, f))
    }

    /// Adds any tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The yard. Skills' programs may be asked for their descriptions here; nothing else is started.
    pub async fn build(self) -> Result<Toolyard, Error> {
        let mut config = HubConfig {
            rules: self.settings.rules(),
            capabilities: self.settings.capabilities(),
            limits: self.settings.limits(),
            retry: RetryPolicy { attempts: self.settings.call.attempts, ..RetryPolicy::default() },
            ..HubConfig::default()
        };
        if let Some(surroundings) = &self.surroundings {
            config.results = Arc::new(FolderResults::new(&surroundings.results_folder));
        }
        let native = NativeTools { default_timezone: self.settings.time.zone.clone(), search: self.search };
        // A function of one's own replaces the native tool of the same name: whoever writes it knows.
        let own: Vec<Arc<str>> = self.tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
        let mut tools = self.tools;
        let built_in = native.tools(Arc::clone(&config.results), None);
        tools.extend(built_in.into_iter().filter(|tool| !own.contains(&tool.spec().name)));

        let hub = ToolHub::new(config);
        hub.register(SourceInfo::native(), tools);
        let mut skills = match &self.surroundings {
            Some(surroundings) => load_skills(surroundings).await?,
            None => LoadedSkills::default(),
        };
        for (source, tools) in std::mem::take(&mut skills.sources) {
            hub.register(source, tools);
        }
        let options = CallOptions::default().with_timeout(self.settings.call.timeout.0);
        Ok(Toolyard { hub, options, skills })
    }
}

async fn load_skills(surroundings: &Surroundings) -> Result<LoadedSkills, TrustError> {
    let trust = TrustFile::load(&surroundings.trust_file)?;
    let settings = skill::SkillSettings {
        folders: surroundings.skill_folders.clone(),
        trust: &trust,
        cache_folder: surroundings.cache_folder.clone(),
        environment: surroundings.environment.clone(),
        working_directory: surroundings.working_directory.clone(),
    };
    Ok(skill::load(settings).await)
}
