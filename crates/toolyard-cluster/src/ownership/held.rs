//! [`HeldSessions`]: the sessions that this process owns. Pure: the time is an argument.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::SessionLease;

/// The sessions of this process.
#[derive(Debug, Default)]
pub(super) struct HeldSessions(BTreeMap<String, HeldSession>);

#[derive(Debug)]
struct HeldSession {
    fence: i64,
    /// Until when no other process can have taken the session.
    valid_until: Instant,
    /// When the latest call began or ended.
    last_used: Instant,
    /// Calls under way.
    calls: usize,
    /// The callers that have used a session of this name, with the fencing number of the latest one.
    users: HashMap<String, i64>,
}

/// What a renewal of all leases means.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Renewal {
    /// Sessions whose lease is over.
    pub(super) expired: Vec<String>,
    /// Leases that the store has for this process and that it does not use: the answer to taking them got lost.
    pub(super) unknown: Vec<SessionLease>,
}

/// How a caller stands to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has used this session before.
    Known,
    /// It is new, and must be recorded before its first call.
    New,
    /// It has used an earlier session, whose state is gone.
    Lost,
}

impl HeldSessions {
    /// The fencing number of a session that this process may act on now.
    pub(super) fn valid_fence(&self, name: &str, now: Instant) -> Option<i64> {
        self.0.get(name).filter(|session| now < session.valid_until).map(|session| session.fence)
    }

    /// Continues a session whose lease this process has taken again, if no other process had it meanwhile: each taking adds one to
    /// the fencing number.
    pub(super) fn resume(&mut self, lease: &SessionLease, asked_at: Instant) -> bool {
        let Some(session) = self.0.get_mut(&lease.name) else { return false };
        if lease.fence != session.fence && lease.fence != session.fence + 1 {
            return false;
        }
        for fence in session.users.values_mut().filter(|fence| **fence == session.fence) {
            *fence = lease.fence;
        }
        session.fence = lease.fence;
        session.valid_until = session.valid_until.max(asked_at + lease.remaining);
        true
    }

    /// Records the lease of a new session, taken by a request that was sent at `asked_at`: the store counts the remaining time from a
    /// later moment.
    pub(super) fn begin(&mut self, lease: &SessionLease, users: HashMap<String, i64>, asked_at: Instant) {
        let valid_until = asked_at + lease.remaining;
        let session = HeldSession { fence: lease.fence, valid_until, last_used: asked_at, calls: 0, users };
        self.0.insert(lease.name.clone(), session);
    }

    /// Applies a renewal of all leases.
    pub(super) fn renew(&mut self, leases: &[SessionLease], asked_at: Instant, now: Instant) -> Renewal {
        let mut renewal = Renewal::default();
        for lease in leases {
            match self.0.get_mut(&lease.name) {
                Some(session) if session.fence == lease.fence => {
                    session.valid_until = session.valid_until.max(asked_at + lease.remaining);
                }
                // Another lease of this process is being taken.
                Some(_) => {}
                None => renewal.unknown.push(lease.clone()),
            }
        }
        let expired = self.0.iter().filter(|(_, session)| session.valid_until <= now);
        renewal.expired = expired.map(|(name, _)| name.clone()).collect();
        renewal
    }

    /// How a caller stands to a session.
    pub(super) fn standing(&self, name: &str, user: &str) -> Standing {
        let Some(session) = self.0.get(name) else { return Standing::New };
        match session.users.get(user) {
            Some(fence) if *fence == session.fence => Standing::Known,
            Some(_) => Standing::Lost,
            None => Standing::New,
        }
    }

    /// Records that a caller was told, or uses the session from now on.
    pub(super) fn record_user(&mut self, name: &str, fence: i64, user: &str) {
        if let Some(session) = self.0.get_mut(name).filter(|session| session.fence == fence) {
            session.users.insert(user.to_owned(), fence);
        }
    }

    /// Begins a call in a session that this process may act on now.
    pub(super) fn begin_call(&mut self, name: &str, fence: i64, now: Instant) -> bool {
        let session = self.0.get_mut(name);
        let Some(session) = session.filter(|session| session.fence == fence && now < session.valid_until)
        else {
            return false;
        };
        session.calls += 1;
        session.last_used = now;
        true
    }

    /// Ends a call. The session may have been lost, or taken again, meanwhile.
    pub(super) fn end_call(&mut self, name: &str, now: Instant) {
        if let Some(session) = self.0.get_mut(name) {
            session.calls = session.calls.saturating_sub(1);
            session.last_used = now;
        }
    }

    /// Whether nobody used a session for this long.
    pub(super) fn is_unused_for(&self, name: &str, idle: Duration, now: Instant) -> bool {
        let is_unused =
            |session: &HeldSession| session.calls == 0 && now.duration_since(session.last_used) >= idle;
        self.0.get(name).is_some_and(is_unused)
    }

    /// The number of sessions that this process may act on now.
    pub(super) fn valid_sessions(&self, now: Instant) -> usize {
        self.0.values().filter(|session| now < session.valid_until).count()
    }

    /// Removes a session, and returns its fencing number.
    pub(super) fn remove(&mut self, name: &str) -> Option<i64> {
        self.0.remove(name).map(|session| session.fence)
    }

    /// The sessions that nobody used for this long.
    pub(super) fn unused_for(&self, idle: Duration, now: Instant) -> Vec<String> {
        self.0.keys().filter(|name| self.is_unused_for(name, idle, now)).cloned().collect()
    }

    /// The names of all sessions.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn lease(fence: i64) -> SessionLease {
        SessionLease { name: "counter".to_owned(), holder: "a".to_owned(), fence, remaining: LEASE }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_valid_as_long_as_its_lease_surely_lasts() {
        let (mut held, start) = (HeldSessions::default(), Instant::now());
        held.begin(&lease(3), HashMap::new(), start);
        assert_eq!(held.valid_fence("counter", start + LEASE / 2), Some(3));
        assert_eq!(held.valid_fence("counter", start + LEASE), None);
        let renewal = held.renew(&[lease(3)], start + LEASE / 2, start + LEASE / 2);
        assert_eq!(renewal, Renewal::default());
        assert_eq!(held.valid_fence("counter", start + LEASE), Some(3));
        // A renewal without it: still valid until its time is over.
        assert_eq!(held.renew(&[], start + LEASE, start + LEASE), Renewal::default());
        assert_eq!(held.renew(&[], start + 2 * LEASE, start + 2 * LEASE).expired, ["counter"]);
        assert_eq!(
            held.renew(&[SessionLease { name: "other".into(), ..lease(1) }], start, start).unknown.len(),
            1
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_goes_on_only_if_nobody_else_had_it() {
        let (mut held, now) = (HeldSessions::default(), Instant::now());
        held.begin(&lease(3), HashMap::from([("alice".to_owned(), 2)]), now);
        assert_eq!(held.standing("counter", "alice"), Standing::Lost);
        assert_eq!(held.standing("counter", "bob"), Standing::New);
        held.record_user("counter", 3, "bob");
        held.record_user("counter", 2, "carol");
        assert!(held.resume(&lease(4), now), "the store was away, and nobody took the lease");
        assert_eq!(held.standing("counter", "bob"), Standing::Known);
        assert_eq!(held.standing("counter", "alice"), Standing::Lost);
        assert_eq!(held.standing("counter", "carol"), Standing::New);
        assert!(!held.resume(&lease(6), now), "another process had it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_with_a_call_is_in_use() {
        let (mut held, start) = (HeldSessions::default(), Instant::now());
        held.begin(&lease(1), HashMap::new(), start);
        assert!(!held.begin_call("counter", 2, start) && !held.begin_call("counter", 1, start + LEASE));
        assert!(held.begin_call("counter", 1, start));
        assert!(held.unused_for(LEASE, start + 2 * LEASE).is_empty());
        held.end_call("counter", start + 2 * LEASE);
        assert!(held.unused_for(LEASE, start + 2 * LEASE).is_empty());
        assert_eq!(held.unused_for(LEASE, start + 3 * LEASE), ["counter"]);
    }
}
