//! [`SessionLeases`]: which process owns a session with a stateful server, and who has used that session.

use std::{fmt, time::Duration};

use crate::{BoxFuture, StorageError};

/// Leases in a store. One process holds a name until it releases the lease or stops renewing it. The store's clock decides.
pub trait SessionLeases: Send + Sync + fmt::Debug {
    /// Takes a lease that is free, or renews the holder's own, which is never shortened. Returns who holds it afterwards. If the
    /// answer gets lost, the same holder takes the lease again and gets the same fencing number.
    fn take_lease<'a>(
        &'a self,
        name: &'a str,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<SessionLease, StorageError>>;

    /// Renews all leases of a holder that are not over yet. Returns them; a lease that is missing was lost. A lease that another
    /// transaction locks is returned with the time that it has left, and renewed next time. A lease that the holder does not know
    /// was taken by a request whose answer got lost.
    fn renew_leases<'a>(
        &'a self,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<Vec<SessionLease>, StorageError>>;

    /// Ends a lease. Does nothing if another fencing number holds it by now.
    fn release_lease<'a>(&'a self, name: &'a str, fence: i64) -> BoxFuture<'a, Result<(), StorageError>>;

    /// The lease of a name, unless it is free.
    fn lease<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SessionLease>, StorageError>>;

    /// Records that a caller uses the session that began with this fencing number. Fails if another number holds the lease.
    fn record_session_user<'a>(
        &'a self,
        name: &'a str,
        fence: i64,
        user: &'a str,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// The callers that have used a session of this name, each with the fencing number of the latest one.
    fn session_users<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<(String, i64)>, StorageError>>;

    /// How many leases each process holds whose names begin with `prefix`, by the part of the names between it and the next slash.
    fn count_leases<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<LeaseCount>, StorageError>>;

    /// Removes leases that ended this long ago, with their users. Returns the number of leases. The fencing numbers of a removed
    /// name start again at 1, so that this must be longer than a process may act on a lease that it has lost.
    fn purge_leases(&self, older_than: Duration) -> BoxFuture<'_, Result<u64, StorageError>>;
}

/// A lease and its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLease {
    /// What is held.
    pub name: String,
    /// The process that holds it.
    pub holder: String,
    /// The fencing number: larger for each new holder of the name, and for each new lease of the same holder.
    pub fence: i64,
    /// How long the lease lasts unless it is renewed, by the store's clock.
    pub remaining: Duration,
}

/// The leases that one process holds of one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseCount {
    /// The common part of their names.
    pub subject: String,
    /// The process that holds them.
    pub holder: String,
    /// Their number.
    pub leases: u64,
}
