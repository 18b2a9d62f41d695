//! [`SessionOwners`]: takes, renews and loses the leases of sessions, and finds the owner of a session.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::{Peers, SessionLeases, StorageError};

use super::{
    held::{HeldSessions, Standing},
    placement::preferred_owner,
};

/// Sessions that are taken at the same time; more wait for each other.
const CONCURRENT_TAKES: usize = 64;

/// Sessions of other processes whose owners are remembered.
const MAX_KNOWN_OWNERS: usize = 100_000;

/// How long sessions are held.
#[derive(Debug, Clone, Copy)]
pub struct OwnershipSettings {
    /// After a process has died, others take over its sessions when this time is over.
    pub lease: Duration,
    /// A session that nobody uses for this long is released.
    pub idle: Duration,
}

impl Default for OwnershipSettings {
    fn default() -> Self {
        Self { lease: Duration::from_secs(10), idle: Duration::from_mins(15) }
    }
}

/// The sessions of this process, and what it knows of those of others.
pub struct SessionOwners {
    pub(super) peers: Arc<dyn Peers>,
    leases: Arc<dyn SessionLeases>,
    /// The name of this process in leases.
    holder: String,
    settings: OwnershipSettings,
    held: Mutex<HeldSessions>,
    /// The owners of sessions of other processes, as far as known.
    known: Mutex<HashMap<String, u64>>,
    turns: Vec<tokio::sync::Mutex<()>>,
    /// Ends what this process has of a session that it no longer owns.
    end_session: Box<dyn Fn(&str) + Send + Sync>,
}

/// Where a call must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// This process owns the session, with this fencing number.
    Here(i64),
    /// This process owns the session or may take it.
    There(u64),
}

/// Whether a caller may use a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// The session that the caller has used is gone. It counts as told when [`SessionOwners::record_told`] says so.
    SessionLost(i64),
    /// The lease ended meanwhile.
    Expired,
}

impl fmt::Debug for SessionOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOwners").field("holder", &self.holder).finish_non_exhaustive()
    }
}

impl SessionOwners {
    /// The owners of sessions, as the store's leases say. `end_session` is called with the name of each session that this process must
    /// not use any more.
    pub fn new(
        peers: Arc<dyn Peers>,
        leases: Arc<dyn SessionLeases>,
        settings: OwnershipSettings,
        end_session: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            holder: format!("{:016x}", peers.own_number()),
            peers,
            leases,
            settings,
            held: Mutex::default(),
            known: Mutex::default(),
            turns: (0..CONCURRENT_TAKES).map(|_| tokio::sync::Mutex::new(())).collect(),
            end_session: Box::new(end_session),
        })
    }

    /// Where to send a call of a session. Processes in `unreachable` were tried in vain.
    pub(super) async fn locate(&self, session: &str, unreachable: &[u64]) -> Result<Location, StorageError> {
        if let Some(fence) = lock(&self.held).valid_fence(session, Instant::now()) {
            return Ok(Location::Here(fence));
        }
        let members = self.peers.members();
        let known = lock(&self.known).get(session).copied();
        if let Some(owner) = known.filter(|owner| members.contains(owner)) {
            return Ok(Location::There(owner));
        }
        let own = self.peers.own_number();
        let candidates = members.into_iter().filter(|member| !unreachable.contains(member));
        match preferred_owner(session, candidates) {
            Some(preferred) if preferred != own => Ok(Location::There(preferred)),
            _ => self.take(session).await,
        }
    }

    /// The fencing number of a session that this process owns or takes now, or its owner.
    pub(super) async fn take(&self, session: &str) -> Result<Location, StorageError> {
        let _turn = self.turn(session).await;
        if let Some(fence) = lock(&self.held).valid_fence(session, Instant::now()) {
            return Ok(Location::Here(fence));
        }
        let asked_at = Instant::now();
        let lease = self.leases.take_lease(session, &self.holder, self.settings.lease).await?;
        if lease.holder != self.holder {
            self.lose(session);
            let owner = u64::from_str_radix(&lease.holder, 16)
                .map_err(|_| StorageError::new(format!("the lease of `{session}` has no valid holder")))?;
            self.note_owner(session, owner);
            return Ok(Location::There(owner));
        }
        if !lock(&self.held).resume(&lease, asked_at) {
            let users = self.leases.session_users(session).await?;
            // What this process had of an earlier session is not what the others have seen since.
            self.lose(session);
            lock(&self.held).begin(&lease, users.into_iter().collect(), asked_at);
            tracing::info!(session, fence = lease.fence, "session taken");
        }
        lock(&self.known).remove(session);
        Ok(Location::Here(lease.fence))
    }

    /// Nobody else in this process takes or releases the session as long as the result exists.
    async fn turn(&self, session: &str) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.turns.get(turn_index(session)) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    /// Admits a call of a caller to a session that this process owns.
    pub(super) async fn admit(
        &self,
        session: &str,
        fence: i64,
        user: &str,
    ) -> Result<Admission, StorageError> {
        let standing = lock(&self.held).standing(session, user, Instant::now());
        match standing {
            Standing::Known => return Ok(Admission::Admitted),
            Standing::New => self.leases.record_session_user(session, fence, user).await?,
            Standing::Lost => {
                // The process that the caller talks to records that it was told.
                let users = self.leases.session_users(session).await?;
                if !users.iter().any(|(known, seen)| known == user && *seen == fence) {
                    return Ok(Admission::SessionLost(fence));
                }
            }
        }
        let mut held = lock(&self.held);
        held.record_user(session, fence, user);
        // The store may have answered after the end of the lease.
        let is_valid = held.valid_fence(session, Instant::now()) == Some(fence);
        Ok(if is_valid { Admission::Admitted } else { Admission::Expired })
    }

    /// Records that a caller is being told of a lost session. Done by the process that the caller talks to, so that an answer that
    /// gets lost between processes is not the only one.
    pub(super) async fn record_told(&self, session: &str, fence: i64, user: &str) {
        if let Err(error) = self.leases.record_session_user(session, fence, user).await {
            tracing::warn!(session, %error, "a caller will be told once more that its session is lost");
        }
    }

    /// Whether this process has held a session and cannot know whether it still does, because the store does not answer. No other
    /// process can take the session then, unless the store answers that one.
    pub(super) fn held_last(&self, session: &str) -> bool {
        lock(&self.held).has(session)
    }

    pub(super) fn note_owner(&self, session: &str, owner: u64) {
        let mut known = lock(&self.known);
        if known.len() >= MAX_KNOWN_OWNERS {
            // Only a shortcut: the next call of each session asks around.
            known.clear();
        }
        known.insert(session.to_owned(), owner);
    }

    pub(super) fn forget_owner(&self, session: &str) {
        lock(&self.known).remove(session);
    }

    fn lose(&self, session: &str) {
        if lock(&self.held).remove(session).is_some() {
            tracing::warn!(session, "session lost to another process");
            (self.end_session)(session);
        }
    }

    /// Renews the leases of this process, for ever.
    pub async fn keep(self: Arc<Self>) {
        let mut interval = tokio::time::interval(self.settings.lease / 4);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.renew().await;
        }
    }

    pub(super) async fn renew(&self) {
        let asked_at = Instant::now();
        if lock(&self.held).is_empty() {
            return;
        }
        let leases = match self.leases.renew_leases(&self.holder, self.settings.lease).await {
            Ok(leases) => leases,
            Err(error) => return tracing::warn!(%error, "the leases of sessions cannot be renewed"),
        };
        let renewal = lock(&self.held).renew(&leases, asked_at, Instant::now());
        for lease in renewal.unknown {
            // It may be about to be held: the store knows of a lease before the process that takes it.
            let _turn = self.turn(&lease.name).await;
            if !self.held_last(&lease.name) {
                // A failure is repeated with the next renewal.
                let _ = self.leases.release_lease(&lease.name, lease.fence).await;
            }
        }
        for session in renewal.expired {
            // Taken again if nobody else did, as after an outage of the store.
            if let Err(error) = self.take(&session).await {
                tracing::warn!(session, %error, "the lease of a session cannot be taken again");
            }
        }
        let unused = lock(&self.held).unused_for(self.settings.idle, Instant::now());
        for session in unused {
            self.release(&session).await;
        }
    }

    async fn release(&self, session: &str) {
        let _turn = self.turn(session).await;
        let fence = lock(&self.held).remove(session);
        if let Some(fence) = fence {
            (self.end_session)(session);
            if let Err(error) = self.leases.release_lease(session, fence).await {
                tracing::warn!(session, %error, "the lease of a session cannot be released; it ends by itself");
            }
        }
    }

    /// Releases all sessions, so that others need not wait for the end of their leases.
    pub async fn release_all(&self) {
        let sessions = lock(&self.held).names();
        for session in sessions {
            self.release(&session).await;
        }
    }
}

fn turn_index(session: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    usize::try_from(hasher.finish()).unwrap_or(0) % CONCURRENT_TAKES
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
