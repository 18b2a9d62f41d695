//! [`RequestChannel`]: carries notifications and input requests from a running request to its client.

use std::{
    collections::VecDeque,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, atomic::AtomicBool},
    task::{Context, Waker},
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use toolyard_core::{
    BoxFuture, CallInputError, CallInputKind, CallInputRequest, CallInputResponses, CallProgress, Caller,
    CallerIdentity, RawJson, RevisionFamily, sanitize, telemetry::SpanContext, text::sanitize_json,
};
use toolyard_mcp::{
    JsonObject,
    input_method::input_method,
    jsonrpc::{self, notification},
};

use crate::{
    interaction::input_requests::PendingInputRequests,
    json_fields::{each_field, has_field, text_field},
    session::{log_level::LogLevel, peer::Peer, request_state::RequestFingerprint},
};

/// The `_meta` key for the key of an input request.
const INPUT_KEY_META: &str = "toolyard/key";
/// Unsent messages per request; further ones are dropped.
const MAX_QUEUED_MESSAGES: usize = 1_024;
/// Unsent bytes per request, unless one message alone is larger.
const MAX_QUEUED_BYTES: usize = 4 << 20;

pub(crate) struct RequestChannel {
    pub(crate) peer: Arc<Peer>,
    /// Who sent the request.
    pub(crate) identity: Option<Arc<CallerIdentity>>,
    pub(crate) input_requests: Arc<PendingInputRequests>,
    /// Responses to the input requests of an earlier attempt.
    pub(crate) input_responses: Option<CallInputResponses>,
    /// Whether messages can be sent before the response.
    pub(crate) can_notify: bool,
    /// Whether the method allows input requests.
    pub(crate) can_request_input: bool,
    /// Identifies the request, if it may be suspended.
    pub(crate) fingerprint: Option<RequestFingerprint>,
    pub(crate) trace_context: Vec<(String, String)>,
    /// The further metadata of a tool call.
    pub(crate) request_meta: Option<RawJson>,
    /// The span of the request; none without telemetry.
    pub(crate) span: Option<SpanContext>,
    /// Whether the tool of the request reported an error.
    pub(crate) is_tool_error: AtomicBool,
    state: Mutex<ChannelState>,
}

#[derive(Default)]
struct ChannelState {
    queue: VecDeque<Bytes>,
    /// The total size of `queue`.
    queued_bytes: usize,
    pending: Vec<InputBatch>,
    waker: Option<Waker>,
    is_cancelled: bool,
    preferences: NotificationPreferences,
    /// Responses that came before their input requests; each is used once.
    early_responses: Vec<(String, RawJson)>,
    missing_capability: Option<&'static str>,
}

/// Which notifications a client wants while its request runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotificationPreferences {
    /// The token for progress notifications; none for no progress.
    pub(crate) progress_token: Option<RawJson>,
    /// The lowest level of log messages; none for no messages.
    pub(crate) log_level: Option<LogLevel>,
}

/// Input requests that were made together and await responses (modern revisions).
struct InputBatch {
    requests: Vec<KeyedRequest>,
    sender: oneshot::Sender<Vec<RawJson>>,
}

/// An input request with its unique key and, once there is one, its response.
type KeyedRequest = (String, CallInputRequest, Option<RawJson>);

impl RequestChannel {
    pub(crate) fn new(
        peer: Arc<Peer>,
        input_requests: Arc<PendingInputRequests>,
        preferences: NotificationPreferences,
    ) -> Self {
        let state = Mutex::new(ChannelState { preferences, ..ChannelState::default() });
        Self {
            peer,
            identity: None,
            input_requests,
            input_responses: None,
            can_notify: true,
            can_request_input: true,
            fingerprint: None,
            trace_context: Vec::new(),
            request_meta: None,
            span: None,
            is_tool_error: AtomicBool::new(false),
            state,
        }
    }

    pub(crate) fn next_message(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        let message = state.queue.pop_front()?;
        state.queued_bytes -= message.len();
        Some(message)
    }

    /// Wakes the task on messages, input requests and cancellation.
    pub(crate) fn register_waker(&self, context: &Context<'_>) {
        let mut state = self.state.lock();
        match &mut state.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            waker => *waker = Some(context.waker().clone()),
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().is_cancelled
    }

    pub(crate) fn cancel(&self) {
        let mut state = self.state.lock();
        state.is_cancelled = true;
        wake(state);
    }

    pub(crate) fn set_preferences(&self, preferences: NotificationPreferences) {
        self.state.lock().preferences = preferences;
    }

    /// Provides responses by the keys of their input requests: to pending ones and to later ones.
    pub(crate) fn provide_responses(&self, responses: &RawJson) {
        let mut provided = Vec::new();
        // Fields before a syntax error count.
        let _ = each_field(responses.get(), |key, value| {
            provided.push((key.to_owned(), responses.part(value)));
            Ok(())
        });
        self.fill_responses(|key, request| {
            let at = provided
                .iter()
                .position(|(provided, response)| provided == key && is_valid_response(request, response))?;
            Some(provided.swap_remove(at).1)
        });
        self.state.lock().early_responses = provided;
    }

    /// The capability that the call needed and the client lacks.
    pub(crate) fn missing_capability(&self) -> Option<&'static str> {
        self.state.lock().missing_capability
    }

    pub(crate) fn pending_batches(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// The input requests without a response, by key, sanitized for the client.
    pub(crate) fn pending_requests(&self) -> Vec<(String, CallInputRequest)> {
        let state = self.state.lock();
        let all = state.pending.iter().flat_map(|batch| &batch.requests);
        all.filter(|(.., response)| response.is_none())
            .map(|(key, request, _)| {
                let params = request.params.as_ref().map(|params| sanitize_json(params).0);
                (key.clone(), CallInputRequest { params, ..request.clone() })
            })
            .collect()
    }

    /// Fills in responses, and completes the batches that have all their responses.
    fn fill_responses(&self, mut find: impl FnMut(&str, &CallInputRequest) -> Option<RawJson>) {
        let mut state = self.state.lock();
        for (key, request, response) in state.pending.iter_mut().flat_map(|batch| &mut batch.requests) {
            if response.is_none() {
                *response = find(key, request);
            }
        }
        let (incomplete, completed): (Vec<_>, Vec<_>) = std::mem::take(&mut state.pending)
            .into_iter()
            .partition(|batch| batch.requests.iter().any(|(.., response)| response.is_none()));
        state.pending = incomplete;
        drop(state);
        for batch in completed {
            // The receiver may be gone.
            let _ =
                batch.sender.send(batch.requests.into_iter().filter_map(|(.., response)| response).collect());
        }
    }

    /// Queues a message for the client. Returns false if it cannot be sent or the queue is full.
    pub(crate) fn send(&self, message: Vec<u8>) -> bool {
        let mut state = self.state.lock();
        let has_capacity = state.queue.is_empty() || state.queued_bytes + message.len() <= MAX_QUEUED_BYTES;
        let has_capacity = self.can_notify && has_capacity && state.queue.len() < MAX_QUEUED_MESSAGES;
        if has_capacity {
            state.queued_bytes += message.len();
            state.queue.push_back(message.into());
            wake(state);
        }
        has_capacity
    }

    fn check_supported(&self, requests: &[CallInputRequest]) -> Result<(), CallInputError> {
        if !self.can_request_input {
            return Err(CallInputError::unsupported());
        }
        let capabilities = self.peer.capabilities;
        let missing = requests.iter().find_map(|request| {
            capabilities.missing_capability_for(input_method(request.kind), request.params.as_ref())
        });
        let Some(missing) = missing else { return Ok(()) };
        self.state.lock().missing_capability = Some(missing);
        let message = format!("the client lacks a required capability: {missing}");
        Err(CallInputError::Unsupported(message))
    }

    /// Legacy revisions: sends requests to the client and awaits its responses.
    async fn send_input_requests(
        &self,
        requests: &[CallInputRequest],
    ) -> Result<Vec<RawJson>, CallInputError> {
        if !self.can_notify {
            return Err(CallInputError::unsupported());
        }
        let mut sent = Vec::with_capacity(requests.len());
        for request in requests {
            let pending = self.input_requests.register(self.peer.session_number);
            let params = params_with_key(request);
            if !self.send(jsonrpc::request_with_id(&pending.id, input_method(request.kind), &params)) {
                return Err(CallInputError::Failed("too many unsent messages to the client".to_owned()));
            }
            sent.push(pending);
        }
        let mut responses = Vec::with_capacity(sent.len());
        for pending in sent {
            responses.push(pending.response().await?);
        }
        Ok(responses)
    }

    /// Modern revisions: waits until the request is suspended and retried with responses.
    async fn suspend_for_input(&self, requests: &[CallInputRequest]) -> Result<Vec<RawJson>, CallInputError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let mut batch: Vec<KeyedRequest> = Vec::with_capacity(requests.len());
            for request in requests {
                let others = state.pending.iter().flat_map(|other| &other.requests).chain(&batch);
                let taken_keys: Vec<&str> = others.map(|(key, ..)| key.as_str()).collect();
                let key = unique_key(&request.key, &taken_keys);
                let provided = state.early_responses.iter().position(|(provided, response)| {
                    *provided == key && is_valid_response(request, response)
                });
                let response = provided.map(|at| state.early_responses.swap_remove(at).1);
                batch.push((key, request.clone(), response));
            }
            if batch.iter().all(|(.., response)| response.is_some()) {
                return Ok(batch.into_iter().filter_map(|(.., response)| response).collect());
            }
            state.pending.push(InputBatch { requests: batch, sender });
            wake(state);
        }
        receiver.await.map_err(|_| CallInputError::Failed("no response to the input request".to_owned()))
    }
}

/// The parameters of an input request, sanitized for the client. Legacy revisions have no field for the key; a gateway with
/// modern clients finds it here.
fn params_with_key(request: &CallInputRequest) -> JsonObject {
    let empty = RawJson::empty_object();
    let params = sanitize_json(request.params.as_ref().unwrap_or(&empty)).0;
    let object = JsonObject::from_raw(&params);
    if has_field(&params, "_meta") {
        return object;
    }
    object.with_object("_meta", &JsonObject::new().with_text(INPUT_KEY_META, &request.key))
}

fn unique_key(base: &str, taken_keys: &[&str]) -> String {
    let mut key = base.to_owned();
    let mut suffix = 1_u64;
    while taken_keys.contains(&key.as_str()) {
        suffix += 1;
        key = format!("{base}_{suffix}");
    }
    key
}

/// Whether a response has the shape that its request needs.
fn is_valid_response(request: &CallInputRequest, response: &RawJson) -> bool {
    match request.kind {
        CallInputKind::Elicitation => text_field(response.get(), "action").is_some(),
        CallInputKind::Sampling => has_field(response, "content"),
        CallInputKind::Roots => has_field(response, "roots"),
    }
}

fn wake(mut state: MutexGuard<'_, ChannelState>) {
    let waker = state.waker.take();
    // Waking may run code that takes the lock.
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Caller for RequestChannel {
    fn capabilities(&self) -> RawJson {
        self.peer.raw_capabilities.clone().unwrap_or_else(|| self.peer.capabilities.to_json())
    }

    fn session_id(&self) -> u64 {
        self.peer.session_number
    }

    fn client_id(&self) -> u64 {
        if self.peer.initialized_at.is_some() {
            return self.peer.session_number;
        }
        // Without a handshake there is no session.
        self.program_id()
    }

    fn program_id(&self) -> u64 {
        // The owner and the client's name are all that its sessions share.
        let mut hasher = DefaultHasher::new();
        (self.owner_hash(), &self.peer.client.name).hash(&mut hasher);
        hasher.finish()
    }

    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        self.identity.as_ref()
    }

    fn wants_progress(&self) -> bool {
        self.can_notify && self.state.lock().preferences.progress_token.is_some()
    }

    fn progress(&self, progress: &CallProgress) {
        let Some(token) = self.state.lock().preferences.progress_token.clone() else { return };
        let mut params = JsonObject::new()
            .with_raw("progressToken", &token)
            .with_value("progress", &serde_json::json!(progress.progress));
        if let Some(total) = progress.total {
            params = params.with_value("total", &serde_json::json!(total));
        }
        // Progress messages exist since 2025-03-26.
        if let Some(message) = progress.message.as_ref().filter(|_| self.peer.supports("2025-03-26")) {
            params = params.with_text("message", &sanitize(message).0);
        }
        self.send(notification("notifications/progress", &params));
    }

    fn log(&self, message: &RawJson) {
        let Some(min_level) = self.state.lock().preferences.log_level else { return };
        let level = text_field(message.get(), "level").and_then(|level| LogLevel::from_name(&level));
        if level.is_some_and(|level| level >= min_level) {
            self.send(notification(
                "notifications/message",
                &JsonObject::from_raw(&sanitize_json(message).0),
            ));
        }
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        if let Err(error) = self.check_supported(requests) {
            return Box::pin(std::future::ready(Err(error)));
        }
        match self.peer.family() {
            RevisionFamily::Legacy => Box::pin(self.send_input_requests(requests)),
            RevisionFamily::Modern => Box::pin(self.suspend_for_input(requests)),
        }
    }

    fn note_unsupported(&self, request: &CallInputRequest) {
        // Records the missing capability.
        let _ = self.check_supported(std::slice::from_ref(request));
    }

    fn log_level(&self) -> Option<&str> {
        self.state.lock().preferences.log_level.map(LogLevel::name)
    }

    fn trace_context(&self) -> &[(String, String)] {
        &self.trace_context
    }

    fn request_meta(&self) -> Option<&RawJson> {
        self.request_meta.as_ref()
    }

    fn span(&self) -> Option<SpanContext> {
        self.span.or_else(|| SpanContext::from_trace_context(&self.trace_context))
    }

    fn accepts_input_required(&self) -> bool {
        self.can_request_input && self.peer.family() == RevisionFamily::Modern
    }

    fn input_responses(&self) -> Option<&CallInputResponses> {
        self.input_responses.as_ref()
    }
}

impl fmt::Debug for RequestChannel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RequestChannel").field("peer", &self.peer).finish_non_exhaustive()
    }
}
