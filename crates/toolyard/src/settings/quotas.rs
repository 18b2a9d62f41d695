//! `[[quotas]]` as plain data.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::WindowLimit;
use toolyard_quota::{CountedPer, QuotaRule};

use super::DurationSetting;

/// Millionths of the currency.
const MICROS_PER_UNIT: f64 = 1e6;

/// A quota: how much callers, agents and tools may use. All quotas that are about a call must allow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaSettings {
    /// The name of the quota in errors, metrics and lists.
    pub name: String,
    /// The callers that the quota is for: names or patterns such as `ci-*`. `local` is the command line, stdio and the gateway's own
    /// token. Without `callers` and `groups`, the quota is for all.
    #[serde(default)]
    pub callers: Vec<String>,
    /// The groups whose callers the quota is for, besides `callers`: names or patterns.
    #[serde(default)]
    pub groups: Vec<String>,
    /// The agents that the quota is for: names or patterns. Without them, calls of agents and of clients count.
    #[serde(default)]
    pub agents: Vec<String>,
    /// The tools that the quota is for: names or patterns, optionally with a source: `search_*`, `*@jira`. Without them, all.
    #[serde(default)]
    pub tools: Vec<String>,
    /// What is counted separately; an empty list counts everything together. A quota per agent is about agents only.
    #[serde(default = "per_caller")]
    pub per: Vec<QuotaDimension>,
    /// How many tool calls are allowed within a window of time.
    #[serde(default)]
    pub calls: Option<AmountPerWindow>,
    /// How many tool calls may run at the same time.
    #[serde(default)]
    pub concurrent_calls: Option<u64>,
    /// How many tokens of language models agents may use within a window of time, input and output together.
    #[serde(default)]
    pub tokens: Option<AmountPerWindow>,
    /// How much agents may spend on language models within a window of time, in the currency of `models.NAME.price`.
    #[serde(default)]
    pub money: Option<MoneyPerWindow>,
}

/// What a quota counts separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuotaDimension {
    /// Each caller.
    Caller,
    /// Each agent.
    Agent,
    /// Each tool of each source.
    Tool,
}

/// An amount within any window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AmountPerWindow {
    /// The largest amount within any window.
    pub limit: u64,
    /// The length of the window, from `1s` to `744h` (31 days).
    pub window: DurationSetting,
}

/// Money within any window of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoneyPerWindow {
    /// The largest sum within any window, such as `2.5`.
    pub limit: f64,
    /// The length of the window, from `1s` to `744h` (31 days).
    pub window: DurationSetting,
}

fn per_caller() -> Vec<QuotaDimension> {
    vec![QuotaDimension::Caller]
}

impl QuotaSettings {
    /// The rule that the settings describe; it is checked when it is used.
    pub fn rule(&self) -> QuotaRule {
        let is_per = |dimension| self.per.contains(&dimension);
        QuotaRule {
            name: self.name.as_str().into(),
            callers: self.callers.clone(),
            groups: self.groups.clone(),
            agents: self.agents.clone(),
            tools: self.tools.clone(),
            per: CountedPer {
                caller: is_per(QuotaDimension::Caller),
                agent: is_per(QuotaDimension::Agent),
                tool: is_per(QuotaDimension::Tool),
            },
            calls: self.calls.map(AmountPerWindow::limit),
            concurrent_calls: self.concurrent_calls,
            tokens: self.tokens.map(AmountPerWindow::limit),
            money: self.money.map(MoneyPerWindow::limit),
        }
    }
}

impl AmountPerWindow {
    fn limit(self) -> WindowLimit {
        WindowLimit { limit: self.limit, window_millis: millis(self.window.0) }
    }
}

impl MoneyPerWindow {
    fn limit(self) -> WindowLimit {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and a negative limit is none"
        )]
        let limit = (self.limit * MICROS_PER_UNIT).round() as u64;
        WindowLimit { limit, window_millis: millis(self.window.0) }
    }
}

fn millis(window: Duration) -> u64 {
    u64::try_from(window.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Settings;

    #[test]
    fn quotas_are_read() {
        let text = r#"
            [[quotas]]
            name = "callers"
            calls = { limit = 100, window = "1m" }
            concurrent_calls = 4

            [[quotas]]
            name = "agents"
            per = ["agent", "caller"]
            agents = ["*"]
            tokens = { limit = 200000, window = "1h" }
            money = { limit = 2.5, window = "24h" }
        "#;
        let settings = Settings::parse(text, Path::new("toolyard.toml")).unwrap();
        let rules: Vec<QuotaRule> = settings.quotas.iter().map(QuotaSettings::rule).collect();
        assert_eq!(rules[0].per, CountedPer { caller: true, ..CountedPer::default() });
        assert_eq!(rules[0].calls, Some(WindowLimit { limit: 100, window_millis: 60_000 }));
        assert_eq!(rules[1].per, CountedPer { caller: true, agent: true, tool: false });
        assert_eq!(rules[1].money, Some(WindowLimit { limit: 2_500_000, window_millis: 86_400_000 }));
        assert_eq!(QuotaRule::check_all(&rules), Ok(()));
    }

    #[test]
    fn a_window_needs_a_unit_and_a_quota_a_known_dimension() {
        for text in [
            "[[quotas]]\nname = \"a\"\ncalls = { limit = 1, window = 60 }",
            "[[quotas]]\nname = \"a\"\nper = [\"user\"]\nconcurrent_calls = 1",
            "[[quotas]]\nconcurrent_calls = 1",
        ] {
            assert!(Settings::parse(text, Path::new("toolyard.toml")).is_err(), "{text}");
        }
    }
}
