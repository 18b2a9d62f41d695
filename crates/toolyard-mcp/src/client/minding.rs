//! Watches over a server that lives: changed lists, its end, whether anyone still needs it, and coming back.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    News, ServerEvent, ServerState, Session,
    offer::Lists,
    server::{Server, Slot, Wanted, locked},
};

/// How often it is looked whether the last call of a session that nobody gets any more is over.
const LINGERING: Duration = Duration::from_millis(100);
/// Changes of a list within this time are read together.
const SETTLING: Duration = Duration::from_millis(200);
/// A server that nobody asked for anything for this long is not revived any more, unless a door must go on offering it; the
/// next call starts it.
const REVIVED_FOR: Duration = Duration::from_secs(600);

impl Server {
    /// Watches over a live session: changed lists, updated resources, its end, and whether anyone still needs it.
    /// `seen` is what was heard before the lists were read: some servers tell of changes at once.
    pub(super) async fn mind(self: Arc<Self>, session: Arc<Session>, mut seen: News) {
        let (mut news, mut updates) = (session.news(), session.updates());
        self.welcome(&session);
        loop {
            let idle = self.config.idle_stop.map(|limit| *locked(&self.used) + limit);
            tokio::select! {
                changed = news.changed() => {
                    let now = news.borrow_and_update().clone();
                    if let Some(error) = now.closed.or_else(|| changed.err().and(session.closed())) {
                        return self.lost(&session, error.to_string());
                    }
                    if self.holds(&session) {
                        sleep(SETTLING).await;
                        let now = news.borrow_and_update().clone();
                        self.read_changed(&session, &seen, &now).await;
                        seen = now;
                    }
                }
                updated = updates.recv() => {
                    // What comes too fast is left out.
                    if let Ok(address) = updated {
                        self.common.tell(ServerEvent::ResourceUpdated(self.config.id.clone(), address));
                    }
                }
                () = until(idle) => {
                    if !self.holds(&session) {
                        return;
                    }
                    if self.is_idle(&session) {
                        tracing::info!(server = %self.config.id, "server stopped, nobody needs it");
                        self.all_left().await;
                        // Whoever called in the meantime has begun anew.
                        let slot = locked(&self.slot);
                        if matches!(&*slot, Slot::Empty) {
                            locked(&self.lifecycle).rest();
                        }
                        return;
                    }
                    // A call that takes longer than the limit keeps it alive.
                    self.touch();
                }
            }
        }
    }

    /// Reads the lists that the server says have changed.
    async fn read_changed(self: &Arc<Self>, session: &Arc<Session>, seen: &News, now: &News) {
        if now.tools_changed != seen.tools_changed {
            let read = self.refresh(session).await;
            if let (Err(error), true) = (read, self.holds(session) && session.closed().is_none()) {
                let concern = format!("its changed list could not be read: {error}");
                locked(&self.lifecycle).ready(Instant::now(), Some(concern));
            }
        }
        let lists = Lists {
            prompts: now.prompts_changed != seen.prompts_changed,
            resources: now.resources_changed != seen.resources_changed,
        };
        if lists.prompts || lists.resources {
            self.refresh_offer(session, lists).await;
        }
    }

    /// The session is of no use any more, whatever the reason; the next call gets another one.
    pub(super) fn lost(self: &Arc<Self>, session: &Arc<Session>, reason: String) {
        {
            let mut slot = locked(&self.slot);
            match &*slot {
                Slot::Live(live) if Arc::ptr_eq(live, session) => *slot = Slot::Empty,
                // Somebody noticed before.
                _ => return,
            }
            self.leave(session);
        }
        self.went_down(reason);
    }

    /// A request did not reach the server at its address: the next call begins anew, and those under way may still end.
    pub(super) fn unreachable(self: &Arc<Self>, session: &Arc<Session>, reason: String) {
        if session.has_program() {
            return self.lost(session, reason);
        }
        {
            let mut slot = locked(&self.slot);
            if !matches!(&*slot, Slot::Live(live) if Arc::ptr_eq(live, session)) {
                return;
            }
            *slot = Slot::Empty;
        }
        let gone = Arc::clone(session);
        tokio::spawn(async move {
            while gone.busy() > 0 && gone.closed().is_none() {
                sleep(LINGERING).await;
            }
            gone.close().await;
        });
        self.went_down(reason);
    }

    /// Whether this session is the one in use.
    fn holds(&self, session: &Arc<Session>) -> bool {
        matches!(&*locked(&self.slot), Slot::Live(live) if Arc::ptr_eq(live, session))
    }

    /// Whether nobody needs this session any more; if so, it is taken down.
    fn is_idle(&self, session: &Arc<Session>) -> bool {
        let mut slot = locked(&self.slot);
        let due = self.config.idle_stop.is_some_and(|limit| locked(&self.used).elapsed() >= limit);
        let idle = due
            && session.busy() == 0
            && !self.is_watched()
            && matches!(&*slot, Slot::Live(live) if Arc::ptr_eq(live, session));
        if idle {
            *slot = Slot::Empty;
            self.leave(session);
        }
        idle
    }

    /// Waits until nothing is left of sessions that are being taken down.
    pub(super) async fn all_left(&self) {
        let leaving = locked(&self.leaving).clone();
        for mut gone in leaving {
            // The end is all that is of interest.
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Takes a session down in the background; the next start and whoever stops the server wait for that.
    pub(super) fn leave(&self, session: &Arc<Session>) {
        let (tell, told) = watch::channel(false);
        locked(&self.leaving).push(told);
        let gone = Arc::clone(session);
        tokio::spawn(async move {
            gone.close().await;
            tell.send_replace(true);
        });
    }

    /// The session ended in good order: the next call begins a new one at once.
    pub(super) fn expired(&self, session: &Arc<Session>) {
        let mut slot = locked(&self.slot);
        if matches!(&*slot, Slot::Live(live) if Arc::ptr_eq(live, session)) {
            *slot = Slot::Empty;
            self.leave(session);
        }
    }

    pub(super) fn went_down(self: &Arc<Self>, reason: String) {
        if self.retired.load(Ordering::Acquire) {
            return;
        }
        tracing::warn!(server = %self.config.id, reason, "server down");
        locked(&self.lifecycle).failed(Instant::now(), reason, fastrand::f64());
        if !self.reviving.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).revive());
        }
    }

    /// Tries again and again, ever more slowly, while anyone still wants it.
    async fn revive(self: Arc<Self>) {
        loop {
            while let ServerState::Down { retry_at, .. } = self.state() {
                sleep_until(retry_at).await;
                // In the meantime somebody may have stopped it, or started it.
                if self.retired.load(Ordering::Acquire) || !matches!(self.state(), ServerState::Down { .. }) {
                    break;
                }
                let idle = locked(&self.used).elapsed();
                if idle > REVIVED_FOR && !self.common.keeps_reviving() {
                    locked(&self.lifecycle).rest();
                    break;
                }
                // The state tells how it went.
                let _ = self.session(Wanted::Again).await;
            }
            self.reviving.store(false, Ordering::Release);
            // It may have gone down again before anyone could see that nobody revives it.
            let down =
                matches!(self.state(), ServerState::Down { .. }) && !self.retired.load(Ordering::Acquire);
            if !down || self.reviving.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
