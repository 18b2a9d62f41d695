//! `[call]`, `[routing]`, `[hints]` and `[[capability]]` as plain data.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::ToolHints;

use super::DurationSetting;

const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of tool calls, and how several outputs become one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallSettings {
    /// The maximum time a call may take without progress, such as `30s` or `2m`, for every caller; `--timeout` overrides it,
    /// and `call_timeout` of a server shortens it. By default, 2 minutes for agents and for clients of `toolyard serve`, 30
    /// seconds otherwise.
    pub timeout: Option<DurationSetting>,
    /// How the outputs of several equivalent sources become one. A model that fails or takes more than 10 seconds is not
    /// waited for: the outputs are merged then, and so are more than 3 of them or more than 2,000 characters.
    pub synthesis: SynthesisSetting,
}

/// How the outputs of several equivalent sources become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SynthesisSetting {
    /// The model of the agent, or else the default model, combines them; as with `merge` if none is configured.
    #[default]
    Model,
    /// They are put one after the other, each with its source. No model receives them.
    Merge,
}

impl CallSettings {
    /// The timeout of calls that are made neither by a client nor by an agent.
    pub fn timeout(&self) -> Duration {
        self.timeout.map_or(DEFAULT_CALL_TIMEOUT, |timeout| timeout.0)
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
