//! [`NatsSettings`]: which NATS servers, with which credentials, below which subjects.

use std::{fmt, path::PathBuf};

use async_nats::ServerAddr;

/// The longest prefix of subjects.
const MAX_PREFIX_LENGTH: usize = 64;

/// How a process reaches NATS.
#[derive(Debug, Clone)]
pub struct NatsSettings {
    /// Addresses of servers of one NATS cluster, such as `nats://nats-1.example:4222`.
    pub servers: Vec<String>,
    /// How this process proves who it is; none for servers without accounts.
    pub credentials: Option<NatsCredentials>,
    /// A PEM file of certificate authorities, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// PEM files of a client certificate and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The first part of all subjects. Clusters with different prefixes do not see each other.
    pub prefix: String,
}

/// How a process proves who it is.
#[derive(Clone)]
pub enum NatsCredentials {
    /// A `.creds` file, which contains a JWT and a seed.
    File(PathBuf),
    /// A name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token that all clients share.
    Token(String),
}

impl fmt::Debug for NatsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Password { user, .. } => {
                f.debug_struct("Password").field("user", user).finish_non_exhaustive()
            }
            Self::Token(_) => f.write_str("Token(…)"),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNatsSettings {
    /// `[cluster] nats` is empty.
    ///
    /// Remedy: set `nats = "nats://HOST:4222"` in `[cluster]`, or pass `--nats`.
    #[error("no NATS server is given")]
    NoServer,
    /// An address in `[cluster] nats` cannot be parsed.
    ///
    /// Remedy: write `nats://HOST:4222` or `tls://HOST:4222`, several separated by commas.
    #[error("`{address}` is not the address of a NATS server: {reason}")]
    Address {
        /// The address, without user and password.
        address: String,
        /// Why.
        reason: String,
    },
    /// `[cluster] prefix` is not a part of a NATS subject.
    ///
    /// Remedy: use letters, digits, `-` and `_`, such as `toolyard`; the same in all gateways and workers.
    #[error(
        "`{0}` cannot begin subjects: use 1 to 64 letters, digits, `-` and `_`, in parts separated by dots"
    )]
    Prefix(String),
}

impl NatsSettings {
    /// Servers without credentials, and subjects that begin with `toolyard`.
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            credentials: None,
            ca_file: None,
            client_certificate: None,
            prefix: "toolyard".to_owned(),
        }
    }

    /// Checks what can be checked without a connection, and returns the addresses.
    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddr>, InvalidNatsSettings> {
        if !is_prefix(&self.prefix) {
            return Err(InvalidNatsSettings::Prefix(self.prefix.clone()));
        }
        if self.servers.is_empty() {
            return Err(InvalidNatsSettings::NoServer);
        }
        let address = |text: &String| {
            text.parse::<ServerAddr>().map_err(|error| InvalidNatsSettings::Address {
                address: without_user(text),
                reason: error.to_string(),
            })
        };
        self.servers.iter().map(address).collect()
    }
}

/// An address without a user and password, which must not reach logs.
pub(crate) fn without_user(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

fn is_prefix(text: &str) -> bool {
    let is_character = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_character);
    text.len() <= MAX_PREFIX_LENGTH && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_made_of_plain_parts() {
        for good in ["toolyard", "team-a.toolyard", "a_1"] {
            assert!(is_prefix(good), "{good}");
        }
        for bad in ["", ".", "a.", "a..b", "a b", "a.*", "a.>", "ä", &"a".repeat(65)] {
            assert!(!is_prefix(bad), "{bad}");
        }
    }

    #[test]
    fn errors_show_no_password() {
        let settings = NatsSettings::new(["nats://admin:hunter2@host:notaport"]);
        let error = settings.addresses().unwrap_err().to_string();
        assert!(error.contains("nats://host:notaport") && !error.contains("hunter2"), "{error}");
        let credentials = NatsCredentials::Password { user: "u".into(), password: "hunter2".into() };
        assert!(
            !format!("{credentials:?}{:?}", NatsCredentials::Token("hunter2".into())).contains("hunter2")
        );
    }
}
