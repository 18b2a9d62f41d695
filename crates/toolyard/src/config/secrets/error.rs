//! Why stored secrets cannot be read or written. No message contains a secret or a key.

use std::path::PathBuf;

use toolyard_mcp_client::EncryptionError;

use super::{
    keychain::NOT_INSTALLED,
    keys::{KEY_VARIABLE, KeyPlace, OLD_KEY_VARIABLE},
};
use crate::error::CliError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    /// A file of the stored secrets could not be read or written.
    ///
    /// Remedy: check the permissions of the file and its folder, and the free space of the disk.
    #[error("failed to {action} {}: {reason}", .path.display())]
    Io { action: &'static str, path: PathBuf, reason: std::io::Error },
    /// The file has another content than Toolyard writes.
    ///
    /// Remedy: restore the file from a backup, or remove it and set the secrets again: `toolyard secrets set NAME`.
    #[error("{} is not a file of stored secrets", .0.display())]
    NotSecrets(PathBuf),
    /// The file was encrypted before, so another program replaced it.
    ///
    /// Remedy: restore the file from a backup; if you put it there yourself, encrypt it: `toolyard secrets rotate-key`.
    #[error("{} is not encrypted, although it was: another program replaced it", .0.display())]
    NotEncrypted(PathBuf),
    /// The content or the key of the file was changed.
    ///
    /// Remedy: restore the file from a backup, or remove it and set the secrets again: `toolyard secrets set NAME`.
    #[error("{} does not decrypt: it is damaged, or was changed by another program", .0.display())]
    Tampered(PathBuf),
    /// The key with which the secrets were stored is missing: another user, a locked keychain, or a variable that is
    /// not set.
    ///
    /// Remedy: unlock the keychain, restore the key file, or set `TOOLYARD_SECRETS_KEY`, as the hint says; otherwise
    /// remove the file and set the secrets again.
    #[error("{} is encrypted with a key that is not in {place}{}", .path.display(), .place.absence_note())]
    MissingKey { path: PathBuf, place: KeyPlace },
    /// `TOOLYARD_SECRETS_KEY` was changed after the secrets were stored.
    ///
    /// Remedy: set it to the former key; to replace it, put the former one into `TOOLYARD_SECRETS_OLD_KEY` and run
    /// `toolyard secrets rotate-key`.
    #[error("{} is encrypted with another key than that in `{KEY_VARIABLE}`", .0.display())]
    OtherEnvironmentKey(PathBuf),
    /// The value of the variable has another form than 64 hexadecimal digits.
    ///
    /// Remedy: generate a key with `openssl rand -hex 32`.
    #[error("the environment variable `{0}` is not a key")]
    InvalidEnvironmentKey(&'static str),
    /// The secrets shall be encrypted with a key in the environment, and there is none.
    ///
    /// Remedy: set `TOOLYARD_SECRETS_KEY` to the output of `openssl rand -hex 32`.
    #[error("the environment variable `{KEY_VARIABLE}` is not set")]
    NoEnvironmentKey,
    /// The rotation needs a new key, and the variable has the current one.
    ///
    /// Remedy: set `TOOLYARD_SECRETS_OLD_KEY` to the current key and `TOOLYARD_SECRETS_KEY` to a new one.
    #[error("the key in `{KEY_VARIABLE}` is the one in use")]
    SameEnvironmentKey,
    /// Other users of this machine can read the file.
    ///
    /// Remedy: run `chmod 600` on it, then `toolyard secrets rotate-key`, because the key may have been read.
    #[error("{} is readable by other users", .0.display())]
    InsecurePermissions(PathBuf),
    /// The key file is empty or has another content.
    ///
    /// Remedy: restore it from a backup; without the key, remove the encrypted files and set the secrets again.
    #[error("{} does not contain a key", .0.display())]
    InvalidKeyFile(PathBuf),
    /// The keychain is locked, missing or refuses access; the text says why.
    ///
    /// Remedy: on Linux, install `secret-tool` (package `libsecret-tools` or `libsecret`); unlock the keychain or log in at the
    /// desktop; to do without it: `toolyard secrets rotate-key --to file`, or `TOOLYARD_KEYCHAIN=off` before the first secret is
    /// stored.
    #[error("the system's keychain cannot be used: {0}")]
    Keychain(String),
    /// The operating system gives no random numbers, or a key is invalid.
    ///
    /// Remedy: check `/dev/urandom` and the sandbox of the process; see the text.
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
            Self::Keychain(reason) if reason.contains(NOT_INSTALLED) => {
                "install the package libsecret-tools (in some distributions libsecret), or do without a keychain: toolyard \
                 secrets rotate-key --to file"
                    .to_owned()
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
