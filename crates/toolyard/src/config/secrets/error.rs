//! Why stored secrets cannot be read or written. No message contains a secret or a key.

use std::path::PathBuf;

use toolyard_mcp_client::EncryptionError;

use super::keys::{KEY_VARIABLE, KeyPlace, OLD_KEY_VARIABLE};
use crate::error::CliError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error("failed to {action} {}: {reason}", .path.display())]
    Io { action: &'static str, path: PathBuf, reason: std::io::Error },
    #[error("{} is not a file of stored secrets", .0.display())]
    NotSecrets(PathBuf),
    #[error("{} is not encrypted, although it was: another program replaced it", .0.display())]
    NotEncrypted(PathBuf),
    #[error("{} does not decrypt: it is damaged, or was changed by another program", .0.display())]
    Tampered(PathBuf),
    #[error("{} is encrypted with a key that is not in {place}", .path.display())]
    MissingKey { path: PathBuf, place: KeyPlace },
    #[error("{} is encrypted with another key than that in `{KEY_VARIABLE}`", .0.display())]
    OtherEnvironmentKey(PathBuf),
    #[error("the environment variable `{0}` is not a key")]
    InvalidEnvironmentKey(&'static str),
    #[error("the environment variable `{KEY_VARIABLE}` is not set")]
    NoEnvironmentKey,
    #[error("the key in `{KEY_VARIABLE}` is the one in use")]
    SameEnvironmentKey,
    #[error("{} is readable by other users", .0.display())]
    InsecurePermissions(PathBuf),
    #[error("{} does not contain a key", .0.display())]
    InvalidKeyFile(PathBuf),
    #[error("the system's keychain cannot be used: {0}")]
    Keychain(String),
    #[error("failed to encrypt: {0}")]
    Encryption(#[from] EncryptionError),
}

impl SecretsError {
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>, reason: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), reason }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let restore = "restore the file from a backup, or remove it and set the secrets again: toolyard secrets set NAME";
        Some(match self {
            Self::NotSecrets(_) | Self::Tampered(_) => restore.to_owned(),
            Self::NotEncrypted(_) => {
                format!("{restore} · if you put this file there yourself, encrypt it: toolyard secrets rotate-key")
            }
            Self::MissingKey { place: KeyPlace::Environment, .. } | Self::OtherEnvironmentKey(_) => {
                format!("set `{KEY_VARIABLE}` to the key that the secrets were stored with")
            }
            Self::MissingKey { place: KeyPlace::Keychain, .. } => {
                "unlock the keychain of the user who stored the secrets, or remove the file and set them again".to_owned()
            }
            Self::MissingKey { place: KeyPlace::File, .. } => {
                "restore the key file from a backup, or remove the file and set the secrets again".to_owned()
            }
            Self::InvalidEnvironmentKey(_) | Self::NoEnvironmentKey => {
                format!("set `{KEY_VARIABLE}` to 64 hexadecimal digits, such as those of `openssl rand -hex 32`")
            }
            Self::SameEnvironmentKey => {
                format!("set `{OLD_KEY_VARIABLE}` to this key and `{KEY_VARIABLE}` to a new one")
            }
            Self::InsecurePermissions(path) => {
                format!("run: chmod 600 '{}'; then: toolyard secrets rotate-key", path.display())
            }
            Self::Keychain(_) => "unlock it, or log in at the desktop; then, to do without a keychain: toolyard secrets \
                                  rotate-key --to file"
                .to_owned(),
            Self::Io { .. } | Self::InvalidKeyFile(_) | Self::Encryption(_) => return None,
        })
    }
}

impl From<SecretsError> for CliError {
    fn from(error: SecretsError) -> Self {
        let failed = match &error {
            SecretsError::InvalidEnvironmentKey(_)
            | SecretsError::NoEnvironmentKey
            | SecretsError::SameEnvironmentKey => Self::usage(error.to_string()),
            _ => Self::failed(error.to_string()),
        };
        failed.with_optional_hint(error.hint())
    }
}
