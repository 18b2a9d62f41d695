//! The keys of stored secrets: in an environment variable, in the system's keychain, or in a file that only its owner can read.
//!
//! A key is kept under its id, and an encrypted file names the id of its key. A rotation therefore writes the new key before
//! anything uses it and removes the old one last: whenever it is interrupted, every file has its key.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolyard_mcp_client::{EncryptionKey, SecretText};

use super::SecretsError;
use crate::config::files;

/// Holds the key itself: for machines without a keychain, and for containers.
pub(crate) const KEY_VARIABLE: &str = "TOOLYARD_SECRETS_KEY";
/// Holds the former key during a rotation from one environment variable to another.
pub(crate) const OLD_KEY_VARIABLE: &str = "TOOLYARD_SECRETS_OLD_KEY";
const KEY_FOLDER: &str = "secret-keys";
/// How long a keychain that failed, or did not have a key, is not asked again.
const KEYCHAIN_PAUSE: Duration = Duration::from_secs(30);

/// Where a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyPlace {
    /// The keychain of the system: Secret Service, macOS Keychain
    Keychain,
    /// A file in Toolyard's data folder that only you can read
    File,
    /// The environment variable `TOOLYARD_SECRETS_KEY`
    Environment,
}

impl KeyPlace {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Keychain => "keychain",
            Self::File => "file",
            Self::Environment => "environment",
        }
    }

    /// What it may mean, besides, that a key is not here.
    pub(crate) fn absence_note(self) -> &'static str {
        match self {
            Self::Keychain => ", or the keychain was not unlocked",
            Self::File | Self::Environment => "",
        }
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keychain => f.write_str("the system's keychain"),
            Self::File => f.write_str("a private file"),
            Self::Environment => write!(f, "`{KEY_VARIABLE}`"),
        }
    }
}

/// A place that keeps keys by their ids.
pub(super) trait KeyStore: fmt::Debug + Send + Sync {
    /// Whether new keys are kept here unless the user chooses another place.
    fn is_preferred(&self) -> bool;

    /// The key with an id; none if it is not here.
    fn load(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError>;

    fn save(&self, key: &EncryptionKey) -> Result<(), SecretsError>;

    /// Removes a key; it is no error if it is not here.
    fn remove(&self, id: &str) -> Result<(), SecretsError>;
}

/// The keys in all places. Clones share what was loaded.
#[derive(Debug, Clone)]
pub(super) struct SecretKeys {
    pub(super) environment: Option<SecretText>,
    pub(super) old_environment: Option<SecretText>,
    pub(super) keychain: Option<Arc<dyn KeyStore>>,
    pub(super) key_files: KeyFiles,
    /// Keys by id, so that the keychain is asked once per process.
    loaded: Arc<Mutex<BTreeMap<String, EncryptionKey>>>,
    /// Held while asking the keychain.
    keychain_pause: Arc<Mutex<Option<KeychainPause>>>,
}

/// A keychain that had no answer is not asked again for a moment.
#[derive(Debug)]
struct KeychainPause {
    since: Instant,
    /// The key that it was asked for.
    id: String,
    /// Why the keychain failed; none if it had no such key, which may mean that the user dismissed its prompt.
    failure: Option<String>,
}

impl KeychainPause {
    fn applies_to(&self, id: &str) -> bool {
        self.since.elapsed() < KEYCHAIN_PAUSE && (self.failure.is_some() || self.id == id)
    }
}

impl SecretKeys {
    pub(super) fn new(data_folder: &Path, keychain: Option<Arc<dyn KeyStore>>) -> Self {
        Self {
            environment: None,
            old_environment: None,
            keychain,
            key_files: KeyFiles { folder: data_folder.join(KEY_FOLDER) },
            loaded: Arc::default(),
            keychain_pause: Arc::default(),
        }
    }

    /// The key that `file` is encrypted with. A key in the environment is used wherever it fits.
    pub(super) fn find(&self, place: KeyPlace, id: &str, file: &Path) -> Result<EncryptionKey, SecretsError> {
        let current = self.environment.as_ref().map(|text| (text, KEY_VARIABLE));
        let old = self.old_environment.as_ref().map(|text| (text, OLD_KEY_VARIABLE));
        for (text, variable) in current.into_iter().chain(old) {
            let key = parse_environment(text, variable)?;
            if key.id() == id {
                return Ok(key);
            }
        }
        let missing = || SecretsError::MissingKey { path: file.to_owned(), place };
        if let (KeyPlace::File | KeyPlace::Keychain, Some(key)) = (place, self.remembered(id)) {
            return Ok(key);
        }
        let key = match place {
            KeyPlace::Environment if self.environment.is_some() => {
                return Err(SecretsError::OtherEnvironmentKey(file.to_owned()));
            }
            KeyPlace::Environment => return Err(missing()),
            KeyPlace::File => self.key_files.load(id)?,
            KeyPlace::Keychain => self.load_from_keychain(id)?,
        };
        let key = key.filter(|key| key.id() == id).ok_or_else(missing)?;
        self.remember(&key);
        Ok(key)
    }

    /// Asks the keychain, unless it had no answer a moment ago: a locked one may take a minute to say so, for each variable of each
    /// server. Those who ask at the same time share one question.
    fn load_from_keychain(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError> {
        let keychain = self.keychain()?;
        let mut pause = self.keychain_pause.lock();
        if let Some(key) = self.remembered(id) {
            return Ok(Some(key));
        }
        if let Some(pause) = pause.as_ref().filter(|pause| pause.applies_to(id)) {
            return pause.failure.clone().map_or(Ok(None), |reason| Err(SecretsError::Keychain(reason)));
        }
        let loaded = keychain.load(id);
        let paused = |failure| KeychainPause { since: Instant::now(), id: id.to_owned(), failure };
        *pause = match &loaded {
            Err(SecretsError::Keychain(reason)) => Some(paused(Some(reason.clone()))),
            Ok(None) => Some(paused(None)),
            _ => None,
        };
        if let Ok(Some(key)) = &loaded {
            self.remember(key);
        }
        loaded
    }

    fn remembered(&self, id: &str) -> Option<EncryptionKey> {
        self.loaded.lock().get(id).cloned()
    }

    /// A key for new files, kept in this place; without one, in the environment if a key is there, else in the keychain if
    /// that works, else in a file.
    pub(super) fn create(&self, place: Option<KeyPlace>) -> Result<(KeyPlace, EncryptionKey), SecretsError> {
        let place = match (place, &self.environment, &self.keychain) {
            (Some(place), _, _) => place,
            (None, Some(_), _) => KeyPlace::Environment,
            (None, None, Some(keychain)) if keychain.is_preferred() => {
                match self.create_in(keychain.as_ref()) {
                    Ok(key) => return Ok((KeyPlace::Keychain, key)),
                    Err(error) => {
                        tracing::info!(%error, "the key of stored secrets is kept in a file");
                        KeyPlace::File
                    }
                }
            }
            (None, None, _) => KeyPlace::File,
        };
        let key = match place {
            KeyPlace::Environment => {
                let text = self.environment.as_ref().ok_or(SecretsError::NoEnvironmentKey)?;
                parse_environment(text, KEY_VARIABLE)?
            }
            KeyPlace::Keychain => self.create_in(self.keychain()?)?,
            KeyPlace::File => self.create_in(&self.key_files)?,
        };
        Ok((place, key))
    }

    /// Removes a key that nothing uses any more.
    pub(super) fn remove(&self, place: KeyPlace, id: &str) -> Result<(), SecretsError> {
        match place {
            KeyPlace::Environment => Ok(()),
            KeyPlace::File => self.key_files.remove(id),
            KeyPlace::Keychain => self.keychain()?.remove(id),
        }
    }

    fn create_in(&self, store: &dyn KeyStore) -> Result<EncryptionKey, SecretsError> {
        let key = EncryptionKey::generate()?;
        store.save(&key)?;
        // A keychain may accept what it does not keep.
        if store.load(&key.id())?.is_none_or(|kept| kept.id() != key.id()) {
            return Err(SecretsError::Keychain("it does not return what it was given".to_owned()));
        }
        self.remember(&key);
        Ok(key)
    }

    fn remember(&self, key: &EncryptionKey) {
        self.loaded.lock().insert(key.id(), key.clone());
    }

    fn keychain(&self) -> Result<&dyn KeyStore, SecretsError> {
        let unavailable = || SecretsError::Keychain("it is turned off".to_owned());
        self.keychain.as_deref().ok_or_else(unavailable)
    }
}

fn parse_environment(text: &SecretText, variable: &'static str) -> Result<EncryptionKey, SecretsError> {
    EncryptionKey::from_hex(text.expose()).map_err(|_| SecretsError::InvalidEnvironmentKey(variable))
}

/// Keys in files that only their owner can read.
#[derive(Debug, Clone)]
pub(super) struct KeyFiles {
    folder: PathBuf,
}

impl KeyFiles {
    fn file(&self, id: &str) -> PathBuf {
        // An id comes from a file; only digits of it may become part of a path.
        let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
        self.folder.join(format!("{digits}.key"))
    }
}

impl KeyStore for KeyFiles {
    fn is_preferred(&self) -> bool {
        true
    }

    fn load(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError> {
        let path = self.file(id);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SecretsError::io("read", path, error)),
        };
        if is_readable_by_others(&path)? {
            return Err(SecretsError::InsecurePermissions(path));
        }
        EncryptionKey::from_hex(&text).map(Some).map_err(|_| SecretsError::InvalidKeyFile(path))
    }

    fn save(&self, key: &EncryptionKey) -> Result<(), SecretsError> {
        let path = self.file(&key.id());
        let failed = |error| SecretsError::io("write", &path, error);
        files::create_private_folder(&self.folder).map_err(failed)?;
        files::create_if_absent(&path, &format!("{}\n", key.to_hex())).map_err(failed)
    }

    fn remove(&self, id: &str) -> Result<(), SecretsError> {
        let path = self.file(id);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SecretsError::io("remove", path, error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> Result<bool, SecretsError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = path.metadata().map_err(|error| SecretsError::io("read", path, error))?;
    Ok(metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_path: &Path) -> Result<bool, SecretsError> {
    Ok(false)
}
