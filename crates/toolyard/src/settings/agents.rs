//! `[agents.NAME]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::{AgentCapabilities, AgentConfig, Caps, Language};

use super::Span;

/// An agent: what its model is told, and which tools it may see.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Whether its model also judges each result, after everything that can be checked without one.
    pub judge: bool,
    /// How much one question may use before it is ended.
    pub limits: LimitSettings,
}

/// How much one question may use; whatever is reached first ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Steps over all plans.
    pub steps: Option<usize>,
    /// Calls of tools.
    pub calls: Option<usize>,
    /// Requests to models.
    pub model_calls: Option<usize>,
    /// Plans after the first.
    pub replans: Option<usize>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Money, in your currency; needs the price of the model.
    pub money: Option<f64>,
    /// Time in which somebody works on it; waiting for a person does not count.
    pub time: Option<Span>,
    /// Calls of the same tool with the same arguments.
    pub identical: Option<usize>,
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
            within: None,
            capabilities: AgentCapabilities { enable_tool_calling },
            model: self.model.clone(),
            language: match self.language {
                LanguageSetting::En => Language::English,
                LanguageSetting::Zh => Language::Chinese,
            },
        }
    }
}

impl LimitSettings {
    /// The limits, usual ones where nothing is said.
    pub fn caps(&self) -> Caps {
        let usual = Caps::default();
        Caps {
            steps: self.steps.unwrap_or(usual.steps),
            calls: self.calls.unwrap_or(usual.calls),
            model_calls: self.model_calls.unwrap_or(usual.model_calls),
            replans: self.replans.unwrap_or(usual.replans),
            tokens: self.tokens.unwrap_or(usual.tokens),
            // 0 would mean that there is no limit.
            cost_micros: self.money.map_or(usual.cost_micros, |money| micros(money).max(1)),
            time: self.time.map_or(usual.time, |span| span.0),
            identical: self.identical.unwrap_or(usual.identical),
        }
    }
}

/// Money in millionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
pub(super) fn micros(money: f64) -> u64 {
    (money * 1e6).round() as u64
}
