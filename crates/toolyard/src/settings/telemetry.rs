//! `[telemetry]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What others may see of the activity of Toolyard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Who may read the metrics of `toolyard serve` at `/metrics`.
    pub metrics: MetricsSetting,
}

/// Who may read `/metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricsSetting {
    /// Clients with the gateway's token.
    #[default]
    Token,
    /// Everybody who reaches the port; without the token, names of tools, servers, agents and models are left out.
    Open,
    /// Nobody.
    Off,
}

#[cfg(feature = "gateway")]
impl MetricsSetting {
    /// The same for the HTTP API.
    pub fn access(self) -> toolyard_gateway::MetricsAccess {
        match self {
            Self::Token => toolyard_gateway::MetricsAccess::Token,
            Self::Open => toolyard_gateway::MetricsAccess::Open,
            Self::Off => toolyard_gateway::MetricsAccess::Off,
        }
    }
}
