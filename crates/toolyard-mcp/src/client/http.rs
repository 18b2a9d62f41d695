//! Streamable HTTP: every message is a POST, and its answer is JSON or a stream of events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, Method, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{sync::oneshot, task::JoinHandle};
use toolyard_core::BoxFuture;

use super::{
    Exchange, HttpTarget, Outgoing, Transport, TransportError,
    http_caller::{BodyKind, HttpCaller, body_kind},
    http_events::{EventStream, Told},
};
use crate::wire::{Message, WireLimits};

const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// From this revision on there are no sessions, no resuming, and a closed stream is a cancelled request.
const FIRST_MODERN: &str = "2026-07-28";

pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// A connection to one server over Streamable HTTP, in either era.
#[derive(Debug)]
pub struct StreamableHttp {
    inner: Arc<Inner>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) caller: HttpCaller,
    pub(super) exchange: Arc<Exchange>,
    session: Mutex<Session>,
    /// The requests whose answers are being waited for or read.
    tasks: Mutex<HashMap<u64, JoinHandle<()>>>,
}

/// What was agreed with the server.
#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    modern: bool,
}

impl StreamableHttp {
    /// A connection to `target`; nothing is sent yet. The client should be one of [`super::http_client`].
    pub fn new(target: HttpTarget, exchange: Arc<Exchange>, limits: WireLimits, client: Client) -> Self {
        let inner = Inner {
            caller: HttpCaller::new(client, target, limits),
            exchange,
            session: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self { inner: Arc::new(inner), listener: Mutex::default() }
    }

    /// Whether the server gave us a session (legacy era only).
    pub fn has_session(&self) -> bool {
        lock(&self.inner.session).id.is_some()
    }

    fn abort_all(&self) -> Vec<JoinHandle<()>> {
        let mut handles: Vec<_> = std::mem::take(&mut *lock(&self.inner.tasks)).into_values().collect();
        handles.extend(lock(&self.listener).take());
        handles.iter().for_each(JoinHandle::abort);
        handles
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl Transport for StreamableHttp {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move {
            if let Some(error) = self.inner.exchange.closed() {
                return Err(error);
            }
            let headers = self.inner.post_headers(&message)?;
            match message.id {
                Some(id) => {
                    self.inner.start(id, message, headers);
                    Ok(())
                }
                // Whoever tells something wants it told before the next message is sent.
                None => self.inner.post(message.body, headers).await.map(drop),
            }
        })
    }

    fn forget(&self, id: u64) -> bool {
        let handle = lock(&self.inner.tasks).remove(&id);
        if let Some(handle) = handle {
            handle.abort();
        }
        self.inner.is_modern()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.exchange.close(&TransportError::Closed);
            for handle in self.abort_all() {
                // It was told to end; how it did is of no interest.
                let _ = handle.await;
            }
            self.inner.end_session().await;
        })
    }

    fn set_protocol_version(&self, version: Option<&str>) {
        let mut session = lock(&self.inner.session);
        session.modern = version.is_some_and(|version| version >= FIRST_MODERN);
        session.version = version.and_then(|version| HeaderValue::from_str(version).ok());
    }

    fn open_listen_stream(&self) -> BoxFuture<'_, ()> {
        if self.inner.is_modern() {
            return Box::pin(std::future::ready(()));
        }
        let (answered, answer) = oneshot::channel();
        let handle = tokio::spawn(Arc::clone(&self.inner).listen(answered));
        if let Some(former) = lock(&self.listener).replace(handle) {
            former.abort();
        }
        // Whether it was a yes or a no, or the task ended: there is nothing more to wait for.
        Box::pin(async move { drop(answer.await) })
    }
}

impl Inner {
    pub(super) fn is_modern(&self) -> bool {
        lock(&self.session).modern
    }

    /// What every request of this session carries.
    pub(super) fn session_headers(&self, accept: &'static str) -> HeaderMap {
        let session = lock(&self.session).clone();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(version) = session.version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        if let Some(id) = session.id {
            headers.insert(SESSION_ID, id);
        }
        headers
    }

    fn post_headers(&self, message: &Outgoing) -> Result<HeaderMap, TransportError> {
        if message.method == "initialize" {
            // A new session starts without anything of a former one.
            lock(&self.session).id = None;
        }
        let mut headers = self.session_headers("application/json, text/event-stream");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &message.headers {
            // Some of these names were chosen by the server, and it shall not choose ours.
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let header = header.filter(|name| name.as_str().starts_with("mcp-") && *name != SESSION_ID);
            let (Some(header), Ok(value)) = (header, HeaderValue::from_str(value)) else {
                return Err(TransportError::Unreachable(format!("the header {name:?} cannot be sent")));
            };
            headers.insert(header, value);
        }
        Ok(headers)
    }

    /// Sends a request and reads its answer, in a task of its own.
    fn start(self: &Arc<Self>, id: u64, message: Outgoing, headers: HeaderMap) {
        // Its number comes from the exchange, which bounds how many there are. The lock is held until the handle is in its
        // place, so that a task that ends at once finds it there.
        let mut tasks = lock(&self.tasks);
        let running = Running { inner: Arc::clone(self), id };
        let task = tokio::spawn(async move {
            if let Err(error) = running.inner.ask(id, message, headers).await {
                running.inner.exchange.fail(id, error);
            }
        });
        tasks.insert(id, task);
    }

    async fn post(&self, body: Vec<u8>, headers: HeaderMap) -> Result<Response, TransportError> {
        let session = headers.get(SESSION_ID).cloned();
        let answer = self.caller.call(Method::POST, &self.caller.target.url, headers, Some(body)).await;
        answer.map_err(|error| self.session_gone(error, session.as_ref()))
    }

    async fn ask(&self, id: u64, message: Outgoing, headers: HeaderMap) -> Result<(), TransportError> {
        let method = message.method;
        let response = self.post(message.body, headers).await?;
        if method == "initialize" {
            self.keep_session(response.headers());
        }
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(TransportError::NotTheProtocol(format!("{} to a request", response.status())));
        }
        match body_kind(response.headers())? {
            BodyKind::Json => {
                let body = self.caller.body(response).await?;
                if self.hear(id, body)? {
                    return Ok(());
                }
                Err(TransportError::NotTheProtocol("JSON that is not the answer".to_owned()))
            }
            BodyKind::Events => {
                let mut events =
                    EventStream::new(response, &self.caller.limits).taking_turns(&self.caller.turns);
                if method == "subscriptions/listen" {
                    events = events.long_lived();
                }
                self.read_answer(id, events).await
            }
        }
    }

    /// Reads events until the one that answers. None: the stream ended before.
    pub(super) async fn read_until_answer(
        &self,
        id: u64,
        events: &mut EventStream,
    ) -> Result<Option<()>, TransportError> {
        let outcome = events.read(|event| {
            // An event without data only says where to resume.
            if !event.is_message() || event.data.is_empty() {
                return Told::Noise;
            }
            match self.hear(id, event.data) {
                Ok(true) => Told::Done(Ok(())),
                Ok(false) => Told::Heard,
                Err(error) => Told::Done(Err(error)),
            }
        });
        outcome.await?.transpose()
    }

    /// Hands over what was said on the way to the answer of one request. Whether that answer was there. An answer to any other
    /// request is not believed: it has a way of its own.
    fn hear(&self, id: u64, text: String) -> Result<bool, TransportError> {
        let mut answered = false;
        for message in Message::read(text, &self.caller.limits)? {
            let message = addressed(message, id);
            answered |= matches!(&message, Message::Response { id: Some(_), .. });
            self.exchange.deliver_related(message, Some(id));
        }
        Ok(answered)
    }

    fn keep_session(&self, headers: &HeaderMap) {
        let mut id = headers.get(SESSION_ID).cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        lock(&self.session).id = id;
    }

    /// Whether an error means that the server does not know our session any more, which is then forgotten.
    fn session_gone(&self, error: TransportError, used: Option<&HeaderValue>) -> TransportError {
        if used.is_none() || !denies_session(&error) {
            return error;
        }
        let mut session = lock(&self.session);
        // Another request may have begun a new one meanwhile.
        if session.id.as_ref() == used {
            session.id = None;
        }
        TransportError::SessionGone
    }

    async fn end_session(&self) {
        let headers = self.session_headers("application/json");
        if lock(&self.session).id.take().is_none() {
            return;
        }
        let goodbye = self.caller.call(Method::DELETE, &self.caller.target.url, headers, None);
        // Only politeness: a server that does not know DELETE, or is slow, loses nothing we need.
        let _ = tokio::time::timeout(GOODBYE_LIMIT, goodbye).await;
    }
}

/// A request in its task. However the task ends, nobody waits for it in vain.
struct Running {
    inner: Arc<Inner>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only the handle: the task has ended, or is ending.
        drop(lock(&self.inner.tasks).remove(&self.id));
        if self.inner.exchange.awaits(self.id) {
            self.inner.exchange.fail(self.id, TransportError::Closed);
        }
    }
}

/// A message as heard on the way of one request: an answer is either to that request or to none. An error without a usable id
/// can only be about the one message that was posted.
fn addressed(message: Message, own: u64) -> Message {
    match message {
        Message::Response { id, outcome } => {
            let ours = id == Some(own) || (id.is_none() && outcome.is_err());
            Message::Response { id: ours.then_some(own), outcome }
        }
        other => other,
    }
}

/// Whether an answer to a request with a session id says that there is no such session: 404 by the specification, 400 with
/// words to that effect by the official TypeScript servers after a restart.
fn denies_session(error: &TransportError) -> bool {
    match error {
        TransportError::Status { status: 404, .. } => true,
        TransportError::Status { status: 400, error, excerpt, .. } => {
            let words = error.as_ref().map(|error| error.message.as_str()).or(excerpt.as_deref());
            let words = words.unwrap_or_default().to_ascii_lowercase();
            // A tool may fail with words on sessions of its own; only these say that ours was not even looked for.
            ["no valid session", "missing session id", "invalid session id", "session not found"]
                .iter()
                .any(|known| words.contains(known))
                || words.contains("server not initialized")
        }
        _ => false,
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "http_hostile_tests.rs"]
mod hostile_tests;
