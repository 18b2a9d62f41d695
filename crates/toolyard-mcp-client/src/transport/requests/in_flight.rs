//! Tracks in-flight requests: resets their idle timeouts on progress and finds the caller that a server message
//! belongs to.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, sleep},
};
use toolyard_core::{CallProgress, Caller, ExtendableDeadline, RawJson};
use toolyard_mcp::Progress;

use crate::{
    server_secrets::ServerSecrets,
    transport::requests::recipient::{OriginKey, RecipientDecision, decide_recipient},
};

/// For how long a server may send messages about a call that was abandoned.
const CANCEL_GRACE: Duration = Duration::from_secs(60);
/// Abandoned calls that are remembered.
const MAX_ABANDONED_CALLS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct InFlightRequests {
    state: Mutex<InFlightState>,
    /// Whether an input request came that did not tell which call it belongs to.
    has_unrelated_requests: AtomicBool,
    /// Redacted in progress and log messages.
    secrets: OnceLock<Arc<ServerSecrets>>,
}

#[derive(Debug, Default)]
struct InFlightState {
    requests: HashMap<u64, Arc<InFlightRequest>>,
    abandoned: VecDeque<AbandonedCall>,
}

/// A call that its caller gave up, which the server may not know yet.
#[derive(Debug, Clone, Copy)]
struct AbandonedCall {
    session: u64,
    client: u64,
    program: u64,
    at: Instant,
}

#[derive(Debug, Clone)]
pub(crate) enum RequestOrigin {
    /// The connection itself.
    Internal,
    /// A call without a caller.
    Detached,
    /// A caller that takes progress and answers input requests, and the deadline that its progress extends.
    Caller(Arc<dyn Caller>, Option<Arc<ExtendableDeadline>>),
}

impl RequestOrigin {
    pub(crate) fn caller(&self) -> Option<&dyn Caller> {
        match self {
            Self::Caller(caller, _) => Some(&**caller),
            Self::Internal | Self::Detached => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct InFlightRequest {
    origin: RequestOrigin,
    activity: Notify,
    /// Input requests of the server that await an answer.
    open_inputs: AtomicU32,
    finished: Notify,
    is_finished: AtomicBool,
}

#[derive(Debug)]
pub(crate) enum Recipient {
    /// The caller of this request.
    Caller(Arc<dyn Caller>, Arc<InFlightRequest>),
    /// The request belongs to no caller.
    NoCaller,
    /// The caller of a request that is finished.
    Finished,
    /// One of several callers, and nothing tells which.
    Ambiguous,
    /// A caller, or another client that gave up its call a moment ago.
    MaybeAbandoned,
}

impl InFlightRequests {
    /// Sets the secrets to redact, once.
    pub(crate) fn set_secrets(&self, secrets: Arc<ServerSecrets>) {
        // A connection belongs to one server.
        let _ = self.secrets.set(secrets);
    }

    pub(crate) fn insert(&self, id: u64, origin: RequestOrigin) -> Arc<InFlightRequest> {
        let request = Arc::new(InFlightRequest::new(origin));
        self.state.lock().requests.insert(id, Arc::clone(&request));
        request
    }

    /// Ends a request that was answered or abandoned.
    pub(crate) fn remove(&self, id: u64, is_answered: bool) {
        let mut state = self.state.lock();
        let Some(request) = state.requests.remove(&id) else { return };
        if let (RequestOrigin::Caller(caller, _), false) = (&request.origin, is_answered) {
            if state.abandoned.len() == MAX_ABANDONED_CALLS {
                state.abandoned.pop_front();
            }
            let (session, client, program) = (caller.session_id(), caller.client_id(), caller.program_id());
            state.abandoned.push_back(AbandonedCall { session, client, program, at: Instant::now() });
        }
        drop(state);
        request.is_finished.store(true, Ordering::Release);
        request.finished.notify_waiters();
    }

    /// Passes progress and log messages to their caller. Returns whether there is one.
    pub(crate) fn handle_notification(
        &self,
        method: &str,
        params: &RawJson,
        related_request: Option<u64>,
    ) -> bool {
        match method {
            "notifications/progress" => {
                let mut progress = Progress::read(params);
                if let Some(secrets) = self.secrets.get() {
                    progress.message = progress.message.map(|message| secrets.redact(message));
                }
                let request = progress.token.and_then(|id| self.state.lock().requests.get(&id).cloned());
                request.inspect(|request| request.handle_progress(progress)).is_some()
            }
            "notifications/message" => match self.recipient(related_request) {
                Recipient::Caller(caller, _) => {
                    match self.secrets.get() {
                        Some(secrets) => caller.log(&secrets.redact_params(params)),
                        None => caller.log(params),
                    }
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Who a message is for that came on the stream of a request, or on a stream shared by all.
    pub(crate) fn recipient(&self, related_request: Option<u64>) -> Recipient {
        let mut state = self.state.lock();
        state.forget_old_abandoned();
        let in_flight: Vec<(u64, OriginKey)> =
            state.requests.iter().map(|(id, request)| (*id, request.origin.key())).collect();
        let abandoned = state.abandoned_of_others();
        match decide_recipient(related_request, &in_flight, &abandoned) {
            RecipientDecision::Request(id) => match state.requests.get(&id) {
                Some(request) => match &request.origin {
                    RequestOrigin::Caller(caller, _) => {
                        Recipient::Caller(Arc::clone(caller), Arc::clone(request))
                    }
                    RequestOrigin::Internal | RequestOrigin::Detached => Recipient::NoCaller,
                },
                None => Recipient::Finished,
            },
            RecipientDecision::NoCaller => Recipient::NoCaller,
            RecipientDecision::Finished => Recipient::Finished,
            RecipientDecision::Ambiguous => match decide_recipient(related_request, &in_flight, &[]) {
                RecipientDecision::Ambiguous => Recipient::Ambiguous,
                _ => Recipient::MaybeAbandoned,
            },
        }
    }

    /// The clients that gave up a call a moment ago.
    pub(crate) fn clients_of_abandoned_calls(&self) -> Vec<u64> {
        let mut state = self.state.lock();
        state.forget_old_abandoned();
        state.abandoned.iter().map(|call| call.client).collect()
    }

    /// Notes an input request that does not tell which call it belongs to.
    pub(crate) fn note_unrelated_request(&self) {
        self.has_unrelated_requests.store(true, Ordering::Release);
    }

    pub(crate) fn has_unrelated_requests(&self) -> bool {
        self.has_unrelated_requests.load(Ordering::Acquire)
    }

    pub(crate) fn count(&self) -> usize {
        self.state.lock().requests.len()
    }
}

impl InFlightState {
    fn forget_old_abandoned(&mut self) {
        while self.abandoned.front().is_some_and(|call| call.at.elapsed() > CANCEL_GRACE) {
            self.abandoned.pop_front();
        }
    }

    /// The sessions of abandoned calls, but for those of the one client that has calls in flight: what the server still
    /// sends about its abandoned call may reach its next one, even if it has reconnected meanwhile.
    fn abandoned_of_others(&self) -> Vec<u64> {
        let mut programs = self.requests.values().filter_map(|request| request.origin.program());
        let only = programs.next().filter(|first| programs.all(|program| program == *first));
        self.abandoned.iter().filter(|call| Some(call.program) != only).map(|call| call.session).collect()
    }
}

impl RequestOrigin {
    fn key(&self) -> OriginKey {
        match self {
            Self::Internal => OriginKey::Internal,
            Self::Detached => OriginKey::Detached,
            Self::Caller(caller, _) => OriginKey::Caller(caller.session_id()),
        }
    }

    fn program(&self) -> Option<u64> {
        match self {
            Self::Internal | Self::Detached => None,
            Self::Caller(caller, _) => Some(caller.program_id()),
        }
    }

    fn deadline(&self) -> Option<&Arc<ExtendableDeadline>> {
        match self {
            Self::Caller(_, deadline) => deadline.as_ref(),
            Self::Internal | Self::Detached => None,
        }
    }
}

impl InFlightRequest {
    fn new(origin: RequestOrigin) -> Self {
        Self {
            origin,
            activity: Notify::new(),
            open_inputs: AtomicU32::new(0),
            finished: Notify::new(),
            is_finished: AtomicBool::new(false),
        }
    }

    fn handle_progress(&self, progress: Progress) {
        self.activity.notify_one();
        if let Some(deadline) = self.origin.deadline() {
            deadline.record_activity(Instant::now().into_std());
        }
        if let RequestOrigin::Caller(caller, _) = &self.origin
            && caller.wants_progress()
        {
            let Progress { progress, total, message, .. } = progress;
            caller.progress(&CallProgress { progress, total, message });
        }
    }

    /// The output of `work`, or `None` after `limit` without activity. Time in which the server waits for our input does
    /// not count.
    pub(crate) async fn with_idle_timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return Some(outcome),
                () = self.activity.notified() => {}
                () = sleep(limit), if self.open_inputs.load(Ordering::Acquire) == 0 => return None,
            }
        }
    }

    /// Suspends the idle timeout and the deadline until the returned guard is dropped.
    pub(crate) fn pause_for_input(&self) -> InputPause<'_> {
        self.open_inputs.fetch_add(1, Ordering::AcqRel);
        // Wakes the timeout, so that it notices the pause.
        self.activity.notify_one();
        self.origin.deadline().inspect(|deadline| deadline.pause());
        InputPause(self)
    }

    /// Completes when the request ends. An earlier end is not noticed; see [`Self::is_finished`].
    pub(crate) fn finished(&self) -> Notified<'_> {
        self.finished.notified()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }
}

/// Suspends the timeouts of a request that waits for input.
#[derive(Debug)]
pub(crate) struct InputPause<'a>(&'a InFlightRequest);

impl Drop for InputPause<'_> {
    fn drop(&mut self) {
        self.0.open_inputs.fetch_sub(1, Ordering::AcqRel);
        self.0.activity.notify_one();
        self.0.origin.deadline().inspect(|deadline| deadline.resume(Instant::now().into_std()));
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use serde_json::json;

    use super::*;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

    fn report_progress(requests: &InFlightRequests, token: u64) {
        let params = json!({"progressToken": token, "progress": 1}).into();
        assert!(requests.handle_notification("notifications/progress", &params, None));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_resets_the_idle_timeout() {
        let requests = Arc::new(InFlightRequests::default());
        let request = requests.insert(1, RequestOrigin::Internal);
        let server = Arc::clone(&requests);
        tokio::spawn(async move {
            for _ in 0..5 {
                sleep(Duration::from_secs(8)).await;
                report_progress(&server, 1);
            }
        });
        let started = Instant::now();
        assert_eq!(request.with_idle_timeout(IDLE_TIMEOUT, pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(50));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_waits_for_input_is_not_idle() {
        let requests = InFlightRequests::default();
        let request = requests.insert(1, RequestOrigin::Detached);
        let user = Arc::clone(&request);
        tokio::spawn(async move {
            sleep(Duration::from_secs(5)).await;
            let _pause = user.pause_for_input();
            sleep(Duration::from_secs(300)).await;
        });
        let started = Instant::now();
        assert_eq!(request.with_idle_timeout(IDLE_TIMEOUT, pending::<()>()).await, None);
        assert_eq!(started.elapsed(), Duration::from_secs(315));
    }

    #[tokio::test]
    async fn notifications_about_unknown_requests_have_no_recipient() {
        let requests = InFlightRequests::default();
        requests.insert(1, RequestOrigin::Internal);
        for params in [json!({"progressToken": 2, "progress": 1}), json!({}), json!([])] {
            assert!(!requests.handle_notification("notifications/progress", &params.into(), None));
        }
        let log = json!({"level": "info", "data": 1}).into();
        assert!(!requests.handle_notification("notifications/message", &log, Some(1)));
    }

    #[derive(Debug)]
    struct TestCaller {
        session: u64,
        program: u64,
    }

    impl Caller for TestCaller {
        fn session_id(&self) -> u64 {
            self.session
        }

        fn program_id(&self) -> u64 {
            self.program
        }
    }

    fn call_of(session: u64, program: u64) -> RequestOrigin {
        RequestOrigin::Caller(Arc::new(TestCaller { session, program }), None)
    }

    #[tokio::test]
    async fn a_cancelled_call_is_in_the_way_of_other_clients_only() {
        let requests = InFlightRequests::default();
        requests.insert(1, call_of(1, 7));
        requests.remove(1, false);
        requests.insert(2, call_of(2, 7));
        assert!(matches!(requests.recipient(None), Recipient::Caller(..)), "the client has reconnected");
        requests.remove(2, true);
        requests.insert(3, call_of(3, 8));
        assert!(matches!(requests.recipient(None), Recipient::MaybeAbandoned), "another client");
        requests.insert(4, call_of(2, 7));
        assert!(matches!(requests.recipient(None), Recipient::Ambiguous), "both at once");
    }
}
