//! `[isolation]` as plain data: the instances of servers that belong to one caller each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_mcp_client::IsolationLimits;

use super::DurationSetting;

/// Instances of servers that belong to one caller each; see `isolation` of `[servers.NAME]`. When a limit is reached, the least
/// recently used instance without calls is stopped. If all have calls, the call waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsolationSettings {
    /// Private instances of all servers and callers.
    pub max_instances: usize,
    /// Private instances of one caller.
    pub max_instances_per_caller: usize,
    /// An instance without calls for this long is stopped.
    pub idle_timeout: DurationSetting,
}

impl Default for IsolationSettings {
    fn default() -> Self {
        let IsolationLimits { max_instances, max_instances_per_caller, idle_timeout } =
            IsolationLimits::default();
        Self { max_instances, max_instances_per_caller, idle_timeout: DurationSetting(idle_timeout) }
    }
}

impl IsolationSettings {
    /// The limits of the servers.
    pub fn limits(self) -> IsolationLimits {
        IsolationLimits {
            max_instances: self.max_instances,
            max_instances_per_caller: self.max_instances_per_caller,
            idle_timeout: self.idle_timeout.0,
        }
    }
}
