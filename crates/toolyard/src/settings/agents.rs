//! `[agents.NAME]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_agent::{AgentCapabilities, AgentConfig, Language, ReviewRule, RunLimits};

use super::DurationSetting;

/// An agent: its instructions, tools, model and limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// The agent's purpose, in a sentence or two.
    pub description: String,
    /// Additional instructions in the system prompt.
    pub instructions: String,
    /// Tools the agent may use: names, patterns such as `read_*`, or either with a source, such as `*@excel`. Named tools
    /// are always in the prompt, others when they are relevant. Empty: all tools.
    pub tools: Vec<String>,
    /// What the agent may do.
    pub capabilities: AgentCapabilitySettings,
    /// The agent's model, by its name in `[models]`.
    pub model: Option<String>,
    /// The language of the system prompt.
    pub language: LanguageSetting,
    /// Whether the model also judges each result, after all checks that need no model.
    pub judge: bool,
    /// When the model is asked whether the answer is what was asked for. What it says is shown as its opinion and decides nothing.
    pub review: ReviewSetting,
    /// Limits of one run.
    pub limits: LimitSettings,
}

/// Limits of one run; the first one that is reached ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Steps of all plans together.
    pub steps: Option<usize>,
    /// Tool calls.
    pub tool_calls: Option<usize>,
    /// Requests to the model.
    pub model_calls: Option<usize>,
    /// Plans after the first.
    pub replans: Option<usize>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// Cost, in the currency of the model's `price`.
    pub cost: Option<f64>,
    /// Working time, such as `10m`; waiting for approval does not count.
    pub time: Option<DurationSetting>,
    /// Calls of the same tool with the same arguments.
    pub identical_calls: Option<usize>,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentCapabilitySettings {
    /// Whether the agent may call tools.
    pub enable_tool_calling: bool,
}

impl Default for AgentCapabilitySettings {
    fn default() -> Self {
        let AgentCapabilities { enable_tool_calling } = AgentCapabilities::default();
        Self { enable_tool_calling }
    }
}

/// When a model is asked whether an answer is what was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewSetting {
    /// After runs that planned a call of a tool that may change something.
    #[default]
    Auto,
    /// After every run with an answer.
    Always,
    /// Never.
    Never,
}

/// The language of a system prompt.
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
    /// The agent's configuration under this name.
    pub fn config(&self, name: &str) -> AgentConfig {
        let AgentCapabilitySettings { enable_tool_calling } = self.capabilities;
        AgentConfig {
            name: name.to_owned(),
            description: self.description.clone(),
            instructions: self.instructions.clone(),
            tools: self.tools.clone(),
            profile: None,
            capabilities: AgentCapabilities { enable_tool_calling },
            model: self.model.clone(),
            tool_timeout: None,
            language: match self.language {
                LanguageSetting::En => Language::English,
                LanguageSetting::Zh => Language::Chinese,
            },
            limits: self.limits.run_limits(),
            judge: self.judge,
            review: match self.review {
                ReviewSetting::Auto => ReviewRule::Auto,
                ReviewSetting::Always => ReviewRule::Always,
                ReviewSetting::Never => ReviewRule::Never,
            },
        }
    }
}

impl LimitSettings {
    /// The limits, with defaults for those that are not set.
    pub fn run_limits(&self) -> RunLimits {
        let default = RunLimits::default();
        RunLimits {
            steps: self.steps.unwrap_or(default.steps),
            calls: self.tool_calls.unwrap_or(default.calls),
            model_calls: self.model_calls.unwrap_or(default.model_calls),
            replans: self.replans.unwrap_or(default.replans),
            tokens: self.tokens.unwrap_or(default.tokens),
            // 0 would mean unlimited.
            cost_micros: self.cost.map_or(default.cost_micros, |cost| micros(cost).max(1)),
            time: self.time.map_or(default.time, |time| time.0),
            identical_calls: self.identical_calls.unwrap_or(default.identical_calls),
        }
    }
}

/// An amount of money in millionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
pub(super) fn micros(amount: f64) -> u64 {
    (amount * 1e6).round() as u64
}
