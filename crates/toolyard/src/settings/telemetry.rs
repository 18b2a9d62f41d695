//! `[telemetry]` as plain data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What others may see of the activity of Toolyard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Who may read the metrics of `toolyard serve` at `/metrics`.
    pub metrics: MetricsSetting,
    /// The receiver of traces over OTLP (HTTP, protobuf), such as `http://127.0.0.1:4318`; `/v1/traces` is added. Without one,
    /// and without `OTEL_EXPORTER_OTLP_ENDPOINT`, no traces are recorded. The standard variables of OpenTelemetry take
    /// precedence over these settings.
    pub otlp_endpoint: Option<String>,
    /// Headers of exports, as references to environment variables: `authorization = "${OTLP_AUTHORIZATION}"`.
    pub otlp_headers: BTreeMap<String, String>,
    /// The share of traces that is recorded, from 0 to 1, unless the caller has decided; 1 by default.
    pub sample_ratio: Option<f64>,
    /// The name of this process in traces; `toolyard` by default.
    pub service_name: Option<String>,
    /// Whether traces contain arguments and results of tool calls, with known secrets redacted. They may be confidential.
    pub capture_content: bool,
}

#[cfg(feature = "otlp")]
impl TelemetrySettings {
    /// Where traces are sent, by these settings and the standard variables of OpenTelemetry; none if neither says it.
    ///
    /// # Errors
    /// If a setting or a variable is invalid, or a header refers to a variable that is not set.
    pub fn traces(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<toolyard_telemetry::traces::TraceConfig>, super::SettingsError> {
        use toolyard_telemetry::traces::{Sampler, TraceConfig};
        let mut config = self.otlp_endpoint.as_deref().map(TraceConfig::new).transpose()?;
        if let Some(config) = &mut config {
            for (name, reference) in &self.otlp_headers {
                let key = format!("[telemetry] otlp_headers.{name}");
                let value = super::error::resolve_secret(&key, reference, "OTLP_AUTHORIZATION", &variable)?;
                config.headers.push((name.clone(), value));
            }
            config.captures_content = self.capture_content;
            if let Some(ratio) = self.sample_ratio {
                config.sampler = Sampler::parent_based(ratio);
            }
            if let Some(name) = &self.service_name {
                config.service_name.clone_from(name);
            }
        }
        Ok(TraceConfig::from_variables(config, variable)?)
    }
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
