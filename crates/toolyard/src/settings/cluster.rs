//! `[cluster]` as plain data: several gateways that serve the same tools together.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::matches_wildcards;
use toolyard_mcp_client::config::Template;

use super::{DurationSetting, SettingsError};

/// The prefix of subjects if the settings have none.
pub const DEFAULT_CLUSTER_PREFIX: &str = "toolyard";
const DEFAULT_LEASE: Duration = Duration::from_secs(10);
const NATS_KEY: &str = "[cluster] nats";

/// Several gateways that serve the same tools together, connected by NATS. They need the same PostgreSQL store, the same servers, and
/// the same settings. Without this table, gateways with one store do not know of each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// The NATS servers, separated by commas: `nats://nats-1.example:4222,nats://nats-2.example:4222`. `tls://` requires TLS.
    /// A user and password, or a token, stand before the host, as references to environment variables, which are not
    /// percent-encoded: `nats://office:${NATS_PASSWORD}@nats.example`, `nats://${NATS_TOKEN}@nats.example`.
    pub nats: String,
    /// A NATS credentials file (`.creds`), with a JWT and a seed, in place of a user or token in `nats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creds: Option<PathBuf>,
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
    /// User and password.
    Password(String, String),
    /// A token.
    Token(String),
}

impl std::fmt::Debug for ClusterCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "File(…)",
            Self::Password(..) => "Password(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

impl ClusterSettings {
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

    /// The addresses of the NATS servers, and how this gateway proves who it is.
    ///
    /// # Errors
    /// If several ways are set, a secret is not a reference to a variable, or the variable is not set.
    pub fn servers(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(Vec<String>, Option<ClusterCredentials>), SettingsError> {
        let mut servers = Vec::new();
        let mut credentials = self.creds.clone().map(ClusterCredentials::File);
        for text in self.nats.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let (address, user) = split_user(text);
            servers.push(expand(&address, &variable)?);
            let Some(user) = user else { continue };
            let found = Some(user_credentials(user, &variable)?);
            if credentials.is_some() && credentials != found {
                return Err(SettingsError::ClusterCredentials);
            }
            credentials = found;
        }
        Ok((servers, credentials))
    }
}

/// The address without what is before the host, and that.
fn split_user(text: &str) -> (String, Option<&str>) {
    let (scheme, rest) = text.split_once("://").unwrap_or(("nats", text));
    match rest.rsplit_once('@') {
        Some((user, host)) => (format!("{scheme}://{host}"), Some(user)),
        None => (text.to_owned(), None),
    }
}

/// `USER:PASSWORD` or `TOKEN`. The client library ignores them in addresses.
fn user_credentials(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ClusterCredentials, SettingsError> {
    // A reference may contain colons.
    let mut is_reference = false;
    let colon = text.find(|character: char| {
        match character {
            '{' => is_reference = true,
            '}' => is_reference = false,
            _ => {}
        }
        character == ':' && !is_reference
    });
    match colon.and_then(|colon| text.split_at_checked(colon)) {
        Some((user, password)) => {
            let password =
                expand_secret(password.strip_prefix(':').unwrap_or(password), "NATS_PASSWORD", &variable)?;
            Ok(ClusterCredentials::Password(expand(user, variable)?, password))
        }
        None => Ok(ClusterCredentials::Token(expand_secret(text, "NATS_TOKEN", variable)?)),
    }
}

fn expand_secret(
    text: &str,
    example: &'static str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, SettingsError> {
    if parse(text)?.variables().next().is_none() {
        return Err(SettingsError::LiteralSecret { key: NATS_KEY.to_owned(), example });
    }
    expand(text, variable)
}

fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, SettingsError> {
    let expanded = parse(text)?.expand(variable);
    let expanded = expanded.map_err(|unset| SettingsError::unset_variable(NATS_KEY, unset.0))?;
    Ok(expanded.expose().to_owned())
}

fn parse(text: &str) -> Result<Template, SettingsError> {
    Template::parse(text).map_err(SettingsError::ClusterAddress)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> ClusterSettings {
        toml::from_str(text).unwrap()
    }

    fn servers(text: &str) -> Result<(Vec<String>, Option<ClusterCredentials>), SettingsError> {
        settings(text).servers(|name| match name {
            "SECRET" => Some("s3:c@r/e,t".to_owned()),
            "HOST" => Some("b".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn servers_are_separated_by_commas() {
        let (addresses, credentials) = servers(r#"nats = "nats://a:4222, nats://${HOST}:4222,""#).unwrap();
        assert_eq!((addresses.join(" ").as_str(), credentials), ("nats://a:4222 nats://b:4222", None));
        let settings = settings(r#"nats = "nats://a:4222""#);
        assert_eq!(settings.lease().unwrap(), Duration::from_secs(10));
        let short = ClusterSettings { lease: Some(DurationSetting(Duration::from_millis(1))), ..settings };
        assert!(short.lease().is_err());
        let half = ClusterSettings { client_key: Some("key.pem".into()), ..short };
        assert!(half.client_certificate().is_err());
    }

    #[test]
    fn a_user_or_a_token_stands_before_the_host() {
        let secret = || "s3:c@r/e,t".to_owned();
        let password = ClusterCredentials::Password("office".to_owned(), secret());
        let both = r#"nats = "tls://office:${SECRET}@a:4222,tls://office:${SECRET}@b""#;
        let expected = (vec!["tls://a:4222".to_owned(), "tls://b".to_owned()], Some(password));
        assert_eq!(servers(both).unwrap(), expected);
        let token = ClusterCredentials::Token(secret());
        let (addresses, credentials) = servers(r#"nats = "${SECRET}@a,b""#).unwrap();
        assert_eq!((addresses.join(" ").as_str(), credentials), ("nats://a b", Some(token)));
        let file = servers("nats = \"a\"\ncreds = \"a.creds\"").unwrap().1;
        assert_eq!(file, Some(ClusterCredentials::File("a.creds".into())));
    }

    #[test]
    fn there_is_one_way_to_prove_who_one_is_and_secrets_are_references() {
        for wrong in [
            "nats = \"nats://s3cret@a\"",
            "nats = \"nats://u:s3cret@a\"",
            "nats = \"nats://u:${UNSET}@a\"",
            "nats = \"nats://u:${SECRET@a\"",
            "nats = \"nats://u:${SECRET}@a,nats://v:${SECRET}@b\"",
            "nats = \"nats://${SECRET}@a\"\ncreds = \"a\"",
        ] {
            let error = servers(wrong).unwrap_err().to_string();
            assert!(error.contains("[cluster]") && !error.contains("s3"), "{error}");
        }
        assert!(!format!("{:?}", servers("nats = \"${SECRET}@a\"")).contains("s3"));
    }
}
