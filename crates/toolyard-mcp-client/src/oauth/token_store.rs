//! Tokens on disk: one encrypted file per server and owner of the tokens, readable by this user only and replaced atomically.
//!
//! `docs/design/0007-oauth.md` explains why this is not the system keychain. The key is in a file beside the tokens or comes
//! from the caller. A key file protects copies of single files (backups, synchronized folders), not the whole folder; a
//! key from the caller protects that, too.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use toolyard_core::{ContentHash, DataOwner};

use super::token_removal::{SaveCondition, acquire_write_lock};
use crate::{
    SecretText,
    encryption::{EncryptionError, EncryptionKey, hex},
};

const FILE_VERSION: u32 = 1;
const KEY_FILE: &str = "token-key";
const MAX_FILE_BYTES: u64 = 1024 * 1024;
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Why tokens could not be loaded or stored. An invalid file is never overwritten; `toolyard servers logout NAME` removes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum TokenStoreError {
    /// The file with the tokens of a server could not be read or written.
    ///
    /// Remedy: check the permissions of the file and its folder, and the free space of the disk.
    #[error("{path} could not be {what}: {reason}", path = .path.display())]
    Io {
        path: PathBuf,
        /// The operation, such as `read`.
        what: &'static str,
        reason: std::io::Error,
    },
    /// Other users of this machine can read the file with tokens.
    ///
    /// Remedy: run `chmod 600` on the file; if somebody may have read it, sign in again: `toolyard servers login NAME`.
    #[error("{path} is readable by other users: run `chmod 600` on it, and log in again if it may have leaked", path = .path.display())]
    InsecurePermissions { path: PathBuf },
    /// The file with tokens does not decrypt.
    ///
    /// Remedy: remove the file, then sign in again: `toolyard servers login NAME`.
    #[error("{path} cannot be used: {reason}", path = .path.display())]
    Undecryptable { path: PathBuf, reason: EncryptionError },
    /// A later version of Toolyard wrote the file with tokens.
    ///
    /// Remedy: update Toolyard, or remove the file and sign in again: `toolyard servers login NAME`.
    #[error("{path} was written by another version of Toolyard", path = .path.display())]
    UnsupportedFile { path: PathBuf },
    /// Another Toolyard process holds the file with tokens for too long.
    ///
    /// Remedy: retry; if it stays, end the process that hangs.
    #[error("{path} is locked by another process", path = .path.display())]
    Locked { path: PathBuf },
}

/// Stores tokens. Clones share them.
#[derive(Debug, Clone)]
pub struct TokenStore(pub(super) Backend);

#[derive(Debug, Clone)]
pub(super) enum Backend {
    Folder { folder: PathBuf, key: EncryptionKey },
    Memory(Arc<Mutex<MemoryTokens>>),
}

#[derive(Debug, Default)]
pub(super) struct MemoryTokens {
    pub(super) tokens: HashMap<TokenKey, ServerTokens>,
    /// How often tokens were removed: those for one server, or all of an owner.
    pub(super) removals: HashMap<(Option<String>, DataOwner), u64>,
}

/// Whose tokens for which server. Tokens of one owner are never used for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenKey {
    pub(super) server: String,
    pub(super) owner: DataOwner,
}

impl TokenKey {
    /// The tokens of an owner for a server, which has the operator's name for it.
    pub fn new(server: impl Into<String>, owner: DataOwner) -> Self {
        Self { server: server.into(), owner }
    }
}

/// The operator's tokens.
impl From<&str> for TokenKey {
    fn from(server: &str) -> Self {
        Self::new(server, DataOwner::Operator)
    }
}

/// A caller whose tokens for a server are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSignIn {
    /// Identifies the caller.
    pub owner: ContentHash,
    /// The caller's name when it signed in; `None` if the file cannot be read.
    pub caller: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ServerTokens {
    version: u32,
    /// The operator's name for the server.
    server: String,
    /// Whose tokens these are ([`DataOwner::as_text`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    owner: String,
    /// The name of the caller whose tokens these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) caller: Option<String>,
    /// The resource that the tokens are issued for.
    pub(super) resource: String,
    /// The issuer of the token in use.
    pub(super) current: Option<String>,
    /// One account per issuer. No issuer sees the account of another.
    #[serde(deserialize_with = "usable_accounts")]
    pub(super) accounts: Vec<Account>,
}

/// Tokens and client registration at one issuer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) client_secret: Option<SecretText>,
    /// Set if the client was registered dynamically.
    pub(super) redirect_uri: Option<String>,
    pub(super) access_token: SecretText,
    pub(super) refresh_token: Option<SecretText>,
    /// In seconds since the Unix epoch.
    pub(super) obtained_at: u64,
    /// In seconds.
    pub(super) lifetime: Option<u64>,
    pub(super) requested_scopes: Vec<String>,
    pub(super) granted_scopes: Vec<String>,
}

/// Without accounts of earlier versions whose tokens are bound to a key (DPoP): they need a new login.
fn usable_accounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Account>, D::Error> {
    let mut accounts = Vec::<Value>::deserialize(deserializer)?;
    accounts.retain(|account| account.get("proof_key").is_none_or(Value::is_null));
    serde_json::from_value(Value::Array(accounts)).map_err(D::Error::custom)
}

impl Account {
    /// When the token expires, in seconds since the Unix epoch, if known.
    pub(super) fn expires_at(&self) -> Option<u64> {
        self.lifetime.map(|lifetime| self.obtained_at.saturating_add(lifetime))
    }
}

/// Seconds since the Unix epoch; tokens outlive processes, so their age is measured by the wall clock.
pub(super) fn unix_seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

impl ServerTokens {
    /// The account in use, if it is for this resource.
    pub(super) fn account(&self, resource: &str) -> Option<&Account> {
        let current = self.current.as_ref().filter(|_| self.resource == resource)?;
        self.accounts.iter().find(|account| account.issuer == *current)
    }

    /// The account at an issuer for this resource.
    pub(super) fn account_at(&self, resource: &str, issuer: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| self.resource == resource && account.issuer == issuer)
    }

    /// Makes an account the current one. Accounts for another resource are removed.
    pub(super) fn put(&mut self, resource: &str, account: Account) {
        if self.resource != resource {
            self.accounts.clear();
            resource.clone_into(&mut self.resource);
        }
        self.accounts.retain(|other| other.issuer != account.issuer);
        self.current = Some(account.issuer.clone());
        self.accounts.push(account);
    }
}

/// The lock on the tokens of one server, across processes, until dropped. It is held during requests to authorization servers, and
/// does not delay removals.
#[derive(Debug)]
pub(super) struct LockedTokens<'a> {
    store: &'a TokenStore,
    key: &'a TokenKey,
    _lock: Option<File>,
}

impl TokenStore {
    /// Tokens in a folder, encrypted with this key. The folder is created when first needed.
    pub fn in_folder(folder: impl Into<PathBuf>, key: EncryptionKey) -> Self {
        Self(Backend::Folder { folder: folder.into(), key })
    }

    /// Tokens in a folder, encrypted with a key file in it, which is created if missing.
    pub fn with_key_file(folder: impl Into<PathBuf>) -> Result<Self, TokenStoreError> {
        let folder = folder.into();
        let key = load_or_create_key(&folder)?;
        Ok(Self::in_folder(folder, key))
    }

    /// Tokens that last until the process ends.
    pub fn in_memory() -> Self {
        Self(Backend::Memory(Arc::default()))
    }

    /// The callers with tokens for a server.
    pub fn sign_ins(&self, server: &str) -> Result<Vec<StoredSignIn>, TokenStoreError> {
        let mut owners: Vec<ContentHash> = match &self.0 {
            Backend::Memory(tokens) => {
                let owner = |key: &TokenKey| match key.owner {
                    DataOwner::Caller(owner) if key.server == server => Some(owner),
                    _ => None,
                };
                tokens.lock().tokens.keys().filter_map(owner).collect()
            }
            Backend::Folder { folder, .. } => {
                let prefix = server_file_name(server);
                let files = caller_files(folder)?.into_iter();
                files.filter(|(_, server, _)| *server == prefix).map(|(_, _, owner)| owner).collect()
            }
        };
        owners.sort_unstable();
        let sign_in = |owner| {
            let stored = self.load(&TokenKey::new(server, DataOwner::Caller(owner))).ok().flatten();
            StoredSignIn { owner, caller: stored.and_then(|stored| stored.caller) }
        };
        Ok(owners.into_iter().map(sign_in).collect())
    }

    /// The tokens of an owner for a server. Blocks; the files are small.
    pub(super) fn load(&self, key: &TokenKey) -> Result<Option<ServerTokens>, TokenStoreError> {
        let (folder, encryption) = match &self.0 {
            Backend::Memory(tokens) => return Ok(tokens.lock().tokens.get(key).cloned()),
            Backend::Folder { folder, key } => (folder, key),
        };
        let path = token_file(folder, key);
        let Some(encrypted) = read_private_file(&path)? else { return Ok(None) };
        let decrypted = encryption
            .decrypt(&encryption_context(key), &encrypted)
            .map_err(|reason| TokenStoreError::Undecryptable { path: path.clone(), reason })?;
        match serde_json::from_slice::<ServerTokens>(&decrypted) {
            Ok(tokens)
                if tokens.version == FILE_VERSION
                    && tokens.server == key.server
                    && tokens.owner == key.owner.as_text() =>
            {
                Ok(Some(tokens))
            }
            _ => Err(TokenStoreError::UnsupportedFile { path }),
        }
    }

    pub(super) async fn lock<'a>(&'a self, key: &'a TokenKey) -> Result<LockedTokens<'a>, TokenStoreError> {
        let lock = match &self.0 {
            Backend::Memory(_) => None,
            Backend::Folder { folder, .. } => Some(acquire_file_lock(folder, key).await?),
        };
        Ok(LockedTokens { store: self, key, _lock: lock })
    }
}

impl LockedTokens<'_> {
    pub(super) fn load(&self) -> Result<Option<ServerTokens>, TokenStoreError> {
        self.store.load(self.key)
    }

    /// Replaces the tokens, if the condition is met; returns whether it was. Fails if the existing file is invalid. No removal
    /// happens between the check and the replacement.
    pub(super) fn save(
        &self,
        mut tokens: ServerTokens,
        condition: SaveCondition<'_>,
    ) -> Result<bool, TokenStoreError> {
        tokens.version = FILE_VERSION;
        self.key.server.clone_into(&mut tokens.server);
        tokens.owner = self.key.owner.as_text().into_owned();
        let (folder, encryption) = match &self.store.0 {
            Backend::Memory(memory) => {
                let mut memory = memory.lock();
                let is_met = condition.is_met(memory.tokens.get(self.key), || Ok(memory.marker(self.key)))?;
                if is_met {
                    memory.tokens.insert(self.key.clone(), tokens);
                }
                return Ok(is_met);
            }
            Backend::Folder { folder, key } => (folder, key),
        };
        let _lock = acquire_write_lock(folder)?;
        let existing = self.store.load(self.key)?;
        if !condition.is_met(existing.as_ref(), || self.store.removal_marker(self.key))? {
            return Ok(false);
        }
        let path = token_file(folder, self.key);
        let text = serde_json::to_vec(&tokens).map_err(|error| TokenStoreError::Io {
            path: path.clone(),
            what: "written",
            reason: error.into(),
        })?;
        let encrypted = encryption
            .encrypt(&encryption_context(self.key), text)
            .map_err(|reason| TokenStoreError::Undecryptable { path: path.clone(), reason })?;
        write_private_file(&path, &encrypted, |new, path| fs::rename(new, path))?;
        Ok(true)
    }
}

/// Binds a file to its server and owner: a copy does not decrypt for another one.
fn encryption_context(key: &TokenKey) -> String {
    match key.owner {
        DataOwner::Operator => format!("tokens of {}", key.server),
        DataOwner::Caller(owner) => format!("tokens of caller {owner} for {}", key.server),
    }
}

/// Server names may contain anything, so file names are hashes. Those of callers' tokens end with the owner, so that all tokens of
/// a caller can be found.
pub(super) fn token_file(folder: &Path, key: &TokenKey) -> PathBuf {
    let server = server_file_name(&key.server);
    match key.owner {
        DataOwner::Operator => folder.join(format!("{server}.tokens")),
        DataOwner::Caller(owner) => folder.join(format!("{server}.{owner}.tokens")),
    }
}

fn server_file_name(server: &str) -> String {
    let name = digest(&SHA256, server.as_bytes());
    hex(name.as_ref()).get(..32).unwrap_or_default().to_owned()
}

/// The files with tokens of callers: path, name of the server's file, and owner.
pub(super) fn caller_files(folder: &Path) -> Result<Vec<(PathBuf, String, ContentHash)>, TokenStoreError> {
    let failed = |reason| TokenStoreError::Io { path: folder.to_owned(), what: "read", reason };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".tokens"));
        let Some((server, owner)) = name.and_then(|name| name.split_once('.')) else { continue };
        if let Ok(owner) = owner.parse() {
            files.push((path.clone(), server.to_owned(), owner));
        }
    }
    Ok(files)
}

pub(super) fn remove_file(path: PathBuf) -> Result<bool, TokenStoreError> {
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(reason) => Err(TokenStoreError::Io { path, what: "removed", reason }),
    }
}

fn load_or_create_key(folder: &Path) -> Result<EncryptionKey, TokenStoreError> {
    let path = folder.join(KEY_FILE);
    let unusable = |reason| TokenStoreError::Undecryptable { path: path.clone(), reason };
    if read_private_file(&path)?.is_none() {
        let key = EncryptionKey::generate().map_err(unusable)?;
        // Linking fails if the file exists, so concurrent processes end up with one key.
        let link = |new: &Path, path: &Path| match fs::hard_link(new, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => fs::remove_file(new),
        };
        write_private_file(&path, format!("{}\n", key.to_hex()).as_bytes(), link)?;
    }
    let text = read_private_file(&path)?.unwrap_or_default();
    EncryptionKey::from_hex(&String::from_utf8_lossy(&text)).map_err(unusable)
}

/// Reads a file that only its owner can read; `None` if it is missing.
pub(super) fn read_private_file(path: &Path) -> Result<Option<Vec<u8>>, TokenStoreError> {
    let failed = |reason| TokenStoreError::Io { path: path.to_owned(), what: "read", reason };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
        return Err(TokenStoreError::InsecurePermissions { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes a file that only its owner can read, under a temporary name, then moves it into place.
pub(super) fn write_private_file(
    path: &Path,
    bytes: &[u8],
    move_into_place: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> Result<(), TokenStoreError> {
    let failed = |reason| TokenStoreError::Io { path: path.to_owned(), what: "written", reason };
    create_parent_folder(path).map_err(failed)?;
    let temporary = path.with_extension(format!("{:016x}.new", fastrand::u64(..)));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        move_into_place(&temporary, path)
    };
    write().map_err(|error| {
        // The first error is reported.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

pub(super) fn create_parent_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// Locks a file beside the token file, because the token file itself is replaced.
async fn acquire_file_lock(folder: &Path, key: &TokenKey) -> Result<File, TokenStoreError> {
    let path = token_file(folder, key).with_extension("lock");
    let failed = |reason| TokenStoreError::Io { path: path.clone(), what: "locked", reason };
    create_parent_folder(&path).map_err(failed)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(TokenStoreError::Locked { path });
            }
            Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY_DELAY).await,
        }
    }
}

#[cfg(test)]
#[path = "token_store_tests.rs"]
mod tests;
