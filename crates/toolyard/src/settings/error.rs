//! Errors in settings, and references to environment variables.

use std::path::PathBuf;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("failed to read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file does not parse.
    #[error("failed to parse {path}: {error}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// Traces cannot be exported as the settings or variables say.
    #[cfg(feature = "otlp")]
    #[error("[telemetry] {0}")]
    Telemetry(#[from] toolyard_telemetry::traces::TraceConfigError),
    /// A quota cannot be used.
    #[error("[[quotas]] {0}")]
    Quota(#[from] toolyard_quota::InvalidQuota),
    /// A required key is missing.
    #[error("{key} is missing")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A referenced environment variable is not set.
    #[error("{key}: the environment variable `{variable}` is not set")]
    UnsetVariable {
        /// The key that references it.
        key: String,
        /// The variable.
        variable: String,
    },
    /// A secret is written in the file itself.
    #[error(
        "{key} must reference an environment variable, such as `${{{example}}}`: secrets do not belong in files"
    )]
    LiteralSecret {
        /// The key.
        key: String,
        /// A variable of the right kind.
        example: &'static str,
    },
    /// The settings in the store have a key that only a file can set.
    #[error("`{0}` can only be set in a file, not in the store")]
    OnlyInFiles(&'static str),
    /// `store` is neither a URL nor a path.
    #[error("store: expected `postgres://USER:PASSWORD@HOST/DATABASE` or the path of a SQLite file")]
    InvalidStoreLocation,
    /// No profile has this name.
    #[error("[serve] profile `{name}` does not exist; {}", known_profiles(.known))]
    UnknownProfile {
        /// The name.
        name: String,
        /// Names of the profiles that exist.
        known: Vec<String>,
    },
    /// A profile's name cannot be part of a URL.
    #[error("[serve.profiles.{name}] the name of a profile may contain letters, digits, `-` and `_` only")]
    InvalidProfileName {
        /// The name.
        name: String,
    },
    /// The token can be guessed.
    #[error("[serve] token: a token needs at least {min} characters")]
    ShortToken {
        /// The minimum length.
        min: usize,
    },
    /// A session key has the wrong form.
    #[error("[serve] session_keys: a key is 32 bytes, as 64 hexadecimal digits or as base64")]
    InvalidSessionKey,
    /// There are more than two session keys.
    #[error("[serve] session_keys: expected the current key and at most one previous key")]
    TooManySessionKeys,
    /// There is no single way to prove to NATS who the gateway is.
    #[error("[cluster] set one of `creds`, `nkey`, `token`, or `user` with `password`")]
    ClusterCredentials,
    /// A certificate without its key, or the other way round.
    #[error("[cluster] set both of `client_certificate` and `client_key`, or none")]
    ClusterCertificate,
    /// The lease on sessions is too short or too long.
    #[error("[cluster] lease: expected a duration between 1s and 1h")]
    ClusterLease,
    /// The lease on runs is too short or too long.
    #[error("[serve] run_lease: expected a duration from {min:?} to {max:?}")]
    InvalidRunLease {
        /// The shortest lease.
        min: std::time::Duration,
        /// The longest lease.
        max: std::time::Duration,
    },
    /// A model's settings are invalid.
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
    /// The provider needs a URL.
    #[error("`url` is missing")]
    MissingUrl,
    /// The provider is not known.
    #[error("provider `{0}` is not known: use `openai`, or `genai:NAME` for other protocols")]
    UnknownProvider(String),
    /// The provider is not part of this build.
    #[error("provider `genai:{0}` is not part of this build: rebuild with the feature `genai`")]
    ProviderNotBuilt(String),
    /// Keys that genai providers do not support.
    #[error("`headers`, `extra_body` and `temperature` are supported by the provider `openai` only")]
    OpenAiOnlyKeys,
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
