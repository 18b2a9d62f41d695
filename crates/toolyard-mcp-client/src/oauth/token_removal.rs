//! Removes tokens so that they stay removed.
//!
//! A renewal or a sign-in may be in progress, in this or in another process, and take as long as an authorization server likes.
//! Removals do not wait for it. Instead, its result is stored only if the tokens are still those that it began with
//! ([`SaveCondition`]); a lock that is held for an instant makes check and replacement one step.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::{ContentHash, DataOwner};

use super::{
    TokenKey, TokenStore, TokenStoreError,
    authorizer::{RenewalState, TokenManager},
    token_store::{
        Backend, MemoryTokens, ServerTokens, caller_files, create_parent_folder, read_private_file,
        remove_file, token_file, write_private_file,
    },
};

/// How often an authorizer looks whether the sign-in of its caller was removed.
pub(super) const REMOVAL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
const WRITE_LOCK_FILE: &str = "write.lock";

/// Changes with every removal of an owner's tokens: of those for one server, and of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovalMarker([Option<Vec<u8>>; 2]);

/// When tokens may be replaced.
#[derive(Debug, Clone, Copy)]
pub(super) enum SaveCondition<'a> {
    Always,
    /// The stored tokens are these.
    Unchanged(Option<&'a ServerTokens>),
    /// No tokens of the owner were removed since this marker was read.
    NotRemovedSince(&'a RemovalMarker),
}

impl SaveCondition<'_> {
    pub(super) fn is_met(
        self,
        stored: Option<&ServerTokens>,
        marker: impl FnOnce() -> Result<RemovalMarker, TokenStoreError>,
    ) -> Result<bool, TokenStoreError> {
        Ok(match self {
            Self::Always => true,
            Self::Unchanged(expected) => stored == expected,
            Self::NotRemovedSince(expected) => marker()? == *expected,
        })
    }
}

impl MemoryTokens {
    pub(super) fn marker(&self, key: &TokenKey) -> RemovalMarker {
        let scopes = [(Some(key.server.clone()), key.owner), (None, key.owner)];
        RemovalMarker(scopes.map(|scope| self.removals.get(&scope).map(|count| count.to_ne_bytes().to_vec())))
    }

    fn count_removal(&mut self, server: Option<&str>, owner: DataOwner) {
        *self.removals.entry((server.map(str::to_owned), owner)).or_default() += 1;
    }
}

impl TokenStore {
    /// Removes the tokens of an owner for a server, valid or not. Returns whether there were any. A sign-in or a renewal that is
    /// in progress does not bring them back.
    pub fn remove(&self, key: &TokenKey) -> Result<bool, TokenStoreError> {
        let folder = match &self.0 {
            Backend::Memory(memory) => {
                let mut memory = memory.lock();
                memory.count_removal(Some(&key.server), key.owner);
                return Ok(memory.tokens.remove(key).is_some());
            }
            Backend::Folder { folder, .. } => folder,
        };
        if !folder.is_dir() {
            return Ok(false);
        }
        let _lock = acquire_write_lock(folder)?;
        let marked = change_marker(&server_marker_file(folder, key));
        let existed = remove_file(token_file(folder, key))?;
        marked.map(|()| existed)
    }

    /// Removes the tokens of a caller for all servers, also for those that are not configured any more. Returns how many there
    /// were. A sign-in or a renewal that is in progress does not bring them back.
    pub fn remove_caller(&self, owner: &ContentHash) -> Result<usize, TokenStoreError> {
        let folder = match &self.0 {
            Backend::Memory(memory) => {
                let (mut memory, owner) = (memory.lock(), DataOwner::Caller(*owner));
                memory.count_removal(None, owner);
                let before = memory.tokens.len();
                memory.tokens.retain(|key, _| key.owner != owner);
                return Ok(before - memory.tokens.len());
            }
            Backend::Folder { folder, .. } => folder,
        };
        if !folder.is_dir() {
            return Ok(0);
        }
        let _lock = acquire_write_lock(folder)?;
        let marked = change_marker(&owner_marker_file(folder, DataOwner::Caller(*owner)));
        let mut removed = 0;
        for (path, _, _) in caller_files(folder)?.into_iter().filter(|(_, _, found)| found == owner) {
            removed += usize::from(remove_file(path)?);
        }
        marked.map(|()| removed)
    }

    /// The removals so far.
    pub(super) fn removal_marker(&self, key: &TokenKey) -> Result<RemovalMarker, TokenStoreError> {
        match &self.0 {
            Backend::Memory(memory) => Ok(memory.lock().marker(key)),
            Backend::Folder { folder, .. } => Ok(RemovalMarker([
                read_private_file(&server_marker_file(folder, key))?,
                read_private_file(&owner_marker_file(folder, key.owner))?,
            ])),
        }
    }
}

impl TokenManager {
    /// Whether it is time to look for a removal. Only tokens of callers are removed while a gateway uses them: those of the
    /// operator may also be in memory only.
    pub(super) fn is_removal_check_due(&self) -> bool {
        let due = |at: &Instant| at.elapsed() >= REMOVAL_CHECK_INTERVAL;
        self.server.caller.is_some() && self.removal_checked_at.lock().as_ref().is_none_or(due)
    }

    /// Drops the token of a caller whose sign-in was removed. Takes over that of a later sign-in.
    pub(super) fn check_removal(&self, state: &mut RenewalState) {
        if !self.is_removal_check_due() {
            return;
        }
        *self.removal_checked_at.lock() = Some(Instant::now());
        let stored = match self.store.load(&self.key) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(server = self.server.id, %error, "failed to check stored tokens");
                return;
            }
        };
        let Some(ours) = &state.account else { return };
        match stored.as_ref().and_then(|stored| stored.account(&self.server.resource())) {
            None => self.forget(state),
            Some(stored) if stored.obtained_at > ours.obtained_at => self.activate(state, stored.clone()),
            Some(_) => {}
        }
    }
}

/// Locks all tokens of the folder, across processes, until dropped. Never held during requests.
pub(super) fn acquire_write_lock(folder: &Path) -> Result<File, TokenStoreError> {
    let path = folder.join(WRITE_LOCK_FILE);
    let acquire = || {
        create_parent_folder(&path)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    acquire().map_err(|reason| TokenStoreError::Io { path: path.clone(), what: "locked", reason })
}

fn server_marker_file(folder: &Path, key: &TokenKey) -> PathBuf {
    token_file(folder, key).with_extension("removed")
}

fn owner_marker_file(folder: &Path, owner: DataOwner) -> PathBuf {
    match owner {
        DataOwner::Operator => folder.join("operator.removed"),
        DataOwner::Caller(owner) => folder.join(format!("{owner}.removed")),
    }
}

fn change_marker(path: &Path) -> Result<(), TokenStoreError> {
    let marker = format!("{:032x}", fastrand::u128(..));
    write_private_file(path, marker.as_bytes(), |new, path| std::fs::rename(new, path))
}
