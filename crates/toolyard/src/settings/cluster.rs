//! `[cluster]` as plain data: several gateways that serve the same tools together.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::matches_wildcards;

use super::{DurationSetting, SettingsError, error::resolve_secret};

/// The prefix of subjects if the settings have none.
pub const DEFAULT_CLUSTER_PREFIX: &str = "toolyard";
const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// Several gateways that serve the same tools together, connected by NATS. They need the same PostgreSQL store, the same servers, and
/// the same settings. Without this table, gateways with one store do not know of each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// The NATS servers, separated by commas: `nats://nats-1.example:4222,nats://nats-2.example:4222`. `tls://` requires TLS.
    pub nats: String,
    /// A NATS credentials file (`.creds`), with a JWT and a seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creds: Option<PathBuf>,
    /// The seed of an nkey, as a reference to an environment variable: `${NATS_NKEY}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey: Option<String>,
    /// The user, together with `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of `user`, as a reference to an environment variable: `${NATS_PASSWORD}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A token, as a reference to an environment variable: `${NATS_TOKEN}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A PEM file of certificate authorities, in place of those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// A PEM file of the certificate by which this gateway identifies itself, together with `client_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<PathBuf>,
    /// The PEM file of the key of `client_certificate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<PathBuf>,
    /// The first part of all NATS subjects; `toolyard` by default. Clusters that share a NATS need different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// How long the sessions of a gateway that died stay without an owner, at most; from `1s` to `1h`, `10s` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<DurationSetting>,
    /// The groups of workers whose tools this gateway serves, with `*` as wildcard: `["office", "reports-*"]`. None by default:
    /// a worker can put text in front of every model. A changed tool is not called until `toolyard servers approve` approves it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
    /// The groups of workers that are trusted, with `*` as wildcard: what they say about the effects of their tools counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_workers: Vec<String>,
}

/// How a gateway proves to NATS who it is, with all variables resolved.
#[derive(Clone, PartialEq, Eq)]
pub enum ClusterCredentials {
    /// A credentials file.
    File(PathBuf),
    /// The seed of an nkey.
    Nkey(String),
    /// User and password.
    Password(String, String),
    /// A token.
    Token(String),
}

impl std::fmt::Debug for ClusterCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File(…)",
            Self::Nkey(_) => "Nkey(…)",
            Self::Password(..) => "Password(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

impl ClusterSettings {
    /// The addresses of the NATS servers.
    pub fn servers(&self) -> Vec<String> {
        self.nats
            .split(',')
            .map(|server| server.trim().to_owned())
            .filter(|server| !server.is_empty())
            .collect()
    }

    /// How long a session without a sign of life of its owner stays with it.
    ///
    /// # Errors
    /// If it is not between one second and one hour.
    pub fn lease(&self) -> Result<Duration, SettingsError> {
        let lease = self.lease.map_or(DEFAULT_LEASE, |lease| lease.0);
        if (Duration::from_secs(1)..=Duration::from_hours(1)).contains(&lease) {
            Ok(lease)
        } else {
            Err(SettingsError::ClusterLease)
        }
    }

    /// Whether this gateway serves the tools of a group of workers.
    pub fn uses_workers(&self, group: &str) -> bool {
        self.workers.iter().any(|pattern| matches_wildcards(pattern, group))
    }

    /// Whether hints of a group's tools count.
    pub fn trusts_workers(&self, group: &str) -> bool {
        self.trusted_workers.iter().any(|pattern| matches_wildcards(pattern, group))
    }

    /// The client certificate and its key.
    ///
    /// # Errors
    /// If only one of them is set.
    pub fn client_certificate(&self) -> Result<Option<(PathBuf, PathBuf)>, SettingsError> {
        match (self.client_certificate.clone(), self.client_key.clone()) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (None, None) => Ok(None),
            _ => Err(SettingsError::ClusterCertificate),
        }
    }

    /// How this gateway proves who it is.
    ///
    /// # Errors
    /// If several ways are set, a secret is not a reference to a variable, or the variable is not set.
    pub fn credentials(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ClusterCredentials>, SettingsError> {
        let secret = |key: &str, value: &Option<String>, example| {
            let reference = value.as_deref();
            reference
                .map(|reference| resolve_secret(&format!("[cluster] {key}"), reference, example, &variable))
                .transpose()
        };
        let nkey = secret("nkey", &self.nkey, "NATS_NKEY")?.map(ClusterCredentials::Nkey);
        let token = secret("token", &self.token, "NATS_TOKEN")?.map(ClusterCredentials::Token);
        let password = secret("password", &self.password, "NATS_PASSWORD")?;
        let password = match (self.user.clone(), password) {
            (Some(user), Some(password)) => Some(ClusterCredentials::Password(user, password)),
            (None, None) => None,
            _ => return Err(SettingsError::ClusterCredentials),
        };
        let file = self.creds.clone().map(ClusterCredentials::File);
        let mut given = [file, nkey, password, token].into_iter().flatten();
        match (given.next(), given.next()) {
            (_, Some(_)) => Err(SettingsError::ClusterCredentials),
            (credentials, None) => Ok(credentials),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> ClusterSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn servers_are_separated_by_commas() {
        let settings = settings(r#"nats = "nats://a:4222, nats://b:4222,""#);
        assert_eq!(settings.servers(), ["nats://a:4222", "nats://b:4222"]);
        assert_eq!(settings.lease().unwrap(), Duration::from_secs(10));
        let short = ClusterSettings { lease: Some(DurationSetting(Duration::from_millis(1))), ..settings };
        assert!(short.lease().is_err());
        let half = ClusterSettings { client_key: Some("key.pem".into()), ..short };
        assert!(half.client_certificate().is_err());
    }

    #[test]
    fn there_is_one_way_to_prove_who_one_is_and_secrets_are_references() {
        let variable = |name: &str| (name == "SECRET").then(|| "s3cret".to_owned());
        let credentials =
            |text: &str| settings(&format!("nats = \"nats://a\"\n{text}")).credentials(variable);
        assert!(matches!(credentials(""), Ok(None)));
        assert_eq!(
            credentials("token = \"${SECRET}\"").unwrap(),
            Some(ClusterCredentials::Token("s3cret".to_owned()))
        );
        for wrong in [
            "token = \"s3cret\"",
            "token = \"${UNSET}\"",
            "user = \"u\"",
            "creds = \"a\"\nnkey = \"${SECRET}\"",
        ] {
            let error = credentials(wrong).unwrap_err().to_string();
            assert!(error.contains("[cluster]") && !error.contains("s3cret"), "{error}");
        }
        assert!(!format!("{:?}", credentials("token = \"${SECRET}\"")).contains("s3cret"));
    }
}
