//! `[agents.NAME]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::{AgentCapabilities, AgentConfig, Language};

/// An agent: what its model is told, and which tools it may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// What it is for, in a sentence or two.
    pub description: String,
    /// What its model is told beyond that.
    pub instructions: String,
    /// The tools it may see: names, patterns such as `read_*`, or either with a source, such as `*@excel`. Those that are
    /// named are always shown, the others when they matter. Empty: all there are.
    pub tools: Vec<String>,
    /// What it may do.
    pub capabilities: AgentCapabilitySettings,
    /// The model it speaks with.
    pub model: Option<String>,
    /// The language of the words around the tools.
    pub language: LanguageSetting,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentCapabilitySettings {
    /// Whether it is shown any tools.
    pub enable_tool_calling: bool,
}

impl Default for AgentCapabilitySettings {
    fn default() -> Self {
        let AgentCapabilities { enable_tool_calling } = AgentCapabilities::default();
        Self { enable_tool_calling }
    }
}

/// A language of prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LanguageSetting {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl AgentSettings {
    /// The agent under this name.
    pub fn config(&self, name: &str) -> AgentConfig {
        let AgentCapabilitySettings { enable_tool_calling } = self.capabilities;
        AgentConfig {
            name: name.to_owned(),
            description: self.description.clone(),
            instructions: self.instructions.clone(),
            tools: self.tools.clone(),
            capabilities: AgentCapabilities { enable_tool_calling },
            model: self.model.clone(),
            language: match self.language {
                LanguageSetting::En => Language::English,
                LanguageSetting::Zh => Language::Chinese,
            },
        }
    }
}
