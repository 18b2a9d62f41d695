//! Errors in settings, and references to environment variables.

use std::path::PathBuf;

/// Shorter tokens can be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The settings file does not exist or cannot be read.
    ///
    /// Remedy: check the path (`--config FILE`) and the permissions of the file.
    #[error("failed to read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The settings file is not TOML, has an unknown key, or a value of the wrong type; the text names the line.
    ///
    /// Remedy: correct the line; all keys are in docs/guide/settings.md and `toolyard settings schema`.
    #[error("failed to parse {path}: {error}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// Traces cannot be exported as `[telemetry]` or the variables of OpenTelemetry say.
    ///
    /// Remedy: correct what the text names, or remove it.
    #[cfg(feature = "otlp")]
    #[error("[telemetry] {0}")]
    Telemetry(#[from] toolyard_telemetry::traces::TraceConfigError),
    /// A table of `[[quotas]]` cannot be used; the text says why.
    ///
    /// Remedy: correct the table; see docs/guide/quotas.md.
    #[error("[[quotas]] {0}")]
    Quota(#[from] toolyard_quota::InvalidQuota),
    /// A required key of the settings is missing.
    ///
    /// Remedy: add the key; `toolyard settings schema` describes it.
    #[error("{key} is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A setting refers to an environment variable that is not set where Toolyard runs.
    ///
    /// Remedy: set the variable in the environment of the process, for a service in its unit or container.
    #[error("{key}: the environment variable `{variable}` is not set")]
    UnsetVariable {
        /// The key that references it.
        key: String,
        /// The variable.
        variable: String,
    },
    /// A secret is written in the settings file itself.
    ///
    /// Remedy: write `KEY = "${VARIABLE}"`, and set the variable in the environment of Toolyard.
    #[error(
        "{key} must reference an environment variable, such as `${{{example}}}`: secrets do not belong in files"
    )]
    LiteralSecret {
        /// The key.
        key: String,
        /// A variable of the right kind.
        example: &'static str,
    },
    /// `store` is neither a URL of PostgreSQL nor a path.
    ///
    /// Remedy: write `store = "postgres://USER:PASSWORD@HOST/DATABASE"` or the path of a file.
    #[error("store: expected `postgres://USER:PASSWORD@HOST/DATABASE` or the path of a SQLite file")]
    InvalidStoreLocation,
    /// No profile has this name.
    ///
    /// Remedy: define it in `[serve.profiles.NAME]`, or use one of the names in the message.
    #[error("[serve] profile `{name}` does not exist; {}", known_profiles(.known))]
    UnknownProfile {
        /// The name.
        name: String,
        /// Names of the profiles that exist.
        known: Vec<String>,
    },
    /// The name of a profile is part of a URL (`/mcp/NAME`).
    ///
    /// Remedy: rename the profile: letters, digits, `-` and `_`.
    #[error("[serve.profiles.{name}] the name of a profile may contain letters, digits, `-` and `_` only")]
    InvalidProfileName {
        /// The name.
        name: String,
    },
    /// A short token can be guessed.
    ///
    /// Remedy: generate one with `openssl rand -hex 32`.
    #[error("{key}: a token needs at least {min} characters")]
    ShortToken {
        /// The setting.
        key: &'static str,
        /// The minimum length.
        min: usize,
    },
    /// `[cluster]` has several credentials for NATS.
    ///
    /// Remedy: keep `creds`, or the same user and password or token in all addresses of `nats`.
    #[error("[cluster] set either `creds`, or the same user or token in all addresses of `nats`")]
    ClusterCredentials,
    /// `[cluster] nats` has `${…}` with something in it that is no reference.
    ///
    /// Remedy: write `${VARIABLE}`, the name of an environment variable.
    #[error("[cluster] nats: {0}")]
    ClusterAddress(toolyard_mcp_client::config::ReferenceError),
    /// A certificate needs its key, and the other way round.
    ///
    /// Remedy: set both `client_certificate` and `client_key` in `[cluster]`, or remove both.
    #[error("[cluster] set both of `client_certificate` and `client_key`, or none")]
    ClusterCertificate,
    /// The lease on sessions is too short or too long.
    ///
    /// Remedy: set `[cluster] lease` to a duration from `1s` to `1h`; `10s` is the default.
    #[error("[cluster] lease: expected a duration between 1s and 1h")]
    ClusterLease,
    /// The lease on runs is too short or too long.
    ///
    /// Remedy: set `[serve] run_lease` to a duration from `1s` to `1m`; `30s` is the default.
    #[error("[serve] run_lease: expected a duration from {min:?} to {max:?}")]
    InvalidRunLease {
        /// The shortest lease.
        min: std::time::Duration,
        /// The longest lease.
        max: std::time::Duration,
    },
    /// The settings of a model are invalid; the text says how.
    ///
    /// Remedy: correct `[models.NAME]` in `toolyard.toml`.
    #[error("[models.{model}] {problem}")]
    Model {
        /// The model.
        model: String,
        /// Why.
        problem: ModelProblem,
    },
}

/// What is wrong with a model's settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelProblem {
    /// The provider `openai` needs the URL of a server.
    ///
    /// Remedy: set `url` of `[models.NAME]`: `http://127.0.0.1:11434/v1` for Ollama, `https://api.openai.com/v1` for
    /// OpenAI.
    #[error("`url` is missing")]
    MissingUrl,
    /// `provider` of a model has an unknown value.
    ///
    /// Remedy: remove `provider` for servers with the API of OpenAI, which most have; or write `anthropic`.
    #[error("provider `{0}` is not known: use `openai` or `anthropic`")]
    UnknownProvider(String),
    /// A value contains an invalid reference.
    #[error("{key}: {reason}")]
    Template {
        /// The key.
        key: String,
        /// Why.
        reason: String,
    },
    /// The client could not be created.
    #[error("{0}")]
    Client(String),
}

fn known_profiles(names: &[String]) -> String {
    if names.is_empty() {
        "no profiles are defined".to_owned()
    } else {
        format!("known profiles: {}", names.join(", "))
    }
}

impl SettingsError {
    pub(super) fn unset_variable(key: impl Into<String>, variable: impl Into<String>) -> Self {
        Self::UnsetVariable { key: key.into(), variable: variable.into() }
    }
}

/// The variable that a `${NAME}` reference names.
pub(super) fn variable_reference(text: &str) -> Option<&str> {
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
}

/// The value of a token that clients present, if there is one.
pub(super) fn resolve_token(
    key: &'static str,
    reference: Option<&str>,
    example: &'static str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, SettingsError> {
    let Some(reference) = reference else { return Ok(None) };
    let token = resolve_secret(key, reference, example, variable)?;
    if token.trim().len() < MIN_TOKEN_LENGTH {
        return Err(SettingsError::ShortToken { key, min: MIN_TOKEN_LENGTH });
    }
    Ok(Some(token))
}

/// The value of a secret that must be written as a reference.
pub(super) fn resolve_secret(
    key: &str,
    reference: &str,
    example: &'static str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, SettingsError> {
    let name = variable_reference(reference)
        .ok_or_else(|| SettingsError::LiteralSecret { key: key.to_owned(), example })?;
    variable(name).ok_or_else(|| SettingsError::unset_variable(key, name))
}
