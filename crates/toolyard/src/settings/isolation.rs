//! `[isolation]` as plain data: the instances of servers that belong to one caller each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_mcp_client::IsolationLimits;

use super::DurationSetting;

/// One caller may have this share of all private instances, so that a few callers cannot displace those of all others; but
/// always as many as the servers that one person uses.
const SHARE_OF_CALLER: usize = 10;
const MIN_INSTANCES_PER_CALLER: usize = 20;

/// Instances of servers that belong to one caller each; see `isolation` of `[servers.NAME]`. When a limit is reached, the least
/// recently used instance without calls is stopped. If all have calls, the call waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsolationSettings {
    /// Private instances of all servers and callers. One caller may have a tenth of them, and at least 20.
    pub max_instances: usize,
    /// An instance without calls for this long is stopped.
    pub idle_timeout: DurationSetting,
}

impl Default for IsolationSettings {
    fn default() -> Self {
        let IsolationLimits { max_instances, idle_timeout, .. } = IsolationLimits::default();
        Self { max_instances, idle_timeout: DurationSetting(idle_timeout) }
    }
}

impl IsolationSettings {
    /// The limits of the servers.
    pub fn limits(self) -> IsolationLimits {
        IsolationLimits {
            max_instances: self.max_instances,
            max_instances_per_caller: MIN_INSTANCES_PER_CALLER.max(self.max_instances / SHARE_OF_CALLER),
            idle_timeout: self.idle_timeout.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_may_have_a_tenth_and_at_least_twenty() {
        assert_eq!(IsolationSettings::default().limits(), IsolationLimits::default());
        let per_caller = |max_instances| {
            IsolationSettings { max_instances, ..IsolationSettings::default() }
                .limits()
                .max_instances_per_caller
        };
        assert_eq!([1, 20, 1000].map(per_caller), [20, 20, 100]);
    }
}
