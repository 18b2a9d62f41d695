//! `toolyard.toml` as plain data, and its conversion into the configuration of the other crates.

mod agents;
mod approvals;
mod callers;
mod calls;
mod cluster;
mod drain_period;
mod error;
mod isolation;
mod layers;
mod models;
mod policy;
mod quotas;
#[cfg(feature = "gateway")]
mod report;
mod retention;
mod serve;
mod telemetry;
mod web_search;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::{Capability, CapabilityRule, CapabilityTable, SourceId};
use toolyard_hub::{RoutingRules, SourcePreference};
pub use toolyard_mcp_client::config::DurationSetting;
use toolyard_mcp_client::config::{McpServerConfig, ServerSettings};

pub use agents::{AgentCapabilitySettings, AgentSettings, LanguageSetting, LimitSettings, ReviewSetting};
pub use approvals::{ApprovalSettings, OpenWorldSetting};
pub use callers::{CallerGroupSettings, CallerOAuthSettings, ProxyIdentitySettings};
pub use calls::{
    CallSettings, CapabilitySettings, HintSettings, PreferSetting, RoutingSettings, SynthesisSetting,
};
pub use cluster::{ClusterCredentials, ClusterSettings, DEFAULT_CLUSTER_PREFIX};
pub use drain_period::DrainPeriod;
pub use error::{ModelProblem, SettingsError};
pub use isolation::IsolationSettings;
pub use layers::SettingsLayer;
pub use models::{ModelSecrets, ModelSettings, PriceSettings, ToolCallingSetting};
pub use policy::{PolicyDefault, PolicySettings};
pub use quotas::{AmountPerWindow, MoneyPerWindow, QuotaDimension, QuotaSettings};
pub use retention::{RetentionPeriod, RetentionSettings};
pub use serve::{ProfileSettings, ServeSettings, SurfaceSetting};
pub use telemetry::{MetricsSetting, TelemetrySettings};
pub use web_search::{SearchEngine, WebSearchSettings};

/// All settings. Every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "toolyard.toml")]
pub struct Settings {
    /// The durable store: the path of a SQLite file (relative to this file), a `postgres://…` URL, or a reference to an
    /// environment variable that holds either: `${TOOLYARD_STORE}`.
    pub store: Option<String>,
    /// Which tool calls are journalled.
    pub journal: JournalSetting,
    /// What happens to a tool call whose audit record cannot be kept.
    pub audit: AuditSetting,
    /// Timeout of tool calls, and how several outputs become one.
    pub call: CallSettings,
    /// Which source handles a call when several have a tool of the same name.
    pub routing: RoutingSettings,
    /// Sources whose tool of this name is equivalent: `search = ["brave", "tavily"]`.
    pub equivalent: BTreeMap<String, Vec<String>>,
    /// Effects of tools, by source and tool name; they override what the tool itself declares.
    pub hints: BTreeMap<String, BTreeMap<String, HintSettings>>,
    /// Additional rules that assign capabilities to tools by keyword.
    pub capability: Vec<CapabilitySettings>,
    /// The tool `get_time`.
    pub time: TimeSettings,
    /// The search engine of the tool `search_web`.
    pub web_search: Option<WebSearchSettings>,
    /// How tools are found for a request.
    pub search: ToolSearchSettings,
    /// Skills: folders with a SKILL.md.
    pub skills: SkillFolderSettings,
    /// MCP servers by name: a command to start, or a URL.
    pub servers: BTreeMap<String, ServerSettings>,
    /// Instances of servers that belong to one caller each.
    pub isolation: IsolationSettings,
    /// Agents by name: instructions, tools and limits.
    pub agents: BTreeMap<String, AgentSettings>,
    /// Language models by name.
    pub models: BTreeMap<String, ModelSettings>,
    /// The model of agents that name none. Not needed if there is only one model.
    pub default_model: Option<String>,
    /// Which tool calls agents may make without approval, and which calls nobody may make.
    pub approvals: ApprovalSettings,
    /// Policies: who may call which tool with which arguments.
    pub policy: PolicySettings,
    /// Quotas: how much callers, agents and tools may use.
    pub quotas: Vec<QuotaSettings>,
    /// What `toolyard serve` offers to clients, and how they authenticate.
    pub serve: ServeSettings,
    /// Several gateways that serve the same tools together, connected by NATS.
    pub cluster: Option<ClusterSettings>,
    /// How long the store keeps audit records, runs and results.
    pub retention: RetentionSettings,
    /// Metrics and traces that Toolyard exports.
    pub telemetry: TelemetrySettings,
}

/// Which tool calls are journalled: recorded before and after they are made, so that a crash never repeats one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JournalSetting {
    /// Calls of agent runs, which Toolyard may resume.
    #[default]
    Runs,
    /// All calls.
    Always,
}

/// What happens to a tool call whose audit record cannot be kept, because neither the store nor the spill file can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditSetting {
    /// The call is made; the number of missing records is recorded once the store is back. A killed process loses its last records.
    #[default]
    BestEffort,
    /// The call is refused before anything is executed. A result is returned only after its record is on disk.
    Required,
}

/// The tool `get_time`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeSettings {
    /// The time zone of calls that name none, such as `Europe/Berlin`; UTC by default.
    pub zone: Option<String>,
}

/// How tools are found for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSearchSettings {
    /// A model of `[models]` behind an OpenAI-compatible server, whose `/v1/embeddings` finds tools by meaning besides words.
    /// It receives requests and the descriptions of all tools. By default, tools are found by words only.
    pub embeddings: Option<String>,
}

/// Skills: folders with a SKILL.md.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillFolderSettings {
    /// Additional folders to search for skills, relative to this file.
    pub folders: Vec<PathBuf>,
    /// Additional environment variables that skill programs may see.
    pub environment: Vec<String>,
}

impl Settings {
    /// Parses settings; `path` is only used in error messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        toml::from_str(text)
            .map_err(|error| SettingsError::Invalid { path: path.to_owned(), error: Box::new(error) })
    }

    /// The JSON Schema of `toolyard.toml`.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// The location of the store, if set. Relative paths are resolved against `base`.
    #[cfg(feature = "store")]
    pub fn store_location(
        &self,
        base: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<toolyard_store::Location>, SettingsError> {
        let Some(store) = &self.store else { return Ok(None) };
        let text = match error::variable_reference(store) {
            Some(name) => variable(name).ok_or_else(|| SettingsError::unset_variable("store", name))?,
            None => store.clone(),
        };
        let location = toolyard_store::Location::parse(&text, base);
        // A misspelt URL must not silently become the name of a new SQLite file.
        if matches!(location, toolyard_store::Location::Sqlite(_)) && looks_like_url(&text) {
            return Err(SettingsError::InvalidStoreLocation);
        }
        Ok(Some(location))
    }

    /// The servers, with relative paths resolved against `base`, and the problems of invalid ones.
    pub fn servers(&self, base: &Path) -> (Vec<McpServerConfig>, Vec<String>) {
        let (mut configs, mut problems) = (Vec::new(), Vec::new());
        for (name, settings) in &self.servers {
            match settings.clone().into_config(name, base) {
                Ok(config) => configs.push(config),
                Err(error) => problems.push(error.to_string()),
            }
        }
        (configs, problems)
    }

    /// The routing rules of the hub.
    pub fn routing_rules(&self) -> RoutingRules {
        let sources = |names: &Vec<String>| names.iter().map(|name| SourceId::from(name.as_str())).collect();
        let hints = |tools: &BTreeMap<String, HintSettings>| {
            tools.iter().map(|(tool, hints)| (tool.clone(), hints.tool_hints())).collect()
        };
        RoutingRules {
            prefer: match self.routing.prefer {
                PreferSetting::NativeFirst => SourcePreference::NativeFirst,
                PreferSetting::McpFirst => SourcePreference::McpFirst,
            },
            pins: self.routing.pin.iter().map(|(tool, id)| (tool.clone(), id.as_str().into())).collect(),
            equivalent: self.equivalent.iter().map(|(tool, names)| (tool.clone(), sources(names))).collect(),
            hints: self.hints.iter().map(|(source, tools)| (source.as_str().into(), hints(tools))).collect(),
            deny: self.approvals.deny.clone(),
        }
    }

    /// The capability rules: built-in ones and those of `[[capability]]`.
    pub fn capability_table(&self) -> CapabilityTable {
        if self.capability.is_empty() {
            return CapabilityTable::built_in().clone();
        }
        let rule = |row: &CapabilitySettings| CapabilityRule {
            tags: row.tags.iter().map(|tag| Capability::from(tag.as_str())).collect(),
            keywords: row.keywords.clone(),
        };
        CapabilityTable::with_rules(&self.capability.iter().map(rule).collect::<Vec<_>>())
    }
}

/// Whether a text looks like a URL: `mysql://…`, `postgres:…`, `postgres//…`.
#[cfg(feature = "store")]
fn looks_like_url(text: &str) -> bool {
    let scheme = text.split(['/', ':']).next().unwrap_or_default();
    let rest = text.get(scheme.len()..).unwrap_or_default();
    let is_scheme = scheme.len() > 1 && scheme.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_scheme && (rest.starts_with(':') || rest.starts_with("//"))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
