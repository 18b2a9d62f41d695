//! The lifecycle of one server as a state machine without I/O: which phase it is in, and when it may be started.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::lifecycle::connect_error::ConnectError;

/// The delay after the first failure, doubled after each further one.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest delay while the server is in use, so that it is used again soon after its return.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(4);
/// The longest delay while nobody calls the server.
const MAX_UNUSED_RETRY_DELAY: Duration = Duration::from_secs(60);
/// A server that was called within this time is in use.
const IN_USE_WINDOW: Duration = Duration::from_secs(15);
/// A server that was called and ran for this long may be started again at once.
const STABLE_AFTER: Duration = Duration::from_secs(5);
/// The same for a server that nobody called while it ran.
const UNUSED_STABLE_AFTER: Duration = Duration::from_secs(600);
/// A server that nobody used for this long is not reconnected any more; the next call starts it.
const RECONNECT_WINDOW: Duration = Duration::from_secs(600);

/// The state of a server: configured → stopped → starting → ready → degraded → stopping or down.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerState {
    /// Disabled by the operator.
    Disabled,
    /// Never connected: its tools are unknown.
    Configured,
    /// Not running; its tools are known from earlier.
    Stopped,
    /// Starting.
    Starting {
        /// Since when.
        since: Instant,
    },
    /// Running.
    Ready {
        /// Since when.
        since: Instant,
    },
    /// Running, with a problem.
    Degraded {
        /// Since when it is running.
        since: Instant,
        /// The problem.
        reason: String,
    },
    /// Stopping.
    Stopping,
    /// Failed.
    Down {
        /// Why.
        reason: String,
        /// How often in a row.
        failures: u32,
        /// From when on a call starts it again; calls before that fail at once.
        retry_at: Instant,
    },
}

impl ServerState {
    /// The names of all states.
    pub const LABELS: [&str; 8] =
        ["disabled", "configured", "stopped", "starting", "ready", "degraded", "stopping", "down"];

    /// The name of the state.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Configured => "configured",
            Self::Stopped => "stopped",
            Self::Starting { .. } => "starting",
            Self::Ready { .. } => "ready",
            Self::Degraded { .. } => "degraded",
            Self::Stopping => "stopping",
            Self::Down { .. } => "down",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartReason {
    /// A call. Fails at once while the server waits for its next retry.
    Call,
    /// The user or the operator. Starts the server unless it is disabled.
    Explicit,
    /// A retry after a failure, which does not count as a use.
    Reconnect,
}

/// One start that any number of callers can wait for or cancel.
#[derive(Debug)]
pub(super) struct Start<S> {
    outcome: watch::Receiver<Option<Result<Arc<S>, ConnectError>>>,
    cancelled: Arc<Notify>,
}

pub(super) type StartSender<S> = watch::Sender<Option<Result<Arc<S>, ConnectError>>>;

impl<S> Start<S> {
    fn new() -> (Self, StartSender<S>) {
        let (sender, outcome) = watch::channel(None);
        (Self { outcome, cancelled: Arc::default() }, sender)
    }

    pub(super) async fn outcome(mut self) -> Result<Arc<S>, ConnectError> {
        let outcome = self.outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or(Err(ConnectError::Cancelled))
    }

    pub(super) fn cancel(&self) {
        self.cancelled.notify_one();
    }

    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl<S> Clone for Start<S> {
    fn clone(&self) -> Self {
        Self { outcome: self.outcome.clone(), cancelled: Arc::clone(&self.cancelled) }
    }
}

/// The answer to a request for a session.
#[derive(Debug)]
pub(super) enum SessionAccess<S> {
    Running(Arc<S>),
    Pending(Start<S>),
    /// The caller must start the server, and close the session that it replaces. The server may still have the session `kept`.
    MustStart {
        start: Start<S>,
        sender: StartSender<S>,
        replaced: Option<Arc<S>>,
        kept: Option<Arc<S>>,
    },
}

/// What a stop has to wait for.
#[derive(Debug)]
pub(super) enum StopTarget<S> {
    Nothing,
    Start(Start<S>),
    Session(Arc<S>),
}

/// The lifecycle of one server. `S` is the session.
#[derive(Debug)]
pub(super) struct Lifecycle<S> {
    phase: Phase<S>,
    is_enabled: bool,
    /// Whether the server is not configured any more.
    is_retired: bool,
    has_known_tools: bool,
    has_reconnect_task: bool,
    failures: u32,
    /// The last use of a session, or its start; decides when an idle server is stopped.
    last_used: Instant,
    /// When somebody asked for a session last; a reconnect does not count.
    last_called: Instant,
    /// Whether somebody asked for the current session, or for the last one.
    was_called: bool,
}

#[derive(Debug)]
enum Phase<S> {
    Stopped,
    Starting {
        since: Instant,
        start: Start<S>,
        problem: Option<String>,
        /// The session that the start continues if the server still has it.
        kept: Option<Arc<S>>,
    },
    Running {
        since: Instant,
        session: Arc<S>,
        problem: Option<String>,
    },
    Stopping,
    /// A call may start the server again at `retry_at`; if nobody calls it, it is reconnected at `unused_retry_at`.
    Down {
        reason: String,
        retry_at: Instant,
        unused_retry_at: Instant,
        /// A session that the server may still have: requests in it did not reach the server.
        kept: Option<Arc<S>>,
    },
}

impl<S> Lifecycle<S> {
    pub(super) fn new(is_enabled: bool, has_known_tools: bool, now: Instant) -> Self {
        Self {
            phase: Phase::Stopped,
            is_enabled,
            is_retired: false,
            has_known_tools,
            has_reconnect_task: false,
            failures: 0,
            last_used: now,
            last_called: now,
            was_called: false,
        }
    }

    pub(super) fn state(&self) -> ServerState {
        match &self.phase {
            Phase::Stopped if !self.is_enabled => ServerState::Disabled,
            Phase::Stopped if self.has_known_tools => ServerState::Stopped,
            Phase::Stopped => ServerState::Configured,
            Phase::Starting { since, .. } => ServerState::Starting { since: *since },
            Phase::Running { since, problem: None, .. } => ServerState::Ready { since: *since },
            Phase::Running { since, problem: Some(reason), .. } => {
                ServerState::Degraded { since: *since, reason: reason.clone() }
            }
            Phase::Stopping => ServerState::Stopping,
            Phase::Down { reason, retry_at, .. } => {
                ServerState::Down { reason: reason.clone(), failures: self.failures, retry_at: *retry_at }
            }
        }
    }

    pub(super) fn has_known_tools(&self) -> bool {
        self.has_known_tools
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired
    }

    /// Fails if no call can reach the server, whatever its phase.
    pub(super) fn check_usable(&self) -> Result<(), ConnectError> {
        match (self.is_retired, self.is_enabled) {
            (true, _) => Err(ConnectError::NotConfigured),
            (false, false) => Err(ConnectError::Disabled),
            (false, true) => Ok(()),
        }
    }

    /// Whether the tools of the server are offered at all.
    pub(super) fn is_active(&self) -> bool {
        self.is_enabled && !self.is_retired
    }

    pub(super) fn session(&self) -> Option<&Arc<S>> {
        match &self.phase {
            Phase::Running { session, .. } => Some(session),
            _ => None,
        }
    }

    pub(super) fn is_current(&self, session: &Arc<S>) -> bool {
        self.session().is_some_and(|current| Arc::ptr_eq(current, session))
    }

    pub(super) fn last_used(&self) -> Instant {
        self.last_used
    }

    pub(super) fn touch(&mut self, now: Instant) {
        self.last_used = now;
        self.last_called = now;
    }

    /// The running session if it `is_open`, the start that is under way, or a new start.
    pub(super) fn access(
        &mut self,
        reason: StartReason,
        now: Instant,
        is_open: impl Fn(&S) -> bool,
    ) -> Result<SessionAccess<S>, ConnectError> {
        if self.is_retired {
            return Err(ConnectError::NotConfigured);
        }
        if reason != StartReason::Reconnect {
            self.touch(now);
            self.was_called = true;
        }
        match &self.phase {
            Phase::Running { session, .. } if is_open(session) => {
                return Ok(SessionAccess::Running(Arc::clone(session)));
            }
            Phase::Starting { start, .. } => return Ok(SessionAccess::Pending(start.clone())),
            _ => self.check_start(reason, now)?,
        }
        self.was_called = reason != StartReason::Reconnect;
        let (start, sender) = Start::new();
        let (replaced, kept) = match std::mem::replace(&mut self.phase, Phase::Stopped) {
            Phase::Running { session, .. } => (Some(session), None),
            Phase::Down { kept, .. } => (None, kept.filter(|kept| is_open(kept))),
            Phase::Stopped | Phase::Starting { .. } | Phase::Stopping => (None, None),
        };
        self.phase = Phase::Starting { since: now, start: start.clone(), problem: None, kept: kept.clone() };
        Ok(SessionAccess::MustStart { start, sender, replaced, kept })
    }

    fn check_start(&self, reason: StartReason, now: Instant) -> Result<(), ConnectError> {
        match &self.phase {
            _ if !self.is_enabled => Err(ConnectError::Disabled),
            Phase::Down { reason: failure, retry_at, .. }
                if reason == StartReason::Call && *retry_at > now =>
            {
                Err(ConnectError::TemporarilyUnavailable {
                    reason: failure.clone(),
                    retry_in: *retry_at - now,
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether the start was not stopped meanwhile.
    fn is_starting(&self, start: &Start<S>) -> bool {
        matches!(&self.phase, Phase::Starting { start: own, .. } if Arc::ptr_eq(&own.cancelled, &start.cancelled))
    }

    /// Ends a start with a session. Returns false if the start was stopped meanwhile.
    pub(super) fn finish_start(&mut self, start: &Start<S>, session: &Arc<S>, now: Instant) -> bool {
        let is_current = self.is_starting(start);
        if let Phase::Starting { problem, .. } = &mut self.phase
            && is_current
        {
            let (session, problem) = (Arc::clone(session), problem.take());
            self.phase = Phase::Running { since: now, session, problem };
            // However long the start took, the session is about to be used. A reconnect does not count as a call.
            self.last_used = now;
        }
        is_current
    }

    /// Ends a start without a session. Returns false if the start was stopped meanwhile. `jitter` is between 0 and 1.
    pub(super) fn fail_start(&mut self, start: &Start<S>, reason: &str, now: Instant, jitter: f64) -> bool {
        let is_current = self.is_starting(start);
        if let Phase::Starting { kept, .. } = &mut self.phase
            && is_current
        {
            let kept = kept.take();
            self.set_down(reason, now, jitter, kept);
        }
        is_current
    }

    /// The server does not have the session any more.
    pub(super) fn forget_kept(&mut self, session: &Arc<S>) {
        if let Phase::Starting { kept, .. } | Phase::Down { kept, .. } = &mut self.phase {
            kept.take_if(|kept| Arc::ptr_eq(kept, session));
        }
    }

    /// Whether the server may still have a session that is not current.
    pub(super) fn is_kept(&self, session: &Arc<S>) -> bool {
        match &self.phase {
            Phase::Starting { kept, .. } | Phase::Down { kept, .. } => {
                kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session))
            }
            Phase::Stopped | Phase::Running { .. } | Phase::Stopping => false,
        }
    }

    /// A start failed for a reason that the next start may not have: it may begin at once. Returns false if it was stopped meanwhile.
    pub(super) fn abandon_start(&mut self, start: &Start<S>) -> bool {
        let is_current = self.is_starting(start);
        if is_current {
            self.set_stopped();
        }
        is_current
    }

    /// Records that the tools are known, and the problem with them, if there is one.
    pub(super) fn record_tools(&mut self, tools_problem: Option<String>) {
        self.has_known_tools = true;
        match &mut self.phase {
            Phase::Starting { problem, .. } | Phase::Running { problem, .. } => *problem = tools_problem,
            _ => {}
        }
    }

    /// The session failed. Returns false if it is not the current one.
    pub(super) fn fail(&mut self, session: &Arc<S>, reason: &str, now: Instant, jitter: f64) -> bool {
        let is_current = self.is_current(session);
        if is_current {
            self.set_down(reason, now, jitter, None);
        }
        is_current
    }

    /// A request of the session did not reach the server, which may still have the session: the next start continues it if so.
    /// Returns false if it is not the current one.
    pub(super) fn lose_contact(&mut self, session: &Arc<S>, reason: &str, now: Instant, jitter: f64) -> bool {
        let is_current = self.is_current(session);
        if is_current {
            self.set_down(reason, now, jitter, Some(Arc::clone(session)));
        }
        is_current
    }

    /// A server that ran for a while may be started again at once; each further failure doubles the delay. A server that
    /// nobody called must have run for longer: otherwise one that exits again and again would be restarted without a delay.
    fn set_down(&mut self, reason: &str, now: Instant, jitter: f64, kept: Option<Arc<S>>) {
        let stable_after = if self.was_called { STABLE_AFTER } else { UNUSED_STABLE_AFTER };
        let was_stable = matches!(self.phase, Phase::Running { since, .. } if now - since >= stable_after);
        self.failures = if was_stable { 0 } else { self.failures.saturating_add(1) };
        let delay_up_to = |max_delay| match was_stable {
            true => Duration::ZERO,
            false => retry_delay(self.failures, max_delay, jitter),
        };
        let (retry_at, unused_retry_at) =
            (now + delay_up_to(MAX_RETRY_DELAY), now + delay_up_to(MAX_UNUSED_RETRY_DELAY));
        self.phase = Phase::Down { reason: reason.to_owned(), retry_at, unused_retry_at, kept };
    }

    /// The session expired without a failure: the next call starts a new one at once. Returns false if it is not the
    /// current one.
    pub(super) fn expire(&mut self, session: &Arc<S>) -> bool {
        let is_current = self.is_current(session);
        if is_current {
            self.set_stopped();
        }
        is_current
    }

    /// Begins to stop, until [`Self::finish_stop`].
    pub(super) fn stop(&mut self) -> StopTarget<S> {
        match std::mem::replace(&mut self.phase, Phase::Stopping) {
            Phase::Running { session, .. } => StopTarget::Session(session),
            Phase::Starting { start, .. } => StopTarget::Start(start),
            Phase::Down { kept: Some(session), .. } => StopTarget::Session(session),
            Phase::Stopped | Phase::Stopping | Phase::Down { kept: None, .. } => StopTarget::Nothing,
        }
    }

    /// Ends a stop, unless the server was started again meanwhile.
    pub(super) fn finish_stop(&mut self) {
        if matches!(self.phase, Phase::Stopping) {
            self.set_stopped();
        }
    }

    /// Begins to stop if the session is current and was not used for `limit`. Returns whether it does.
    pub(super) fn stop_if_idle(&mut self, session: &Arc<S>, limit: Duration, now: Instant) -> bool {
        let is_open = self.is_current(session)
            || matches!(&self.phase, Phase::Down { kept: Some(kept), .. } if Arc::ptr_eq(kept, session));
        let is_idle = is_open && now - self.last_used >= limit;
        if is_idle {
            self.phase = Phase::Stopping;
        }
        is_idle
    }

    pub(super) fn retire(&mut self) {
        self.is_retired = true;
    }

    fn set_stopped(&mut self) {
        self.failures = 0;
        self.phase = Phase::Stopped;
    }

    /// Whether a reconnect task must be spawned for a server that is down.
    pub(super) fn needs_reconnect_task(&mut self) -> bool {
        !self.is_retired
            && matches!(self.phase, Phase::Down { .. })
            && !std::mem::replace(&mut self.has_reconnect_task, true)
    }

    /// When the reconnect task starts the server again; none if the task must end. A server that nobody uses is stopped
    /// instead, unless reconnects are `unlimited`; the session that it may still have is returned, to be closed.
    pub(super) fn reconnect_at(
        &mut self,
        now: Instant,
        unlimited: bool,
    ) -> (Option<Instant>, Option<Arc<S>>) {
        let unused_for = now - self.last_called;
        let retry_at = match self.phase {
            Phase::Down { retry_at, .. } if !self.is_retired && unused_for <= IN_USE_WINDOW => Some(retry_at),
            Phase::Down { unused_retry_at, .. } if !self.is_retired => Some(unused_retry_at),
            _ => None,
        };
        let is_unused = unused_for > RECONNECT_WINDOW && !unlimited;
        let mut given_up = None;
        if let Phase::Down { kept, .. } = &mut self.phase
            && retry_at.is_some()
            && is_unused
        {
            given_up = kept.take();
            self.set_stopped();
        }
        let retry_at = retry_at.filter(|_| !is_unused);
        self.has_reconnect_task = retry_at.is_some();
        (retry_at, given_up)
    }
}

/// Between half and the whole of a delay that doubles with each failure, so that many servers do not retry at once.
fn retry_delay(failures: u32, max_delay: Duration, jitter: f64) -> Duration {
    let doubled = MIN_RETRY_DELAY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(max_delay).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
