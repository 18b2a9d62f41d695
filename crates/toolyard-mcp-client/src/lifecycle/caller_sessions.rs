//! Further sessions of a server whose input requests do not tell which caller they are for, or whose tool needs another revision
//! family than that of the usual session.
//!
//! A legacy server sends its input requests on a stream that all calls of a session share. While calls of several callers
//! are in flight in one session, nothing tells whom such a request is for. So a call gets a session in which no other
//! caller can be meant: the usual one if that is free, else a further one, as if the caller had started the server itself.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{Caller, ContentHash, RevisionFamily};

use crate::{
    content::server_content::ContentLists,
    lifecycle::{
        connect::{ConnectOptions, connect},
        connect_error::ConnectError,
        server::ManagedServer,
        supervisor::CHANGE_DEBOUNCE,
    },
    pinning::definition_hashes,
    session::{client_capabilities::can_be_asked, error::RequestError, handle::Session},
};

/// Sessions beside the usual one.
const MAX_FURTHER_SESSIONS: usize = 4;
/// A further session that was not used for this long is closed.
const FURTHER_SESSION_IDLE: Duration = Duration::from_secs(120);
/// After a further session could not be started, no other one is tried for this long.
const FAILED_START_PAUSE: Duration = Duration::from_secs(60);
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a further session may take to announce tools that its first list lacks.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// Stands for calls without a caller.
const NO_CALLER: u64 = u64::MAX;

/// The session and the client of a caller, see [`Caller::client_id`].
#[derive(Debug, Clone, Copy)]
struct CallerIds {
    session: u64,
    client: u64,
}

impl CallerIds {
    fn of(caller: Option<&Arc<dyn Caller>>) -> Self {
        caller.map_or(Self { session: NO_CALLER, client: NO_CALLER }, |caller| Self {
            session: caller.session_id(),
            client: caller.client_id(),
        })
    }
}

/// The sessions of a server with the callers that use each.
#[derive(Debug, Default)]
pub(super) struct CallerSessions {
    slots: Vec<Slot>,
    starting: usize,
    paused_until: Option<Instant>,
}

#[derive(Debug)]
struct Slot {
    session: Arc<Session>,
    /// Whether it is a further session, which ends when it is idle.
    is_further: bool,
    occupants: Occupants,
    /// The client that used it last, which finds there what it left.
    last_client: Option<u64>,
    last_used: Instant,
}

/// The callers with calls in one session.
#[derive(Debug, Default)]
struct Occupants(HashMap<u64, Occupant>);

#[derive(Debug, Default, Clone, Copy)]
struct Occupant {
    calls: usize,
    can_be_asked: bool,
}

impl Occupants {
    /// Whether an input request during a call of this caller could be meant for another one, or the reverse. `abandoned`
    /// are clients that gave up a call a moment ago, which the server may not know yet.
    fn conflict_with(&self, caller: CallerIds, can_be_asked: bool, abandoned: &[u64]) -> bool {
        let is_other =
            |(id, other): (&u64, &Occupant)| *id != caller.session && (can_be_asked || other.can_be_asked);
        self.0.iter().any(is_other)
            || (can_be_asked && abandoned.iter().any(|client| *client != caller.client))
    }

    fn enter(&mut self, caller: u64, can_be_asked: bool) {
        let occupant = self.0.entry(caller).or_default();
        occupant.calls += 1;
        occupant.can_be_asked = can_be_asked;
    }

    fn leave(&mut self, caller: u64) {
        if let Some(occupant) = self.0.get_mut(&caller) {
            occupant.calls = occupant.calls.saturating_sub(1);
            if occupant.calls == 0 {
                self.0.remove(&caller);
            }
        }
    }
}

/// The session of one call.
#[derive(Debug)]
pub(super) struct CallSession {
    pub(super) session: Arc<Session>,
    _occupancy: Option<Occupancy>,
}

/// A call's use of a session, until it is dropped.
#[derive(Debug)]
struct Occupancy {
    server: Arc<ManagedServer>,
    session: Arc<Session>,
    caller: u64,
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        self.server.state.lock().caller_sessions.leave(&self.session, self.caller);
    }
}

impl CallSession {
    /// The only session of a private instance.
    pub(super) fn of_private(session: Arc<Session>) -> Self {
        Self { session, _occupancy: None }
    }
}

impl CallerSessions {
    /// Enters a session of this family in which no other caller can be meant; none if there is none.
    fn enter(
        &mut self,
        usual: &Arc<Session>,
        family: RevisionFamily,
        caller: CallerIds,
        can_be_asked: bool,
    ) -> Option<Arc<Session>> {
        let now = Instant::now();
        self.slots.retain(|slot| {
            !slot.occupants.0.is_empty() || slot.is_further || Arc::ptr_eq(&slot.session, usual)
        });
        if !self.slots.iter().any(|slot| Arc::ptr_eq(&slot.session, usual)) {
            self.slots.push(Slot::new(usual, false, now));
        }
        let is_usable = |slot: &Slot| {
            (slot.is_further || Arc::ptr_eq(&slot.session, usual))
                && slot.session.revision_family() == family
                && slot.session.closed().is_none()
                // In the modern family, input requests are in the results of the calls that they are for.
                && (family == RevisionFamily::Modern
                    || !slot.occupants.conflict_with(
                        caller,
                        can_be_asked,
                        &slot.session.clients_of_abandoned_calls(),
                    ))
        };
        // The one it used last, then the usual one, then any.
        let rank = |slot: &Slot| (slot.last_client != Some(caller.client), slot.is_further);
        let slot = self.slots.iter_mut().filter(|slot| is_usable(slot)).min_by_key(|slot| rank(slot))?;
        Some(slot.enter(caller, can_be_asked, now))
    }

    /// Enters the usual session although another caller may be meant there.
    fn enter_usual(&mut self, usual: &Arc<Session>, caller: CallerIds, can_be_asked: bool) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| Arc::ptr_eq(&slot.session, usual)) {
            slot.enter(caller, can_be_asked, Instant::now());
        }
    }

    fn leave(&mut self, session: &Arc<Session>, caller: u64) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| Arc::ptr_eq(&slot.session, session)) {
            slot.occupants.leave(caller);
            slot.last_used = Instant::now();
        }
    }

    /// Whether a further session may be started; counts it as starting.
    fn begin_start(&mut self) -> bool {
        self.slots.retain(|slot| slot.session.closed().is_none() || !slot.occupants.0.is_empty());
        let further = self.slots.iter().filter(|slot| slot.is_further).count();
        let is_paused = self.paused_until.is_some_and(|until| Instant::now() < until);
        let may_start = !is_paused && further + self.starting < MAX_FURTHER_SESSIONS;
        self.starting += usize::from(may_start);
        may_start
    }

    /// Removes a further session, and returns it if it was there.
    pub(super) fn remove(&mut self, session: &Arc<Session>) -> Option<Arc<Session>> {
        let at = self.slots.iter().position(|slot| slot.is_further && Arc::ptr_eq(&slot.session, session))?;
        Some(self.slots.swap_remove(at).session)
    }

    /// Removes all further sessions.
    pub(super) fn take_all(&mut self) -> Vec<Arc<Session>> {
        let slots = std::mem::take(&mut self.slots).into_iter();
        slots.filter(|slot| slot.is_further).map(|slot| slot.session).collect()
    }

    /// Whether a call is in flight in a further session.
    pub(super) fn has_calls(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_further && slot.session.in_flight_requests() > 0)
    }

    /// When a further session becomes idle for too long; none if it is gone.
    fn idle_at(&self, session: &Arc<Session>) -> Option<Instant> {
        let slot = self.slots.iter().find(|slot| Arc::ptr_eq(&slot.session, session))?;
        let is_used = !slot.occupants.0.is_empty();
        Some(if is_used { Instant::now() } else { slot.last_used } + FURTHER_SESSION_IDLE)
    }
}

impl Slot {
    fn new(session: &Arc<Session>, is_further: bool, now: Instant) -> Self {
        let session = Arc::clone(session);
        Self { session, is_further, occupants: Occupants::default(), last_client: None, last_used: now }
    }

    fn enter(&mut self, caller: CallerIds, can_be_asked: bool, now: Instant) -> Arc<Session> {
        self.occupants.enter(caller.session, can_be_asked);
        (self.last_client, self.last_used) = (Some(caller.client), now);
        Arc::clone(&self.session)
    }
}

impl ManagedServer {
    /// The session for a call of a tool: the usual one, or a further one if the tool needs another revision family, or if another
    /// caller uses the usual one and an input request there would not tell whom it is for.
    pub(super) async fn session_for_call(
        self: &Arc<Self>,
        usual: Arc<Session>,
        caller: Option<&Arc<dyn Caller>>,
        (tool, pin): (&str, ContentHash),
    ) -> CallSession {
        let needs_modern = self.state.lock().modern_tools.contains(tool);
        let family = if needs_modern { RevisionFamily::Modern } else { usual.revision_family() };
        let usual_fits = family == usual.revision_family() && !Self::needs_caller_sessions(&usual);
        if self.config.exclusive || usual_fits {
            return CallSession { session: usual, _occupancy: None };
        }
        let ids = CallerIds::of(caller);
        let can_be_asked = caller.is_some_and(|caller| can_be_asked(&caller.capabilities()));
        let occupy = |session: &Arc<Session>| {
            let occupancy =
                Occupancy { server: Arc::clone(self), session: Arc::clone(session), caller: ids.session };
            CallSession { session: Arc::clone(session), _occupancy: Some(occupancy) }
        };
        let (entered, may_start) = {
            let sessions = &mut self.state.lock().caller_sessions;
            let entered = sessions.enter(&usual, family, ids, can_be_asked);
            let may_start = entered.is_none() && sessions.begin_start();
            (entered, may_start)
        };
        if let Some(session) = entered {
            let place = occupy(&session);
            if Arc::ptr_eq(&session, &usual)
                || self.has_definition(&session, tool, pin).await.unwrap_or(false)
            {
                return place;
            }
        } else if may_start && let Some(session) = self.start_further_session(family).await {
            let mut slot = Slot::new(&session, true, Instant::now());
            slot.enter(ids, can_be_asked, Instant::now());
            self.state.lock().caller_sessions.slots.push(slot);
            // A session of another family lists tools by other rules; the usual one hears of changes, too.
            if family == usual.revision_family() {
                self.follow_changes(&session);
            }
            self.close_when_idle(&session);
            let place = occupy(&session);
            if self.has_definition(&session, tool, pin).await.unwrap_or(false) {
                return place;
            }
        }
        // Better than no call; an input request that may be for another caller is refused.
        self.state.lock().caller_sessions.enter_usual(&usual, ids, can_be_asked);
        occupy(&usual)
    }

    /// Whether input requests of this session may not tell which call they belong to. Over Streamable HTTP they usually
    /// come on the stream of the call.
    fn needs_caller_sessions(session: &Session) -> bool {
        session.revision_family() == RevisionFamily::Legacy
            && (!session.relates_requests() || session.has_unrelated_requests())
    }

    async fn start_further_session(self: &Arc<Self>, family: RevisionFamily) -> Option<Arc<Session>> {
        // Counts the start until it ends, even if the caller gives up.
        struct StartCount<'a>(&'a ManagedServer);
        impl Drop for StartCount<'_> {
            fn drop(&mut self) {
                let sessions = &mut self.0.state.lock().caller_sessions;
                sessions.starting = sessions.starting.saturating_sub(1);
            }
        }
        let _count = StartCount(self);
        match self.connect_further_session(family).await {
            // The family is a wish that a server may not fulfil.
            Ok(session) if session.revision_family() != family => {
                tracing::warn!(server = %self.config.id, ?family, "the server opened no session of this revision family");
                session.close().await;
                self.state.lock().caller_sessions.paused_until = Some(Instant::now() + FAILED_START_PAUSE);
                None
            }
            Ok(session) => {
                tracing::info!(server = %self.config.id, ?family, "started a further session, for another client or for a tool that needs this revision family");
                Some(session)
            }
            Err(error) => {
                tracing::warn!(server = %self.config.id, %error, "failed to start a further session");
                self.state.lock().caller_sessions.paused_until = Some(Instant::now() + FAILED_START_PAUSE);
                None
            }
        }
    }

    async fn connect_further_session(&self, family: RevisionFamily) -> Result<Arc<Session>, ConnectError> {
        let (target, options) = self.connect_target(None).await?;
        let options = ConnectOptions { revision_family: Some(family), ..options };
        let session = Arc::new(connect(target, &options).await?);
        let level = self.shared.log_level.lock().clone();
        if let Some(level) = level {
            session.set_log_level(&level).await;
        }
        Ok(session)
    }

    /// Whether a further session, or that of a private instance, offers the tool with the approved definition. A server may announce some of its tools only
    /// after its start.
    pub(super) async fn has_definition(
        &self,
        session: &Arc<Session>,
        tool: &str,
        pin: ContentHash,
    ) -> Result<bool, RequestError> {
        if session.checked_definition(tool) == Some(pin) {
            return Ok(true);
        }
        let mut status = session.status();
        loop {
            status.borrow_and_update();
            let tools = session.list_tools(LIST_TIMEOUT).await?;
            let hashes = definition_hashes(&self.config, session.revision_family(), &tools);
            let is_offered = hashes.get(tool) == Some(&pin);
            session.set_checked_definitions(hashes);
            if is_offered {
                return Ok(true);
            }
            if !matches!(timeout(ANNOUNCEMENT_TIMEOUT, status.changed()).await, Ok(Ok(()))) {
                return Ok(false);
            }
        }
    }

    /// Refreshes lists that the server says have changed in a further session, until that ends. Its definitions are checked like
    /// those of the usual session, and clients are told of the change.
    fn follow_changes(self: &Arc<Self>, session: &Arc<Session>) {
        let (server, session) = (Arc::downgrade(self), Arc::clone(session));
        tokio::spawn(async move {
            let mut status = session.status();
            let mut handled = status.borrow_and_update().clone();
            let mut is_complete = false;
            while status.changed().await.is_ok() {
                sleep(CHANGE_DEBOUNCE).await;
                let current = status.borrow_and_update().clone();
                let Some(server) = server.upgrade() else { return };
                if current.closed.is_some() {
                    break;
                }
                // A server that has just started may announce its tools one by one.
                let lists_all = server.lists_all_tools(&session).await;
                is_complete |= lists_all;
                if is_complete {
                    server.refresh_changed(&session, &handled, &current).await;
                    handled = current;
                }
            }
            // What only that session had is gone with it.
            if let (true, Some(server)) = (is_complete, server.upgrade())
                && let Some(usual) = server.live_session()
            {
                let _ = server.refresh_tools(&usual).await;
                server.refresh_content(&usual, ContentLists { prompts: true, resources: true }).await;
            }
        });
    }

    /// Whether a further session lists at least the tools that are approved.
    async fn lists_all_tools(&self, session: &Session) -> bool {
        let Ok(tools) = session.list_tools(LIST_TIMEOUT).await else { return false };
        let listed = definition_hashes(&self.config, session.revision_family(), &tools);
        let is_complete =
            self.tool_approvals().approved().iter().all(|tool| listed.contains_key(&tool.spec.name));
        session.set_checked_definitions(listed);
        is_complete
    }

    /// Closes a further session once nobody has used it for a while.
    fn close_when_idle(self: &Arc<Self>, session: &Arc<Session>) {
        let (server, session) = (Arc::downgrade(self), Arc::clone(session));
        tokio::spawn(async move {
            loop {
                let idle_at = {
                    let Some(server) = server.upgrade() else { break };
                    let mut state = server.state.lock();
                    let Some(idle_at) = state.caller_sessions.idle_at(&session) else { return };
                    if idle_at <= Instant::now() || session.closed().is_some() {
                        if let Some(session) = state.caller_sessions.remove(&session) {
                            state.close_session(session);
                        }
                        return;
                    }
                    idle_at
                };
                sleep(idle_at.saturating_duration_since(Instant::now())).await;
            }
            session.close().await;
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(session: u64) -> CallerIds {
        CallerIds { session, client: session }
    }

    #[test]
    fn a_caller_that_can_be_asked_shares_with_nobody() {
        let mut occupants = Occupants::default();
        assert!(!occupants.conflict_with(ids(1), true, &[]));
        occupants.enter(1, false);
        assert!(!occupants.conflict_with(ids(2), false, &[]), "neither can be asked");
        assert!(occupants.conflict_with(ids(2), true, &[]) && !occupants.conflict_with(ids(1), true, &[]));
        occupants.enter(1, true);
        occupants.leave(1);
        assert!(occupants.conflict_with(ids(2), false, &[]), "one call of the first caller goes on");
        occupants.leave(1);
        assert!(!occupants.conflict_with(ids(2), true, &[]));
        assert!(
            occupants.conflict_with(ids(2), true, &[1]),
            "the server may not know of the cancelled call yet"
        );
        let other_connection = CallerIds { session: 3, client: 1 };
        assert!(!occupants.conflict_with(other_connection, true, &[1]), "the client that gave it up");
        assert!(
            !occupants.conflict_with(ids(2), true, &[2]) && !occupants.conflict_with(ids(2), false, &[1])
        );
    }

    proptest! {
        /// While each call enters only where it does not conflict, a session has one caller if one of them can be asked.
        #[test]
        fn who_can_be_asked_is_alone(events in prop::collection::vec((0..4_u64, any::<bool>(), any::<bool>()), 0..60)) {
            let mut occupants = Occupants::default();
            let askable = |caller: u64| caller.is_multiple_of(2);
            for (caller, enters, _) in events {
                if !enters {
                    occupants.leave(caller);
                } else if !occupants.conflict_with(ids(caller), askable(caller), &[]) {
                    occupants.enter(caller, askable(caller));
                }
                let has_askable = occupants.0.keys().any(|caller| askable(*caller));
                prop_assert!(!has_askable || occupants.0.len() == 1);
            }
        }
    }
}
