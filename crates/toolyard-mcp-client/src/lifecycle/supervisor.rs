//! Supervises a running server: refreshes changed lists, handles its failure, stops it when idle, and reconnects.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::RevisionFamily;

use crate::{
    content::server_content::ContentLists,
    lifecycle::{server::ManagedServer, shared::ServerEvent, state::StartReason},
    session::{handle::Session, server_messages::SessionStatus},
};

/// How often a replaced session is checked for requests that are still in flight.
pub(super) const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Changes of a list within this time are read together.
pub(super) const CHANGE_DEBOUNCE: Duration = Duration::from_millis(200);

impl ManagedServer {
    /// Supervises a session until it ends. `handled` is the status that is already taken into account.
    pub(super) async fn supervise(self: Arc<Self>, session: Arc<Session>, mut handled: SessionStatus) {
        let (mut status, mut updates) = (session.status(), session.resource_updates());
        self.restore_session_settings(&session);
        loop {
            let idle_at = self.config.idle_stop.map(|limit| self.state.lock().lifecycle.last_used() + limit);
            tokio::select! {
                changed = status.changed() => {
                    let current = status.borrow_and_update().clone();
                    if let Some(error) = current.closed.or_else(|| changed.err().and(session.closed())) {
                        return self.fail_session(&session, &error.to_string());
                    }
                    if self.is_current(&session) {
                        sleep(CHANGE_DEBOUNCE).await;
                        let current = status.borrow_and_update().clone();
                        self.refresh_changed(&session, &handled, &current).await;
                        handled = current;
                    }
                }
                updated = updates.recv() => {
                    // An error means that updates came too fast; some are lost.
                    if let (Ok(uri), false) = (updated, self.is_private()) {
                        self.shared.publish(ServerEvent::ResourceUpdated(self.config.id.clone(), uri));
                    }
                }
                () = sleep_until_some(idle_at) => {
                    if !self.is_in_use(&session) {
                        return;
                    }
                    if self.stop_if_idle(&session) {
                        tracing::info!(server = %self.config.id, "idle server stopped");
                        self.wait_until_closed().await;
                        self.state.lock().lifecycle.finish_stop();
                        return;
                    }
                    // A call that takes longer than the limit counts as use.
                    self.state.lock().lifecycle.touch(Instant::now());
                }
            }
        }
    }

    pub(super) async fn refresh_changed(
        self: &Arc<Self>,
        session: &Arc<Session>,
        before: &SessionStatus,
        now: &SessionStatus,
    ) {
        if self.is_private() {
            // The next call of each tool compares its definition again.
            return session.set_checked_definitions(HashMap::new());
        }
        if now.tools_changed != before.tools_changed {
            let refreshed = self.refresh_tools(session).await;
            if let (Err(error), true) = (refreshed, self.is_current(session) && session.closed().is_none()) {
                let problem = format!("failed to read the changed list of tools: {error}");
                self.state.lock().lifecycle.record_tools(Some(problem));
            }
        }
        let lists = ContentLists {
            prompts: now.prompts_changed != before.prompts_changed,
            resources: now.resources_changed != before.resources_changed,
        };
        if lists.prompts || lists.resources {
            self.refresh_content(session, lists).await;
        }
    }

    fn is_current(&self, session: &Arc<Session>) -> bool {
        self.state.lock().lifecycle.is_current(session)
    }

    /// Whether calls use the session, or will when the server can be reached again.
    pub(super) fn is_in_use(&self, session: &Arc<Session>) -> bool {
        let lifecycle = &self.state.lock().lifecycle;
        lifecycle.is_current(session) || lifecycle.is_kept(session)
    }

    /// Begins to stop a session that nobody uses. Returns whether it does.
    fn stop_if_idle(&self, session: &Arc<Session>) -> bool {
        let Some(limit) = self.config.idle_stop else { return false };
        // Private instances use the process behind the URL, too.
        if self.config.program.is_some() && self.private_instances() > 0 {
            return false;
        }
        let mut state = self.state.lock();
        let is_used = session.in_flight_requests() > 0
            || state.caller_sessions.has_calls()
            || !state.subscriptions.is_empty();
        let is_idle = !is_used && state.lifecycle.stop_if_idle(session, limit, Instant::now());
        if is_idle {
            state.close_session(Arc::clone(session));
        }
        is_idle
    }

    /// Closes a session that failed; the next call gets another one.
    pub(super) fn fail_session(self: &Arc<Self>, session: &Arc<Session>, reason: &str) {
        {
            let mut state = self.state.lock();
            if !state.lifecycle.fail(session, reason, Instant::now(), fastrand::f64()) {
                return;
            }
            state.close_session(Arc::clone(session));
        }
        self.log_and_reconnect(reason);
    }

    /// Starts a private instance anew whose calls keep failing. Other calls in flight may be of tools that work: the session is closed
    /// once they have ended.
    pub(super) fn replace_failing_session(self: &Arc<Self>, session: &Arc<Session>, reason: &str) {
        {
            let mut state = self.state.lock();
            if !state.lifecycle.fail(session, reason, Instant::now(), fastrand::f64()) {
                return;
            }
            state.draining.push(Arc::clone(session));
        }
        self.close_when_drained(session);
        self.log_and_reconnect(reason);
    }

    /// Closes a session that is draining once its requests have ended. Each of them ends by its deadline.
    pub(super) fn close_when_drained(self: &Arc<Self>, session: &Arc<Session>) {
        let (server, session) = (Arc::downgrade(self), Arc::clone(session));
        tokio::spawn(async move {
            wait_until_unused(&session).await;
            match server.upgrade() {
                Some(server) => {
                    let mut state = server.state.lock();
                    state.draining.retain(|draining| !Arc::ptr_eq(draining, &session));
                    state.close_session(session);
                }
                None => session.close().await,
            }
        });
    }

    /// A request did not reach the URL of the server. It may still have a session with state, which the next start continues if so;
    /// otherwise the next call gets another session, and requests in flight may still complete. If we started the process behind
    /// the URL, the session is closed at once.
    pub(super) fn replace_unreachable_session(self: &Arc<Self>, session: &Arc<Session>, reason: &str) {
        if session.owns_process() {
            return self.fail_session(session, reason);
        }
        if session.revision_family() == RevisionFamily::Legacy {
            let is_current = {
                let lifecycle = &mut self.state.lock().lifecycle;
                lifecycle.lose_contact(session, reason, Instant::now(), fastrand::f64())
            };
            if is_current {
                self.log_and_reconnect(reason);
            }
            return;
        }
        if !self.state.lock().lifecycle.fail(session, reason, Instant::now(), fastrand::f64()) {
            return;
        }
        close_when_unused(Arc::clone(session));
        self.log_and_reconnect(reason);
    }

    /// Closes a session that expired or was closed by the server; the next call gets another one at once.
    pub(super) fn expire_session(&self, session: &Arc<Session>) {
        let mut state = self.state.lock();
        let is_further = state.caller_sessions.remove(session).is_some();
        if state.lifecycle.expire(session) || is_further {
            state.close_session(Arc::clone(session));
        }
    }

    /// Logs a failure and reconnects in the background.
    pub(super) fn log_and_reconnect(self: &Arc<Self>, reason: &str) {
        if self.state.lock().lifecycle.is_retired() {
            return;
        }
        if self.is_private() {
            // The next call of its caller starts it again.
            return tracing::warn!(server = %self.config.id, reason, "private instance down");
        }
        tracing::warn!(server = %self.config.id, reason, "server down");
        if self.state.lock().lifecycle.needs_reconnect_task() {
            tokio::spawn(Arc::clone(self).reconnect());
        }
    }

    /// Restarts the server, with growing delays, until it runs or nobody has used it for a while.
    async fn reconnect(self: Arc<Self>) {
        loop {
            let now = Instant::now();
            let (retry_at, given_up) = {
                let lifecycle = &mut self.state.lock().lifecycle;
                lifecycle.reconnect_at(now, self.shared.keeps_reconnecting.load(Ordering::Acquire))
            };
            given_up.into_iter().for_each(close_when_unused);
            match retry_at {
                None => return,
                Some(retry_at) if retry_at > now => sleep_until(retry_at).await,
                // The lifecycle records a failure.
                Some(_) if self.has_known_tools() => drop(self.session(StartReason::Reconnect, None).await),
                Some(_) => drop(self.learn_tools(StartReason::Reconnect).await),
            }
        }
    }
}

/// Closes a session in the background once its requests have ended.
pub(super) fn close_when_unused(session: Arc<Session>) {
    tokio::spawn(async move {
        wait_until_unused(&session).await;
        session.close().await;
    });
}

async fn wait_until_unused(session: &Session) {
    while session.in_flight_requests() > 0 && session.closed().is_none() {
        sleep(DRAIN_POLL_INTERVAL).await;
    }
}

/// Never completes without an instant.
async fn sleep_until_some(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
