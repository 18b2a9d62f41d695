//! `[call]`, `[routing]`, `[hints]`, `[[capability]]` and `[output_budget]` as plain data.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::ToolHints;
use toolyard_hub::{OutputLimits, RetryPolicy};

use super::DurationSetting;

/// Timeout and retries of tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallSettings {
    /// The maximum duration of a call, such as `30s` or `2m`.
    pub timeout: DurationSetting,
    /// The maximum number of attempts of a call that is safe to repeat.
    pub attempts: u32,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            timeout: DurationSetting(Duration::from_secs(30)),
            attempts: RetryPolicy::default().max_attempts,
        }
    }
}

/// Which source handles a call when several have a tool of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingSettings {
    /// Which kind of source goes first.
    pub prefer: PreferSetting,
    /// The preferred source of single tools: `search_web = "native"`.
    pub pin: BTreeMap<String, String>,
}

/// Which kind of source goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreferSetting {
    /// Native tools, then skills, then MCP servers: a server cannot capture a native name.
    #[default]
    NativeFirst,
    /// MCP servers, then skills, then native tools.
    McpFirst,
}

/// The effects of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HintSettings {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// The tool may delete or overwrite data.
    pub destructive: Option<bool>,
    /// The tool passes its arguments to systems outside, such as a search engine. Calls whose arguments may contain
    /// non-public data then need approval; see `[approvals]`.
    pub open_world: Option<bool>,
}

impl HintSettings {
    pub(super) fn tool_hints(self) -> ToolHints {
        ToolHints {
            read_only: self.read_only,
            destructive: self.destructive,
            idempotent: self.idempotent,
            open_world: self.open_world,
        }
    }
}

/// A rule that assigns capabilities to tools by keyword.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapabilitySettings {
    /// The capabilities that a matching tool gets.
    pub tags: Vec<String>,
    /// Words that match in a tool's name or description; `recipe*` matches any ending.
    pub keywords: Vec<String>,
}

/// Maximum characters of a tool's output that are shown, by kind of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are the kinds of tools")]
pub struct OutputBudgetSettings {
    pub calculate: usize,
    pub time: usize,
    pub search: usize,
    pub history: usize,
    pub other: usize,
}

impl Default for OutputBudgetSettings {
    fn default() -> Self {
        let OutputLimits { calculate, time, search, history, other } = OutputLimits::default();
        Self { calculate, time, search, history, other }
    }
}
