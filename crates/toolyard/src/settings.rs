//! `toolyard.toml` as plain data, and what the rooms make of it.

mod agents;
mod approvals;
mod models;
mod serve;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use agents::{AgentCapabilitySettings, AgentSettings, LanguageSetting, LimitSettings};
pub use approvals::ApprovalSettings;
pub use models::{ModelSecrets, ModelSettings, PriceSettings, ToolCallingSetting};
pub use serve::{CurrentAndFormer, ProfileSettings, ServeSettings, SurfaceSetting};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::{Capability, CapabilityRule, CapabilityTable, SourceId, ToolHints};
use toolyard_hub::{Limits, Prefer, RetryPolicy, RoutingRules};
pub use toolyard_mcp::config::Span;
use toolyard_mcp::config::{McpServerConfig, ServerSettings};
use toolyard_store::Location;
use toolyard_tools::native::SearchSettings;

/// Everything an operator may set. All of it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "toolyard.toml")]
pub struct Settings {
    /// Where everything that must outlive a process is kept: the path of a SQLite file (relative to this file), or
    /// `postgres://…`, or a reference to an environment variable that holds either: `${TOOLYARD_STORE}`.
    pub store: Option<String>,
    /// Which calls are journalled.
    pub journal: JournalSetting,
    /// How calls are carried out.
    pub call: CallSettings,
    /// Who answers when several sources have a tool of the same name.
    pub routing: RoutingSettings,
    /// Sources that may stand in for one another, by tool name: `search = ["brave", "tavily"]`.
    pub equivalent: BTreeMap<String, Vec<String>>,
    /// Effects of single tools, by source and tool name; they outweigh what the tool says of itself.
    pub hints: BTreeMap<String, BTreeMap<String, HintSettings>>,
    /// More keywords and the capabilities they stand for.
    pub capability: Vec<CapabilitySettings>,
    /// How many characters of an answer are shown, by kind of tool. The whole stays readable with `read_result`.
    pub budget: BudgetSettings,
    /// The tool `get_time`.
    pub time: TimeSettings,
    /// The tool `search_web`.
    pub search: Option<SearchEngineSettings>,
    /// A folder with a local model for finding tools, relative to this file; only builds with the feature `embedding`
    /// read it.
    pub search_model: Option<PathBuf>,
    /// Skills: folders with a SKILL.md.
    pub skills: SkillFolderSettings,
    /// MCP servers, by the name you give them: a program to start or an address to ask.
    pub servers: BTreeMap<String, ServerSettings>,
    /// Agents, by the name you give them: what a model is told, and which tools it may see.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Language models, by the name you give them.
    pub models: BTreeMap<String, ModelSettings>,
    /// The model of agents that name none; not needed where there is only one.
    pub default_model: Option<String>,
    /// Which calls agents may make without asking a person.
    pub approvals: ApprovalSettings,
    /// What `toolyard serve` offers, and to whom.
    pub serve: ServeSettings,
}

/// Which calls are journalled: written down before they are made and after, so that none is made twice by a crash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JournalSetting {
    /// Those that Toolyard itself might repeat or resume.
    #[default]
    Runs,
    /// All of them.
    Always,
}

/// How calls are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallSettings {
    /// Nothing of a call goes on longer than this, such as `30s` or `2m`.
    pub timeout: Span,
    /// How often a call that may be repeated safely is tried in all.
    pub attempts: u32,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self { timeout: Span(Duration::from_secs(30)), attempts: RetryPolicy::default().attempts }
    }
}

/// Who answers when several sources have a tool of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingSettings {
    /// Which kind of source goes first.
    pub prefer: PreferSetting,
    /// The source that answers for a tool name before all others: `search_web = "native"`.
    pub pin: BTreeMap<String, String>,
}

/// Which kind of source goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreferSetting {
    /// Native tools, then skills, then servers: a server cannot capture a native name.
    #[default]
    NativeFirst,
    /// The same turned round.
    McpFirst,
}

/// The operator's word on one tool's effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HintSettings {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may be repeated without harm.
    pub idempotent: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
}

/// Keywords and the capabilities they stand for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapabilitySettings {
    /// The capabilities a tool gets.
    pub tags: Vec<String>,
    /// Words in its name or description that earn them; `recipe*` accepts any ending.
    pub keywords: Vec<String>,
}

/// How many characters of an answer are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are the kinds of tools")]
pub struct BudgetSettings {
    pub calculate: usize,
    pub time: usize,
    pub search: usize,
    pub history: usize,
    pub other: usize,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        let Limits { calculate, time, search, history, other } = Limits::default();
        Self { calculate, time, search, history, other }
    }
}

/// The tool `get_time`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeSettings {
    /// The zone used when a call names none, such as `Europe/Berlin`; UTC when absent.
    pub zone: Option<String>,
}

/// The tool `search_web`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchEngineSettings {
    /// Which engine is asked.
    pub engine: Engine,
    /// Its address; required for SearXNG.
    pub url: Option<String>,
    /// Its key as a reference to an environment variable: `${BRAVE_API_KEY}`.
    pub key: Option<String>,
}

/// A search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the engines")]
pub enum Engine {
    Searxng,
    Brave,
    Tavily,
}

/// Skills: folders with a SKILL.md.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillFolderSettings {
    /// More folders to look in; relative ones are relative to this file.
    pub folders: Vec<PathBuf>,
    /// Environment variables that programs of skills may see besides the usual harmless ones.
    pub environment: Vec<String>,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is not there or cannot be read.
    #[error("failed to read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("failed to understand {path}: {error}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// The store cannot be found.
    #[error("store: {0}")]
    Store(String),
    /// Something is missing for the search engine.
    #[error("[search] {0}")]
    Search(String),
    /// What is to be served cannot be.
    #[error("[serve] {0}")]
    Serve(String),
    /// A model cannot be used.
    #[error("[models.{model}] {problem}")]
    Model {
        /// Which.
        model: String,
        /// Why.
        problem: String,
    },
}

/// Whether a text was meant to be the address of something: `mysql://…`, `postgres:…`, `postgres//…`.
fn is_like_an_address(text: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    let word = text.split(['/', ':']).next().unwrap_or_default();
    let after = text.get(word.len()..).unwrap_or_default();
    is_word(word) && (after.starts_with(':') || after.starts_with("//"))
}

impl Settings {
    /// Reads settings from a text; `path` is only for messages.
    pub fn parse(text: &str, path: &std::path::Path) -> Result<Self, SettingsError> {
        toml::from_str(text)
            .map_err(|error| SettingsError::Invalid { path: path.to_owned(), error: Box::new(error) })
    }

    /// These settings without what only the operator may decide, and the names of what was taken out: a file that came
    /// with a project could send secrets elsewhere, declare a tool harmless, steer a model, or hide what was done.
    #[must_use]
    pub fn without_power(&self) -> (Self, Vec<&'static str>) {
        let mut harmless = self.clone();
        harmless.store = None;
        harmless.journal = JournalSetting::default();
        harmless.routing = RoutingSettings::default();
        harmless.equivalent = BTreeMap::new();
        harmless.hints = BTreeMap::new();
        harmless.search = None;
        harmless.search_model = None;
        harmless.skills.environment = Vec::new();
        harmless.servers = BTreeMap::new();
        harmless.agents = BTreeMap::new();
        harmless.models = BTreeMap::new();
        harmless.default_model = None;
        harmless.approvals = ApprovalSettings::default();
        harmless.serve = ServeSettings::default();
        let taken = [
            ("store", self.store != harmless.store),
            ("journal", self.journal != harmless.journal),
            ("routing", self.routing != harmless.routing),
            ("equivalent", self.equivalent != harmless.equivalent),
            ("hints", self.hints != harmless.hints),
            ("search", self.search != harmless.search),
            ("search_model", self.search_model != harmless.search_model),
            ("servers", self.servers != harmless.servers),
            ("agents", self.agents != harmless.agents),
            ("models", self.models != harmless.models),
            ("default_model", self.default_model != harmless.default_model),
            ("approvals", self.approvals != harmless.approvals),
            ("serve", self.serve != harmless.serve),
            ("skills.environment", self.skills.environment != harmless.skills.environment),
        ];
        (harmless, taken.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect())
    }

    /// Takes over, from what the operator says, models and approvals that these settings of a project say nothing about.
    pub fn take_beside(&mut self, operators: &Self) {
        for (name, model) in &operators.models {
            self.models.entry(name.clone()).or_insert_with(|| model.clone());
        }
        self.default_model = self.default_model.take().or_else(|| operators.default_model.clone());
        self.approvals = std::mem::take(&mut self.approvals).and(&operators.approvals);
    }

    /// Where the store is, if it was said: a path relative to `base`, or an address.
    pub fn store_location(
        &self,
        base: &std::path::Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Location>, SettingsError> {
        let Some(store) = &self.store else { return Ok(None) };
        let said = match store.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => variable(name).ok_or_else(|| {
                SettingsError::Store(format!("the environment variable `{name}` is not set"))
            })?,
            None => store.clone(),
        };
        let location = Location::parse(&said, base);
        // Otherwise a slip of the pen makes a file somewhere, and the database stays empty.
        if matches!(location, Location::Sqlite(_)) && is_like_an_address(&said) {
            let known = "it is neither `postgres://USER:PASSWORD@HOST/DATABASE` nor the path of a file";
            return Err(SettingsError::Store(known.to_owned()));
        }
        Ok(Some(location))
    }

    /// The servers, relative paths taken from `base`, and what is wrong with those that cannot be used.
    pub fn servers(&self, base: &std::path::Path) -> (Vec<McpServerConfig>, Vec<String>) {
        let (mut configs, mut problems) = (Vec::new(), Vec::new());
        for (name, settings) in &self.servers {
            match settings.clone().into_config(name, base) {
                Ok(config) => configs.push(config),
                Err(error) => problems.push(error.to_string()),
            }
        }
        (configs, problems)
    }

    /// The rules for the hub.
    pub fn rules(&self) -> RoutingRules {
        let sources = |names: &Vec<String>| names.iter().map(|name| SourceId::from(name.as_str())).collect();
        let hints = |tools: &BTreeMap<String, HintSettings>| {
            tools.iter().map(|(tool, hints)| (tool.clone(), hints.hints())).collect()
        };
        RoutingRules {
            prefer: match self.routing.prefer {
                PreferSetting::NativeFirst => Prefer::NativeFirst,
                PreferSetting::McpFirst => Prefer::McpFirst,
            },
            pins: self.routing.pin.iter().map(|(tool, id)| (tool.clone(), id.as_str().into())).collect(),
            equivalent: self.equivalent.iter().map(|(tool, names)| (tool.clone(), sources(names))).collect(),
            hints: self.hints.iter().map(|(source, tools)| (source.as_str().into(), hints(tools))).collect(),
        }
    }

    /// The keyword table with the operator's rows.
    pub fn capabilities(&self) -> CapabilityTable {
        if self.capability.is_empty() {
            return CapabilityTable::built_in().clone();
        }
        let rule = |row: &CapabilitySettings| CapabilityRule {
            tags: row.tags.iter().map(|tag| Capability::from(tag.as_str())).collect(),
            keywords: row.keywords.clone(),
        };
        CapabilityTable::with_rules(&self.capability.iter().map(rule).collect::<Vec<_>>())
    }

    /// How much of an answer is shown.
    pub fn limits(&self) -> Limits {
        let BudgetSettings { calculate, time, search, history, other } = self.budget;
        Limits { calculate, time, search, history, other }
    }

    /// The search engine, its key looked up by the name of its variable.
    pub fn search(&self, variable: impl Fn(&str) -> Option<String>) -> Result<SearchSettings, SettingsError> {
        let Some(search) = &self.search else { return Ok(SearchSettings::None) };
        let key = || {
            let reference = search.key.as_deref().ok_or("needs `key = \"${VARIABLE}\"`".to_owned())?;
            let name = reference.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).ok_or(
                "`key` must name an environment variable, like `${BRAVE_API_KEY}`: keys do not belong in files"
                    .to_owned(),
            )?;
            variable(name).ok_or(format!("the environment variable `{name}` is not set"))
        };
        let settings = match search.engine {
            Engine::Searxng => match &search.url {
                Some(url) => Ok(SearchSettings::Searxng { url: url.clone() }),
                None => Err("engine = \"searxng\" needs `url`".to_owned()),
            },
            Engine::Brave => {
                key().map(|key| SearchSettings::Brave { key: key.into(), url: search.url.clone() })
            }
            Engine::Tavily => {
                key().map(|key| SearchSettings::Tavily { key: key.into(), url: search.url.clone() })
            }
        };
        settings.map_err(SettingsError::Search)
    }
}

impl HintSettings {
    fn hints(self) -> ToolHints {
        ToolHints {
            read_only: self.read_only,
            destructive: self.destructive,
            idempotent: self.idempotent,
            open_world: None,
        }
    }
}

/// The JSON Schema of `toolyard.toml`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Settings).to_value()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
