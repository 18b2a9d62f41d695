//! [`CallerStore`]: callers with API keys, in a store that all gateways share.

use std::{collections::BTreeMap, fmt};

use parking_lot::{Mutex, MutexGuard};

use crate::{BoxFuture, StorageError, unix_millis};

/// An API key as it is stored: without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// Identifies the key; part of what the caller presents.
    pub id: String,
    /// The SHA-256 hash of the secret part, which has 256 random bits: too many to be guessed from the hash.
    pub secret_hash: [u8; 32],
    /// When the key expires, in milliseconds since 1970.
    pub expires_at: Option<i64>,
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKey")
            .field("id", &self.id)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A caller with an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCaller {
    /// The name. It is never given to another caller, because sessions, conversations and audit records belong to it.
    pub name: String,
    /// The current key.
    pub key: StoredKey,
    /// The profiles that the caller may use, the main endpoint being the empty name; `None` for all.
    pub allowed_profiles: Option<Vec<String>>,
    /// The agents that the caller may use; `None` for all.
    pub allowed_agents: Option<Vec<String>>,
    /// When the caller was added, in milliseconds since 1970.
    pub created_at: i64,
    /// When the caller was revoked, in milliseconds since 1970.
    pub revoked_at: Option<i64>,
}

impl StoredCaller {
    /// Whether the key is accepted at this time, in milliseconds since 1970.
    pub fn is_valid_at(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.key.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// Stores callers with API keys. `by` says who makes a change, for the audit log.
pub trait CallerStore: Send + Sync {
    /// All callers by name, including revoked ones.
    fn callers(&self) -> BoxFuture<'_, Result<Vec<StoredCaller>, StorageError>>;

    /// Adds a caller. Returns false if there is or was one of this name.
    fn add_caller<'a>(
        &'a self,
        caller: &'a StoredCaller,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// Replaces the key of a caller, which makes the previous one invalid. Returns false if there is no caller of this name, or if it
    /// is revoked.
    fn replace_caller_key<'a>(
        &'a self,
        name: &'a str,
        key: &'a StoredKey,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>>;

    /// Revokes a caller for ever. Returns false if there is no caller of this name, or if it is revoked already.
    fn revoke_caller<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>>;
}

/// Callers in memory, for embedders without a durable store.
#[derive(Debug, Default)]
pub struct MemoryCallerStore(Mutex<BTreeMap<String, StoredCaller>>);

impl MemoryCallerStore {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, StoredCaller>> {
        self.0.lock()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut StoredCaller)) -> bool {
        let mut callers = self.lock();
        match callers.get_mut(name).filter(|caller| caller.revoked_at.is_none()) {
            Some(caller) => {
                change(caller);
                true
            }
            None => false,
        }
    }
}

impl CallerStore for MemoryCallerStore {
    fn callers(&self) -> BoxFuture<'_, Result<Vec<StoredCaller>, StorageError>> {
        let callers = self.lock().values().cloned().collect();
        Box::pin(std::future::ready(Ok(callers)))
    }

    fn add_caller<'a>(
        &'a self,
        caller: &'a StoredCaller,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let mut callers = self.lock();
        let is_new = !callers.contains_key(&caller.name);
        if is_new {
            callers.insert(caller.name.clone(), caller.clone());
        }
        Box::pin(std::future::ready(Ok(is_new)))
    }

    fn replace_caller_key<'a>(
        &'a self,
        name: &'a str,
        key: &'a StoredKey,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let is_replaced = self.change(name, |caller| caller.key = key.clone());
        Box::pin(std::future::ready(Ok(is_replaced)))
    }

    fn revoke_caller<'a>(&'a self, name: &'a str, _: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        let is_revoked = self.change(name, |caller| caller.revoked_at = Some(unix_millis()));
        Box::pin(std::future::ready(Ok(is_revoked)))
    }
}
