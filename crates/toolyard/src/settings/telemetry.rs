//! `[telemetry]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SettingsError, error::resolve_token};

/// Metrics and traces that Toolyard exports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Who may read the metrics of `toolyard serve` at `/metrics`.
    pub metrics: MetricsSetting,
    /// A token for scrapers, as a reference to an environment variable: `${TOOLYARD_METRICS_TOKEN}`. It opens `/metrics` and
    /// nothing else. The gateway's token opens `/metrics`, too.
    pub metrics_token: Option<String>,
    /// The receiver of traces over OTLP (HTTP, protobuf), such as `http://127.0.0.1:4318`; `/v1/traces` is added. Without one,
    /// and without `OTEL_EXPORTER_OTLP_ENDPOINT`, no traces are recorded. The standard variables of OpenTelemetry set
    /// everything else, and take precedence: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME`, ….
    pub otlp_endpoint: Option<String>,
    /// Whether traces contain arguments and results of tool calls, with known secrets redacted. They may be confidential.
    pub capture_content: bool,
}

impl TelemetrySettings {
    /// The token for scrapers, looked up by `variable`; `None` if not set.
    pub fn metrics_token(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, SettingsError> {
        let reference = self.metrics_token.as_deref();
        resolve_token("[telemetry] metrics_token", reference, "TOOLYARD_METRICS_TOKEN", variable)
    }
}

#[cfg(feature = "otlp")]
impl TelemetrySettings {
    /// Where traces are sent, by these settings and the standard variables of OpenTelemetry; none if neither says it.
    ///
    /// # Errors
    /// If a setting or a variable is invalid.
    pub fn traces(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<toolyard_telemetry::traces::TraceConfig>, SettingsError> {
        use toolyard_telemetry::traces::TraceConfig;
        let mut config = match &self.otlp_endpoint {
            Some(endpoint) => Some(TraceConfig::new(endpoint)?),
            // `capture_content` holds for the endpoint of a variable, too.
            None => TraceConfig::from_variables(None, &variable)?,
        };
        if let Some(config) = &mut config {
            config.captures_content = self.capture_content;
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

#[cfg(all(test, feature = "otlp"))]
mod tests {
    use toolyard_telemetry::traces::Sampler;

    use super::*;

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    fn settings() -> TelemetrySettings {
        TelemetrySettings { capture_content: true, ..TelemetrySettings::default() }
    }

    fn traces(
        settings: &TelemetrySettings,
        variables: &[(&str, &str)],
    ) -> Option<toolyard_telemetry::traces::TraceConfig> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        settings.traces(variable).ok().flatten()
    }

    #[test]
    fn settings_hold_for_the_endpoint_of_a_variable() {
        assert_eq!(traces(&settings(), &[]), None, "no endpoint");
        let config = traces(&settings(), &[ENDPOINT]).unwrap();
        assert_eq!(config.url, "http://127.0.0.1:4318/v1/traces");
        assert_eq!((config.sampler, config.captures_content), (Sampler::parent_based(1.0), true));
    }

    #[test]
    fn variables_take_precedence_over_settings() {
        let variables = [
            ENDPOINT,
            ("OTEL_SERVICE_NAME", "by-variable"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
        ];
        let with_endpoint =
            TelemetrySettings { otlp_endpoint: Some("http://127.0.0.1:1".to_owned()), ..settings() };
        for settings in [settings(), with_endpoint] {
            let config = traces(&settings, &variables).unwrap();
            assert_eq!(config.url, "http://127.0.0.1:4318/v1/traces");
            assert_eq!(config.service_name, "by-variable");
            assert_eq!(config.sampler, Sampler::parent_based(0.25));
            assert_eq!(config.headers, [("a".to_owned(), "b".to_owned())]);
            assert!(config.captures_content);
        }
        assert_eq!(traces(&settings(), &[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]), None);
    }
}
