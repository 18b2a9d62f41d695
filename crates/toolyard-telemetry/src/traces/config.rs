//! [`TraceConfig`]: where spans are sent, which of them, and what they say about this process.

use std::time::Duration;

use super::Sampler;

const DEFAULT_SERVICE_NAME: &str = "toolyard";
const TRACES_PATH: &str = "v1/traces";
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// Where spans are sent, and which.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct TraceConfig {
    /// The URL that receives spans, such as `http://127.0.0.1:4318/v1/traces`.
    pub url: String,
    /// Headers of each export. The values are secrets.
    pub headers: Vec<(String, String)>,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// `service.name` of the resource.
    pub service_name: String,
    /// Further attributes of the resource.
    pub resource_attributes: Vec<(String, String)>,
    /// Whether arguments and results of tool calls are recorded, with known secrets redacted.
    pub captures_content: bool,
    /// How long a span waits for others at most.
    pub interval: Duration,
}

/// Why traces cannot be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceConfigError {
    /// `[telemetry] otlp_endpoint`, or the variable of OpenTelemetry, is not a URL.
    ///
    /// Remedy: write for example `http://127.0.0.1:4318`.
    #[error("invalid OTLP endpoint `{0}`: not an http or https URL")]
    InvalidEndpoint(String),
    /// A header for the receiver of traces is not `name=value`.
    ///
    /// Remedy: correct `OTEL_EXPORTER_OTLP_HEADERS` (`name=value,name=value`).
    #[error("invalid OTLP header number {0}: expected `name=value`")]
    InvalidHeader(usize),
    /// `OTEL_TRACES_SAMPLER` has a value that is not one of OpenTelemetry's.
    ///
    /// Remedy: use `always_on`, `always_off`, `traceidratio`, or one of them with `parentbased_`.
    #[error("unknown sampler `{0}` in OTEL_TRACES_SAMPLER")]
    UnknownSampler(String),
    /// The exporter of traces cannot be built; the text says why.
    ///
    /// Remedy: check `[telemetry]` and the variables `OTEL_…`.
    #[error("cannot export traces: {0}")]
    Exporter(String),
}

impl TraceConfig {
    /// Sends all traces to the receiver at `endpoint`, to which `/v1/traces` is added.
    pub fn new(endpoint: &str) -> Result<Self, TraceConfigError> {
        let endpoint = endpoint.trim();
        Self::for_url(format!("{}/{TRACES_PATH}", endpoint.trim_end_matches('/')), endpoint)
    }

    fn for_url(url: String, endpoint: &str) -> Result<Self, TraceConfigError> {
        // The endpoint by itself: with a path, an empty host would be read from the path.
        let parsed = reqwest::Url::parse(endpoint).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        });
        if parsed.is_none() {
            // The text may have credentials.
            return Err(TraceConfigError::InvalidEndpoint(toolyard_core::redact(endpoint).into_owned()));
        }
        Ok(Self {
            url,
            headers: Vec::new(),
            sampler: Sampler::parent_based(1.0),
            service_name: DEFAULT_SERVICE_NAME.to_owned(),
            resource_attributes: Vec::new(),
            captures_content: false,
            interval: DEFAULT_INTERVAL,
        })
    }

    /// Reads the standard variables of OpenTelemetry, which take precedence over `settings`. None if neither names an
    /// endpoint, or if `OTEL_SDK_DISABLED` is true.
    pub fn from_variables(
        settings: Option<Self>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TraceConfigError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let first = |names: [&str; 2]| names.into_iter().find_map(variable);
        let is_disabled =
            |name, off: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case(off));
        if is_disabled("OTEL_SDK_DISABLED", "true") || is_disabled("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let named = match variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            Some(url) => Some(Self::for_url(url.clone(), &url)?),
            None => variable("OTEL_EXPORTER_OTLP_ENDPOINT").as_deref().map(Self::new).transpose()?,
        };
        let mut config = match (settings, named) {
            // The headers of the settings are for the receiver of the settings.
            (Some(settings), Some(named)) => {
                let headers = if settings.url == named.url { settings.headers } else { Vec::new() };
                Self { url: named.url, headers, ..settings }
            }
            (Some(config), None) | (None, Some(config)) => config,
            (None, None) => return Ok(None),
        };
        if let Some(headers) = first(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]) {
            config.headers = parse_pairs(&headers).map_err(TraceConfigError::InvalidHeader)?;
        }
        if let Some(attributes) = variable("OTEL_RESOURCE_ATTRIBUTES") {
            // An invalid value is ignored as a whole, as the specification says.
            config.resource_attributes = parse_pairs(&attributes).unwrap_or_default();
            let named = config.resource_attributes.iter().position(|(name, _)| name == "service.name");
            if let Some((_, name)) = named.map(|at| config.resource_attributes.swap_remove(at)) {
                config.service_name = name;
            }
        }
        if let Some(name) = variable("OTEL_SERVICE_NAME") {
            config.service_name = name;
        }
        if let Some(name) = variable("OTEL_TRACES_SAMPLER") {
            let sampler = Sampler::from_variables(&name, variable("OTEL_TRACES_SAMPLER_ARG").as_deref());
            config.sampler = sampler.ok_or(TraceConfigError::UnknownSampler(name))?;
        }
        let delay = variable("OTEL_BSP_SCHEDULE_DELAY").and_then(|delay| delay.trim().parse().ok());
        if let Some(milliseconds) = delay.filter(|delay| *delay > 0) {
            config.interval = Duration::from_millis(milliseconds);
        }
        Ok(Some(config))
    }
}

// Without the values of headers.
impl std::fmt::Debug for TraceConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("TraceConfig")
            .field("url", &self.url)
            .field("headers", &headers)
            .field("sampler", &self.sampler)
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

/// Reads `name=value,name=value` with percent-encoded values. The error is the number of the invalid pair, because its text
/// may be secret.
fn parse_pairs(text: &str) -> Result<Vec<(String, String)>, usize> {
    let pairs = text.split(',').enumerate().filter(|(_, pair)| !pair.trim().is_empty());
    pairs
        .map(|(at, pair)| {
            let (name, value) = pair.split_once('=').ok_or(at + 1)?;
            let (name, value) = (name.trim(), percent_decoded(value.trim()).ok_or(at + 1)?);
            if name.is_empty() { Err(at + 1) } else { Ok((name.to_owned(), value)) }
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        settings: Option<TraceConfig>,
        variables: &[(&str, &str)],
    ) -> Result<Option<TraceConfig>, TraceConfigError> {
        TraceConfig::from_variables(settings, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_exported_unless_a_receiver_is_named() {
        assert_eq!(read(None, &[]), Ok(None));
        assert_eq!(read(None, &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(read(None, &[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        assert_eq!(read(None, &[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
        let settings = TraceConfig::new("http://127.0.0.1:4318/").unwrap();
        assert_eq!(settings.url, "http://127.0.0.1:4318/v1/traces");
        assert_eq!(read(Some(settings), &[("OTEL_SDK_DISABLED", "true")]), Ok(None));
    }

    #[test]
    fn variables_take_precedence_over_settings() {
        let mut settings = TraceConfig::new("http://settings:4318").unwrap();
        settings.headers = vec![("authorization".to_owned(), "secret of the settings".to_owned())];
        settings.service_name = "settings".to_owned();
        let config = read(
            Some(settings.clone()),
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/prefix/"),
                ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod%20eu,service.name=attribute"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.1"),
                ("OTEL_BSP_SCHEDULE_DELAY", "250"),
            ],
        );
        let config = config.unwrap().unwrap();
        assert_eq!(config.url, "https://collector/prefix/v1/traces");
        assert_eq!(config.headers, [], "another receiver does not get the secrets of the first");
        assert_eq!(config.service_name, "attribute");
        assert_eq!(
            config.resource_attributes,
            [("deployment.environment.name".to_owned(), "prod eu".to_owned())]
        );
        assert_eq!((config.sampler, config.interval.as_millis()), (Sampler::parent_based(0.1), 250));
        let named = read(
            Some(settings),
            &[
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:1/custom"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%2Cb, other = c"),
                ("OTEL_SERVICE_NAME", "variable"),
            ],
        );
        let named = named.unwrap().unwrap();
        assert_eq!(
            (named.url.as_str(), named.service_name.as_str()),
            ("http://collector:1/custom", "variable")
        );
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(named.headers, [header("api-key", "a,b"), header("other", "c")]);
    }

    #[test]
    fn invalid_values_are_refused_without_showing_secrets() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for bad in ["collector:4318", "ftp://collector", "", "http://"] {
            assert!(matches!(TraceConfig::new(bad), Err(TraceConfigError::InvalidEndpoint(_))), "{bad}");
        }
        let error = TraceConfig::new("http://user:hunter2-hunter2@collector").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        let headers = read(None, &[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,sk-0123456789abcdef")]);
        assert_eq!(headers, Err(TraceConfigError::InvalidHeader(2)));
        let sampler = read(None, &[endpoint, ("OTEL_TRACES_SAMPLER", "xray")]);
        assert_eq!(sampler, Err(TraceConfigError::UnknownSampler("xray".to_owned())));
        let mut config = TraceConfig::new("http://collector").unwrap();
        config.headers = vec![("authorization".to_owned(), "hunter2".to_owned())];
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
