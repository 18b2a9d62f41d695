//! Tokens on disk: one sealed file for each server, which only its owner may read and which is replaced whole or not at all.
//!
//! Why a file and not the keychain of the system: see `docs/design/0007-oauth.md`. The key lies in a file beside the tokens or
//! comes from the caller. With the key beside them, sealing protects copies of single files (backups, synchronised
//! folders), not against someone who can read the whole folder; a key from the caller protects against that too.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::{HiddenText, SealError, SealKey, seal::hex};

const VERSION: u32 = 1;
const KEY_FILE: &str = "token-key";
const MOST_BYTES: u64 = 1024 * 1024;
const LOCK_LIMIT: Duration = Duration::from_secs(40);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Why tokens could not be read or kept. A file that cannot be read is never overwritten: `toolyard servers logout NAME` is
/// the way to part with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenStoreError {
    /// The system did not let us.
    #[error("{path} could not be {what}: {reason}", path = .path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Such as `read`.
        what: &'static str,
        /// What the system says.
        reason: std::io::Error,
    },
    /// Others can read it.
    #[error("{path} can be read by others: run `chmod 600` on it, and log in again if they may have done so", path = .path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
    },
    /// It is not what we wrote.
    #[error("{path} cannot be used: {reason}", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: SealError,
    },
    /// It opens, but a later version wrote it, or it is about another server.
    #[error("{path} was written by another version of Toolyard", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another process renews the same token and does not come to an end.
    #[error("another process is busy with {path}", path = .path.display())]
    Busy {
        /// The file that is locked.
        path: PathBuf,
    },
}

/// Keeps tokens. Clones share what is kept.
#[derive(Debug, Clone)]
pub struct TokenStore(Place);

#[derive(Debug, Clone)]
enum Place {
    Folder { folder: PathBuf, key: SealKey },
    Memory(Arc<Mutex<HashMap<String, Kept>>>),
}

/// What is kept for one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    version: u32,
    /// The operator's name for the server.
    server: String,
    /// The address the tokens are for.
    pub(super) resource: String,
    /// The issuer whose token is in use.
    pub(super) current: Option<String>,
    /// What each issuer gave us. Nothing of one is ever shown to another.
    pub(super) accounts: Vec<Account>,
}

/// What one issuer gave us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) client_secret: Option<HiddenText>,
    /// What the client was registered with, where it was registered on the way.
    pub(super) redirect_uri: Option<String>,
    pub(super) access_token: HiddenText,
    pub(super) refresh_token: Option<HiddenText>,
    /// In seconds since 1970.
    pub(super) obtained_at: u64,
    /// In seconds.
    pub(super) lifetime: Option<u64>,
    pub(super) requested_scopes: Vec<String>,
    pub(super) granted_scopes: Vec<String>,
    /// The key without which the token is of no use (PKCS#8 in Base64), where it is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proof_key: Option<HiddenText>,
}

impl Account {
    /// When the token ends, in seconds since 1970, if that was said.
    pub(super) fn ends_at(&self) -> Option<u64> {
        self.lifetime.map(|lifetime| self.obtained_at.saturating_add(lifetime))
    }
}

impl Kept {
    /// The account in use, if it is for this address.
    pub(super) fn account(&self, resource: &str) -> Option<&Account> {
        let current = self.current.as_ref().filter(|_| self.resource == resource)?;
        self.accounts.iter().find(|account| account.issuer == *current)
    }

    /// What one issuer gave us for this address.
    pub(super) fn account_of(&self, resource: &str, issuer: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| self.resource == resource && account.issuer == issuer)
    }

    /// Puts an account in use. Those for another address are dropped.
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

/// The right to change what is kept for one server, over all processes, until it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    store: &'a TokenStore,
    server: &'a str,
    _lock: Option<File>,
}

impl TokenStore {
    /// Tokens in a folder, sealed with the caller's key. The folder is made when it is first needed.
    pub fn in_folder(folder: impl Into<PathBuf>, key: SealKey) -> Self {
        Self(Place::Folder { folder: folder.into(), key })
    }

    /// Tokens in a folder, sealed with a key in a file beside them, which is made if there is none.
    pub fn with_own_key(folder: impl Into<PathBuf>) -> Result<Self, TokenStoreError> {
        let folder = folder.into();
        let key = own_key(&folder)?;
        Ok(Self::in_folder(folder, key))
    }

    /// Tokens that are gone with the process.
    pub fn in_memory() -> Self {
        Self(Place::Memory(Arc::default()))
    }

    /// Parts with everything kept for a server, readable or not. Whether there was something.
    pub fn forget(&self, server: &str) -> Result<bool, TokenStoreError> {
        match &self.0 {
            Place::Memory(kept) => Ok(lock(kept).remove(server).is_some()),
            Place::Folder { folder, .. } => {
                let path = token_file(folder, server);
                match fs::remove_file(&path) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                    Err(reason) => Err(TokenStoreError::System { path, what: "removed", reason }),
                }
            }
        }
    }

    /// What is kept for a server. The files are small, so they are read in place.
    pub(super) fn load(&self, server: &str) -> Result<Option<Kept>, TokenStoreError> {
        let (folder, key) = match &self.0 {
            Place::Memory(kept) => return Ok(lock(kept).get(server).cloned()),
            Place::Folder { folder, key } => (folder, key),
        };
        let path = token_file(folder, server);
        let Some(sealed) = read_private(&path)? else { return Ok(None) };
        let opened = key
            .open(&purpose(server), &sealed)
            .map_err(|reason| TokenStoreError::Unusable { path: path.clone(), reason })?;
        match serde_json::from_slice::<Kept>(&opened) {
            Ok(kept) if kept.version == VERSION && kept.server == server => Ok(Some(kept)),
            _ => Err(TokenStoreError::Foreign { path }),
        }
    }

    /// Waits for the right to change what is kept for a server.
    pub(super) async fn hold<'a>(&'a self, server: &'a str) -> Result<Held<'a>, TokenStoreError> {
        let lock = match &self.0 {
            Place::Memory(_) => None,
            Place::Folder { folder, .. } => Some(locked(folder, server).await?),
        };
        Ok(Held { store: self, server, _lock: lock })
    }
}

impl Held<'_> {
    /// What is kept now.
    pub(super) fn load(&self) -> Result<Kept, TokenStoreError> {
        Ok(self.store.load(self.server)?.unwrap_or_default())
    }

    /// Keeps this instead. It fails if what is there cannot be read.
    pub(super) fn save(&self, mut kept: Kept) -> Result<(), TokenStoreError> {
        kept.version = VERSION;
        self.server.clone_into(&mut kept.server);
        let (folder, key) = match &self.store.0 {
            Place::Memory(place) => {
                lock(place).insert(self.server.to_owned(), kept);
                return Ok(());
            }
            Place::Folder { folder, key } => (folder, key),
        };
        self.store.load(self.server)?;
        let path = token_file(folder, self.server);
        let text = serde_json::to_vec(&kept).map_err(|error| TokenStoreError::System {
            path: path.clone(),
            what: "written",
            reason: error.into(),
        })?;
        let sealed = key
            .seal(&purpose(self.server), text)
            .map_err(|reason| TokenStoreError::Unusable { path: path.clone(), reason })?;
        write_private(&path, &sealed, |new, path| fs::rename(new, path))
    }
}

/// What a file is sealed for: one copied over that of another server does not open.
fn purpose(server: &str) -> String {
    format!("tokens of {server}")
}

/// Names of servers are the operator's, so they are not used as names of files.
fn token_file(folder: &Path, server: &str) -> PathBuf {
    let name = digest(&SHA256, server.as_bytes());
    folder.join(format!("{}.tokens", hex(name.as_ref()).get(..32).unwrap_or_default()))
}

fn own_key(folder: &Path) -> Result<SealKey, TokenStoreError> {
    let path = folder.join(KEY_FILE);
    let unusable = |reason| TokenStoreError::Unusable { path: path.clone(), reason };
    if read_private(&path)?.is_none() {
        let key = SealKey::generate().map_err(unusable)?;
        // A link fails where a file is already: of two processes one makes the key, and both then read the same.
        let link = |new: &Path, path: &Path| match fs::hard_link(new, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => fs::remove_file(new),
        };
        write_private(&path, format!("{}\n", key.to_hex()).as_bytes(), link)?;
    }
    let text = read_private(&path)?.unwrap_or_default();
    SealKey::from_hex(&String::from_utf8_lossy(&text)).map_err(unusable)
}

/// Reads a file that only its owner can read; none if there is none.
fn read_private(path: &Path) -> Result<Option<Vec<u8>>, TokenStoreError> {
    let failed = |reason| TokenStoreError::System { path: path.to_owned(), what: "read", reason };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
        return Err(TokenStoreError::OpenToOthers { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes a file that only its owner can read under another name, then puts it in place.
fn write_private(
    path: &Path,
    bytes: &[u8],
    put: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> Result<(), TokenStoreError> {
    let failed = |reason| TokenStoreError::System { path: path.to_owned(), what: "written", reason };
    make_folder(path).map_err(failed)?;
    let new = path.with_extension(format!("{:016x}.new", fastrand::u64(..)));
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        put(&new, path)
    };
    write().map_err(|error| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&new);
        failed(error)
    })
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// A lock that other processes see, beside the file: the file itself is replaced.
async fn locked(folder: &Path, server: &str) -> Result<File, TokenStoreError> {
    let path = token_file(folder, server).with_extension("lock");
    let failed = |reason| TokenStoreError::System { path: path.clone(), what: "locked", reason };
    make_folder(&path).map_err(failed)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    let end = Instant::now() + LOCK_LIMIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                return Err(TokenStoreError::Busy { path });
            }
            Err(TryLockError::WouldBlock) => sleep(LOCK_PAUSE).await,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
