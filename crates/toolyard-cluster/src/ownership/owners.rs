//! [`SessionOwners`]: takes, renews and loses the leases of sessions, and finds the owner of a session.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use toolyard_core::{BoxFuture, LeaseCount, Peers, SessionLease, SessionLeases, StorageError};

use super::{
    held::{HeldSessions, Standing},
    placement::preferred_owner,
};
use crate::CallOutcomes;

/// Sessions that are taken at the same time; more wait for each other.
const CONCURRENT_TAKES: usize = 64;

/// Sessions of other processes whose owners are remembered.
const MAX_KNOWN_OWNERS: usize = 100_000;

/// The names of sessions begin with this, followed by the server and, where callers are isolated, the caller.
pub const SESSION_PREFIX: &str = "mcp/";
/// The fencing number of the first lease of a name.
const FIRST_FENCE: i64 = 1;

/// How long the end of a session may take before another one begins.
const MAX_END: Duration = Duration::from_secs(5);
/// How often it is checked whether calls are under way.
const DRAIN_POLL: Duration = Duration::from_millis(50);

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
    end_session: EndSession,
    /// Tells whether the server may remember something in a session.
    has_state: HasState,
    /// Whether this process takes no more sessions, because it ends.
    is_closing: AtomicBool,
    /// Calls that other processes executed for this one.
    pub(super) forwarded: CallOutcomes,
    takeovers: AtomicU64,
    losses: AtomicU64,
}

/// What a process did with sessions since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnershipStatistics {
    /// The sessions that it owns now.
    pub owned: usize,
    /// Sessions that it began to own and that had an owner before: another process, or itself before it released them.
    pub takeovers: u64,
    /// Sessions that it had and that another process took.
    pub losses: u64,
}

type EndSession = Box<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;
type HasState = Box<dyn Fn(&str) -> BoxFuture<'static, bool> + Send + Sync>;

/// Where a call must go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    /// This process owns the session, with this fencing number.
    Here(i64),
    /// Another process owns the session, or should take it.
    There(u64),
}

/// Whether a caller may use a session.
#[derive(Debug)]
pub(super) enum Admission {
    /// The call may begin, and is under way as long as this exists.
    Admitted(SessionUse),
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
    /// The owners of sessions, as the store's leases say. `end_session` gets the name of each session that this process must not use any
    /// more, and completes when nothing of it is left. `has_state` gets the name of a session that another process owned, and tells whether
    /// the server may have remembered something in it.
    pub fn new(
        peers: Arc<dyn Peers>,
        leases: Arc<dyn SessionLeases>,
        settings: OwnershipSettings,
        end_session: impl Fn(&str) -> BoxFuture<'static, ()> + Send + Sync + 'static,
        has_state: impl Fn(&str) -> BoxFuture<'static, bool> + Send + Sync + 'static,
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
            has_state: Box::new(has_state),
            is_closing: AtomicBool::new(false),
            forwarded: CallOutcomes::default(),
            takeovers: AtomicU64::new(0),
            losses: AtomicU64::new(0),
        })
    }

    /// An answer of the store, or an error when it does not come within half a lease.
    async fn bounded<T>(
        &self,
        answer: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let limit = self.settings.lease / 2;
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_elapsed) => {
                Err(StorageError::with_unknown_outcome(format!("no answer within {} s", limit.as_secs_f64())))
            }
        }
    }

    /// Where to send a call of a session. Processes in `unreachable` were tried in vain.
    pub(super) async fn locate(&self, session: &str, unreachable: &[u64]) -> Result<Location, StorageError> {
        if let Some(fence) = self.held.lock().valid_fence(session, Instant::now()) {
            return Ok(Location::Here(fence));
        }
        let members = self.peers.members();
        let known = self.known.lock().get(session).copied();
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
        if let Some(fence) = self.held.lock().valid_fence(session, Instant::now()) {
            return Ok(Location::Here(fence));
        }
        let asked_at = Instant::now();
        let mut lease = self.take_lease(session).await?;
        if lease.holder != self.holder {
            self.lose(session).await;
            let owner = u64::from_str_radix(&lease.holder, 16)
                .map_err(|_| StorageError::new(format!("the lease of `{session}` has no valid holder")))?;
            self.note_owner(session, owner);
            return Ok(Location::There(owner));
        }
        if !self.held.lock().resume(&lease, asked_at) {
            // What this process had of an earlier session is not what the others have seen since.
            self.lose(session).await;
            let mut users: HashMap<String, i64> =
                self.bounded(self.leases.session_users(session)).await?.into_iter().collect();
            if users.values().any(|fence| *fence == lease.fence) {
                // A release of this process failed: callers have used a session under this number that has ended.
                self.bounded(self.leases.release_lease(session, lease.fence)).await?;
                lease = self.take_lease(session).await?;
                users.extend(self.bounded(self.leases.session_users(session)).await?);
            }
            if lease.holder != self.holder {
                return Err(StorageError::new("another process took the session meanwhile"));
            }
            self.held.lock().begin(&lease, users, asked_at);
            if lease.fence > FIRST_FENCE {
                self.takeovers.fetch_add(1, Ordering::Relaxed);
            }
            tracing::info!(session, fence = lease.fence, "session taken");
        }
        self.known.lock().remove(session);
        Ok(Location::Here(lease.fence))
    }

    async fn take_lease(&self, session: &str) -> Result<SessionLease, StorageError> {
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(StorageError::new("this process is shutting down"));
        }
        self.bounded(self.leases.take_lease(session, &self.holder, self.settings.lease)).await
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
        self: &Arc<Self>,
        session: &str,
        fence: i64,
        user: &str,
    ) -> Result<Admission, StorageError> {
        let standing = self.held.lock().standing(session, user);
        match standing {
            Standing::Known => {}
            Standing::New => self.bounded(self.leases.record_session_user(session, fence, user)).await?,
            Standing::Lost => {
                // The process that the caller talks to records that it was told.
                let users = self.bounded(self.leases.session_users(session)).await?;
                if !users.iter().any(|(known, seen)| known == user && *seen == fence) {
                    if self.has_lost_state(session).await {
                        return Ok(Admission::SessionLost(fence));
                    }
                    self.bounded(self.leases.record_session_user(session, fence, user)).await?;
                }
            }
        }
        let mut held = self.held.lock();
        held.record_user(session, fence, user);
        // The store may have answered after the end of the lease.
        if held.begin_call(session, fence, Instant::now()) {
            drop(held);
            Ok(Admission::Admitted(SessionUse { owners: Arc::clone(self), session: session.to_owned() }))
        } else {
            Ok(Admission::Expired)
        }
    }

    /// Whether state was lost with the session of the previous owner. True if there is no answer in time.
    async fn has_lost_state(&self, session: &str) -> bool {
        let answer = (self.has_state)(session);
        tokio::time::timeout(self.settings.lease / 2, answer).await.unwrap_or(true)
    }

    /// Records that a caller is being told of a lost session. Done by the process that the caller talks to, so that an answer that
    /// gets lost between processes is not the only one.
    pub(super) async fn record_told(&self, session: &str, fence: i64, user: &str) {
        if let Err(error) = self.bounded(self.leases.record_session_user(session, fence, user)).await {
            tracing::warn!(session, %error, "a caller will be told once more that its session is lost");
        }
    }

    /// Whether this caller has used a session that this process held when the store answered last. No other process can take the
    /// session without the store.
    pub(super) fn was_used_here(&self, session: &str, user: &str) -> bool {
        let held = self.held.lock();
        held.has(session) && held.standing(session, user) == Standing::Known
    }

    pub(super) fn note_owner(&self, session: &str, owner: u64) {
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN_OWNERS {
            // Only a shortcut: the next call of each session asks around.
            known.clear();
        }
        known.insert(session.to_owned(), owner);
    }

    pub(super) fn forget_owner(&self, session: &str) {
        self.known.lock().remove(session);
    }

    async fn lose(&self, session: &str) {
        let was_held = self.held.lock().remove(session).is_some();
        if was_held {
            self.losses.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(session, "session lost to another process");
            self.end(session).await;
        }
    }

    /// Ends what this process has of a session, before anybody begins a new one.
    async fn end(&self, session: &str) {
        if tokio::time::timeout(MAX_END, (self.end_session)(session)).await.is_err() {
            tracing::warn!(session, "a session that belongs to another process does not end");
        }
    }

    /// Whether this process owns a session now.
    pub fn owns(&self, session: &str) -> bool {
        self.held.lock().valid_fence(session, Instant::now()).is_some()
    }

    /// What this process did with sessions since its start.
    pub fn statistics(&self) -> OwnershipStatistics {
        OwnershipStatistics {
            owned: self.held.lock().valid_sessions(Instant::now()),
            takeovers: self.takeovers.load(Ordering::Relaxed),
            losses: self.losses.load(Ordering::Relaxed),
        }
    }

    /// The outcomes of calls that other processes executed for this one, because they own the session.
    pub fn forwarded_calls(&self) -> &CallOutcomes {
        &self.forwarded
    }

    /// How many sessions with each server the processes of the cluster own, as the store says.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn count_sessions(&self) -> Result<Vec<LeaseCount>, StorageError> {
        self.bounded(self.leases.count_leases(SESSION_PREFIX)).await
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
        if self.held.lock().is_empty() {
            return;
        }
        let renewal = self.bounded(self.leases.renew_leases(&self.holder, self.settings.lease)).await;
        let leases = match renewal {
            Ok(leases) => leases,
            Err(error) => return tracing::warn!(%error, "the leases of sessions cannot be renewed"),
        };
        let renewal = self.held.lock().renew(&leases, asked_at, Instant::now());
        for lease in renewal.unknown {
            // It may be about to be held: the store knows of a lease before the process that takes it.
            let _turn = self.turn(&lease.name).await;
            let is_held = self.held.lock().has(&lease.name);
            if !is_held {
                // A failure is repeated with the next renewal.
                let _ = self.bounded(self.leases.release_lease(&lease.name, lease.fence)).await;
            }
        }
        for session in renewal.expired {
            // Taken again if nobody else did, as after an outage of the store.
            if let Err(error) = self.take(&session).await {
                tracing::warn!(session, %error, "the lease of a session cannot be taken again");
            }
        }
        let unused = self.held.lock().unused_for(self.settings.idle, Instant::now());
        for session in unused {
            self.release_if_unused(&session, self.settings.idle).await;
        }
    }

    async fn release_if_unused(&self, session: &str, idle: Duration) {
        let _turn = self.turn(session).await;
        // It may have been used meanwhile.
        let is_unused = self.held.lock().is_unused_for(session, idle, Instant::now());
        if is_unused {
            self.release(session).await;
        }
    }

    /// Must be called in turn.
    async fn release(&self, session: &str) {
        let fence = self.held.lock().remove(session);
        if let Some(fence) = fence {
            self.end(session).await;
            if let Err(error) = self.bounded(self.leases.release_lease(session, fence)).await {
                tracing::warn!(session, %error, "the lease of a session cannot be released; it ends by itself");
            }
        }
    }

    /// Takes no more sessions, and releases those that it has when their calls have ended, at most for this long.
    pub async fn drain(&self, limit: Duration) {
        self.is_closing.store(true, Ordering::SeqCst);
        let (until, mut next_renewal) = (Instant::now() + limit, Instant::now());
        loop {
            let idle = self.held.lock().unused_for(Duration::ZERO, Instant::now());
            for session in idle {
                self.release_if_unused(&session, Duration::ZERO).await;
            }
            if self.held.lock().is_empty() || Instant::now() >= until {
                return;
            }
            if Instant::now() >= next_renewal {
                self.renew().await;
                next_renewal = Instant::now() + self.settings.lease / 4;
            }
            tokio::time::sleep(DRAIN_POLL).await;
        }
    }

    /// Whether this process takes no more sessions.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Releases all sessions, so that others need not wait for the end of their leases.
    pub async fn release_all(&self) {
        let sessions = self.held.lock().names();
        for session in sessions {
            let _turn = self.turn(&session).await;
            self.release(&session).await;
        }
    }
}

/// A call in a session of this process.
#[derive(Debug)]
pub(super) struct SessionUse {
    owners: Arc<SessionOwners>,
    session: String,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.owners.held.lock().end_call(&self.session, Instant::now());
    }
}

fn turn_index(session: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    usize::try_from(hasher.finish()).unwrap_or(0) % CONCURRENT_TAKES
}
