//! Stored secrets: what settings refer to as `${secret:NAME}`, in an encrypted file. A program that the desktop starts, such as
//! an editor, does not have the variables of a shell; stored secrets are there for both.
//!
//! - `encrypted_file`: the format of encrypted files.
//! - `keys`, `keychain`: where the key is kept.
//! - `secret_file`: `${file:PATH}`.
//! - `error`: what can go wrong, and what to do about it.

mod encrypted_file;
mod error;
mod keychain;
mod keys;
mod secret_file;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use toolyard_mcp_client::{
    EncryptionKey, SecretText,
    config::{SECRET_FILE_PREFIX, STORED_SECRET_PREFIX, ServerSettings},
};

use self::{
    encrypted_file::EncryptedFile,
    keys::{KeyStore, OLD_KEY_VARIABLE, SecretKeys},
};
pub(crate) use self::{
    error::SecretsError,
    keys::{KEY_VARIABLE, KeyPlace},
};
use super::files;

const FILE_NAME: &str = "secrets.json";
const LOCK_FILE: &str = "secrets.lock";
/// Exists once secrets were encrypted: from then on, a file that is not encrypted is not of an earlier version.
const ENCRYPTED_MARKER: &str = "secrets.encrypted";
const PURPOSE: &str = "stored secrets";
/// Set to `off`, the system's keychain is not used.
const KEYCHAIN_VARIABLE: &str = "TOOLYARD_KEYCHAIN";

/// The encrypted file of stored secrets. It is read at every lookup, so that a change holds for the next start of a server.
#[derive(Debug, Clone)]
pub(crate) struct StoredSecrets {
    data_folder: PathBuf,
    home: Option<PathBuf>,
    keys: SecretKeys,
}

/// The file of an earlier version, which was not encrypted.
#[derive(Deserialize)]
struct PlainFile {
    version: u32,
    secrets: BTreeMap<String, SecretText>,
}

/// A record of an earlier version: any JSON object.
#[derive(Deserialize)]
struct PlainRecord {}

/// What a file of secrets contains.
enum Content {
    Missing,
    Plain(BTreeMap<String, SecretText>),
    Encrypted(EncryptedFile),
}

/// The result of a rotation.
#[derive(Debug)]
pub(crate) struct KeyRotation {
    /// Where the new key is kept.
    pub(crate) place: KeyPlace,
    /// How many secrets and undo records it encrypts.
    pub(crate) secrets: usize,
    pub(crate) records: usize,
    /// Why the old key could not be removed. Nothing is encrypted with it any more.
    pub(crate) leftover: Option<SecretsError>,
}

impl StoredSecrets {
    /// The stored secrets of a data folder, with a key from the environment if there is one.
    pub(crate) fn from_environment(data_folder: &Path) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_off = variable(KEYCHAIN_VARIABLE).is_some_and(|value| value.eq_ignore_ascii_case("off"));
        let mut keys = SecretKeys::new(data_folder, system_keychain(is_off));
        keys.environment = variable(KEY_VARIABLE).map(SecretText::new);
        keys.old_environment = variable(OLD_KEY_VARIABLE).map(SecretText::new);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self { data_folder: data_folder.to_owned(), home, keys }
    }

    /// The encrypted file.
    pub(crate) fn file(&self) -> PathBuf {
        self.data_folder.join(FILE_NAME)
    }

    /// Where the key is kept; none if nothing is stored yet.
    pub(crate) fn key_place(&self) -> Result<Option<KeyPlace>, SecretsError> {
        Ok(match self.content()? {
            Content::Encrypted(file) => Some(file.key),
            Content::Missing | Content::Plain(_) => None,
        })
    }

    /// All secrets by name.
    pub(crate) fn read(&self) -> Result<BTreeMap<String, SecretText>, SecretsError> {
        match self.content()? {
            Content::Missing => Ok(BTreeMap::new()),
            Content::Encrypted(file) => {
                let secrets = self.decrypt(&file)?;
                // Earlier versions wrote no marker.
                if let Err(error) = self.mark_encrypted() {
                    tracing::warn!(%error, "failed to record that stored secrets are encrypted");
                }
                Ok(secrets)
            }
            Content::Plain(secrets) => {
                // The file of an earlier version is encrypted as soon as somebody reads it.
                if let Err(error) = self.change(|_| ()) {
                    tracing::warn!(%error, "stored secrets are not encrypted");
                }
                Ok(secrets)
            }
        }
    }

    /// Adds secrets, or replaces those of the same names.
    pub(crate) fn insert(
        &self,
        new: impl IntoIterator<Item = (String, SecretText)>,
    ) -> Result<(), SecretsError> {
        let new: Vec<_> = new.into_iter().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.change(|secrets| secrets.extend(new))
    }

    /// Removes a secret; returns whether it was there.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, SecretsError> {
        self.change(|secrets| secrets.remove(name).is_some())
    }

    /// Removes the secrets that servers referred to before and none does now.
    pub(crate) fn remove_unused(
        &self,
        before: &BTreeMap<String, ServerSettings>,
        now: &BTreeMap<String, ServerSettings>,
    ) -> Result<(), SecretsError> {
        let used: BTreeSet<String> = referenced_secrets(now).into_keys().collect();
        let unused: Vec<String> =
            referenced_secrets(before).into_keys().filter(|name| !used.contains(name)).collect();
        if unused.is_empty() {
            return Ok(());
        }
        self.change(|secrets| unused.iter().for_each(|name| drop(secrets.remove(name))))
    }

    /// The value of a variable that a configuration refers to: a stored secret or the content of a file if the name has
    /// the prefix of one, else an environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        if let Some(path) = name.strip_prefix(SECRET_FILE_PREFIX) {
            return secret_file::read(path, self.home.as_deref()).ok();
        }
        let Some(name) = name.strip_prefix(STORED_SECRET_PREFIX) else { return std::env::var(name).ok() };
        match self.read() {
            Ok(mut secrets) => secrets.remove(name).map(SecretText::into_exposed),
            Err(error) => {
                tracing::warn!(%error, "stored secrets cannot be read");
                None
            }
        }
    }

    /// Why a stored secret or a file has no value; none if it is only missing.
    pub(crate) fn missing_reason(&self, name: &str) -> Option<String> {
        if let Some(path) = name.strip_prefix(SECRET_FILE_PREFIX) {
            return Some(secret_file::read(path, self.home.as_deref()).err()?.to_string());
        }
        name.strip_prefix(STORED_SECRET_PREFIX)?;
        let error = self.read().err()?;
        Some(match error.hint() {
            Some(hint) => format!("{error}; hint: {hint}"),
            None => error.to_string(),
        })
    }

    /// Writes a file that only its owner can read, encrypted with the key of the secrets.
    pub(crate) fn write_file(&self, file: &Path, purpose: &str, content: &[u8]) -> Result<(), SecretsError> {
        let _lock = self.lock()?;
        let key = match self.content()? {
            Content::Encrypted(secrets) => (secrets.key, self.key_of(&secrets, &self.file())?),
            Content::Missing => self.write(&BTreeMap::new(), None)?,
            Content::Plain(secrets) => self.write(&secrets, None)?,
        };
        write_json(file, &EncryptedFile::new(purpose, &key, content)?)
    }

    /// Decrypts the text of a file; none if it is not encrypted.
    pub(crate) fn decrypt_file(
        &self,
        file: &Path,
        purpose: &str,
        text: &str,
    ) -> Result<Option<Vec<u8>>, SecretsError> {
        let Some(encrypted) = EncryptedFile::parse(text) else { return Ok(None) };
        let key = self.key_of(&encrypted, file)?;
        encrypted.decrypt(purpose, &key, file).map(Some)
    }

    /// Encrypts the secrets, and other files with their purposes, with a new key. An interrupted rotation leaves files
    /// with the old and with the new key, and both keys: it can be repeated.
    pub(crate) fn rotate_key(
        &self,
        place: Option<KeyPlace>,
        other_files: &[(PathBuf, String)],
    ) -> Result<KeyRotation, SecretsError> {
        let _lock = self.lock()?;
        let mut old_keys = BTreeMap::new();
        // Whoever rotates the key explicitly may also have put a file of an earlier version here.
        let secrets = match self.any_content()? {
            Content::Missing => BTreeMap::new(),
            Content::Plain(secrets) => secrets,
            Content::Encrypted(file) => {
                old_keys.insert(file.key_id.clone(), file.key);
                self.decrypt(&file)?
            }
        };
        let mut records = Vec::new();
        for (path, purpose) in other_files {
            let text = read_text(path)?.unwrap_or_default();
            let content = match EncryptedFile::parse(&text) {
                Some(encrypted) => {
                    let content = encrypted.decrypt(purpose, &self.key_of(&encrypted, path)?, path)?;
                    old_keys.insert(encrypted.key_id, encrypted.key);
                    content
                }
                // A record of an earlier version, which was not encrypted.
                None if serde_json::from_str::<PlainRecord>(&text).is_ok() => text.into_bytes(),
                None => continue,
            };
            records.push((path, purpose, content));
        }
        // Everything decrypts: from here on, nothing can be lost.
        let (place, key) = self.keys.create(place)?;
        if old_keys.remove(&key.id()).is_some() {
            return Err(SecretsError::SameEnvironmentKey);
        }
        let rotation = KeyRotation { place, secrets: secrets.len(), records: records.len(), leftover: None };
        let key = self.write(&secrets, Some((place, key)))?;
        for (path, purpose, content) in records {
            write_json(path, &EncryptedFile::new(purpose, &key, &content)?)?;
        }
        let mut leftover = None;
        for (id, place) in &old_keys {
            leftover = self.keys.remove(*place, id).err().or(leftover);
        }
        Ok(KeyRotation { leftover, ..rotation })
    }

    /// Changes the secrets while no other process does.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, SecretText>) -> T,
    ) -> Result<T, SecretsError> {
        let _lock = self.lock()?;
        let (before, key, is_plain) = match self.content()? {
            Content::Missing => (BTreeMap::new(), None, false),
            Content::Plain(secrets) => (secrets, None, true),
            Content::Encrypted(file) => {
                let key = (file.key, self.key_of(&file, &self.file())?);
                (self.decrypt(&file)?, Some(key), false)
            }
        };
        let mut secrets = before.clone();
        let outcome = change(&mut secrets);
        if is_plain || secrets != before {
            self.write(&secrets, key)?;
        }
        Ok(outcome)
    }

    /// Writes the secrets with a key, or with a new one; returns it.
    fn write(
        &self,
        secrets: &BTreeMap<String, SecretText>,
        key: Option<(KeyPlace, EncryptionKey)>,
    ) -> Result<(KeyPlace, EncryptionKey), SecretsError> {
        let key = key.map_or_else(|| self.keys.create(None), Ok)?;
        let file = self.file();
        let content =
            serde_json::to_vec(secrets).map_err(|error| SecretsError::io("write", &file, error.into()))?;
        write_json(&file, &EncryptedFile::new(PURPOSE, &key, &content)?)?;
        self.mark_encrypted()?;
        Ok(key)
    }

    fn mark_encrypted(&self) -> Result<(), SecretsError> {
        let marker = self.data_folder.join(ENCRYPTED_MARKER);
        if marker.exists() {
            return Ok(());
        }
        files::create_if_absent(&marker, "").map_err(|error| SecretsError::io("write", &marker, error))
    }

    /// The content of the file. One that is not encrypted is refused if there was an encrypted one: another program replaced it.
    fn content(&self) -> Result<Content, SecretsError> {
        match self.any_content()? {
            Content::Plain(_) if self.data_folder.join(ENCRYPTED_MARKER).exists() => {
                Err(SecretsError::NotEncrypted(self.file()))
            }
            content => Ok(content),
        }
    }

    fn any_content(&self) -> Result<Content, SecretsError> {
        let file = self.file();
        let Some(text) = read_text(&file)? else { return Ok(Content::Missing) };
        if let Some(encrypted) = EncryptedFile::parse(&text) {
            return Ok(Content::Encrypted(encrypted));
        }
        // The message of the parser could quote a secret.
        match serde_json::from_str(&text) {
            Ok(PlainFile { version: 1, secrets }) => Ok(Content::Plain(secrets)),
            _ => Err(SecretsError::NotSecrets(file)),
        }
    }

    fn decrypt(&self, encrypted: &EncryptedFile) -> Result<BTreeMap<String, SecretText>, SecretsError> {
        let file = self.file();
        let key = self.key_of(encrypted, &file)?;
        let content = encrypted.decrypt(PURPOSE, &key, &file)?;
        serde_json::from_slice(&content).map_err(|_| SecretsError::NotSecrets(file))
    }

    fn key_of(&self, encrypted: &EncryptedFile, file: &Path) -> Result<EncryptionKey, SecretsError> {
        self.keys.find(encrypted.key, &encrypted.key_id, file)
    }

    /// Locks a file of its own, because the file of secrets is replaced. The lock ends when the file is dropped.
    fn lock(&self) -> Result<File, SecretsError> {
        let path = self.data_folder.join(LOCK_FILE);
        let failed = |error| SecretsError::io("lock", &path, error);
        std::fs::create_dir_all(&self.data_folder).map_err(failed)?;
        let file = files::append_private(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }
}

/// The stored secrets that servers refer to, and by which servers.
pub(crate) fn referenced_secrets(
    servers: &BTreeMap<String, ServerSettings>,
) -> BTreeMap<String, Vec<String>> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (server, settings) in servers {
        for name in settings.variables() {
            if let Some(secret) = name.strip_prefix(STORED_SECRET_PREFIX) {
                used.entry(secret.to_owned()).or_default().push(server.clone());
            }
        }
    }
    used
}

fn read_text(file: &Path) -> Result<Option<String>, SecretsError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SecretsError::io("read", file, error)),
    }
}

/// Replaces a file atomically; only its owner can read it, also if it existed with wider permissions.
fn write_json(file: &Path, content: &EncryptedFile) -> Result<(), SecretsError> {
    let failed = |error| SecretsError::io("write", file, error);
    #[cfg(unix)]
    if file.exists() {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    let text = serde_json::to_string_pretty(content).map_err(|error| failed(error.into()))?;
    files::replace(file, format!("{text}\n").as_bytes(), files::Access::OwnerOnly).map_err(failed)
}

/// The system's keychain, if it is not turned off.
fn system_keychain(is_off: bool) -> Option<Arc<dyn KeyStore>> {
    (!is_off).then(|| Arc::new(keychain::Keychain) as Arc<dyn KeyStore>)
}
