//! Streamable HTTP: every message is a POST, and its answer is JSON or a stream of events.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{sync::oneshot, task::JoinHandle};
use toolyard_core::BoxFuture;

use super::{
    Exchange, HttpTarget, Outgoing, Sent, Transport, TransportError,
    exchange::Outcome,
    http_answer::HttpAnswer,
    http_caller::{BodyKind, HttpCaller, body_kind},
    http_events::{EventStream, Told},
    params::{METHOD, NAME},
};
use crate::wire::{Message, WireLimits};

const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// From this revision on there are no sessions, no resuming, and a closed stream is a cancelled request.
const FIRST_MODERN: &str = "2026-07-28";

pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// What every request of the modern era says, so that it is not made anew each time.
static KNOWN: [(&str, HeaderName); 2] =
    [(METHOD, HeaderName::from_static("mcp-method")), (NAME, HeaderName::from_static("mcp-name"))];
/// Few requests have more headers, and a table that grows is made anew.
const MOST_HEADERS: usize = 12;

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
        let caller = HttpCaller::new(client, target, limits);
        let inner = Inner { caller, exchange, session: Mutex::default() };
        Self { inner: Arc::new(inner), listener: Mutex::default() }
    }

    /// Whether the server gave us a session (legacy era only).
    pub fn has_session(&self) -> bool {
        lock(&self.inner.session).id.is_some()
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        if let Some(listener) = lock(&self.listener).take() {
            listener.abort();
        }
    }
}

impl Transport for StreamableHttp {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<Sent, TransportError>> {
        Box::pin(async move {
            if let Some(error) = self.inner.exchange.closed() {
                return Err(error);
            }
            let headers = self.inner.post_headers(&message)?;
            match message.id {
                Some(id) => self.inner.ask(id, message, headers).await.map(Sent::Answered),
                // Whoever tells something wants it told before the next message is sent.
                None => self.inner.post(message.body, headers).await.map(|_| Sent::Taken),
            }
        })
    }

    fn forget(&self, _id: u64) -> bool {
        // Whoever asked has dropped the request, and the connection with it.
        self.inner.is_modern()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.exchange.close(&TransportError::Closed);
            let listener = lock(&self.listener).take();
            if let Some(listener) = listener {
                listener.abort();
                // It was told to end; how it did is of no interest.
                let _ = listener.await;
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
        let mut headers = HeaderMap::with_capacity(MOST_HEADERS);
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
            let known = KNOWN.iter().find(|(known, _)| known == name).map(|(_, header)| header.clone());
            let header = known.or_else(|| HeaderName::from_bytes(name.as_bytes()).ok());
            let header = header.filter(|name| name.as_str().starts_with("mcp-") && *name != SESSION_ID);
            let (Some(header), Ok(value)) = (header, HeaderValue::from_str(value)) else {
                return Err(TransportError::Unreachable(format!("the header {name:?} cannot be sent")));
            };
            headers.insert(header, value);
        }
        Ok(headers)
    }

    async fn post(&self, body: Vec<u8>, headers: HeaderMap) -> Result<HttpAnswer, TransportError> {
        let session = headers.get(SESSION_ID).cloned();
        let answer = self.caller.call(Method::POST, &self.caller.target.url, headers, Some(body)).await;
        answer.map_err(|error| self.session_gone(error, session.as_ref()))
    }

    /// Sends a request and reads its answer.
    async fn ask(&self, id: u64, message: Outgoing, headers: HeaderMap) -> Result<Outcome, TransportError> {
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
                let not_it = || TransportError::NotTheProtocol("JSON that is not the answer".to_owned());
                self.hear(id, body)?.ok_or_else(not_it)
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
    ) -> Result<Option<Outcome>, TransportError> {
        let outcome = events.read(|event| {
            // An event without data only says where to resume.
            if !event.is_message() || event.data.is_empty() {
                return Told::Noise;
            }
            match self.hear(id, event.data) {
                Ok(Some(outcome)) => Told::Done(Ok(outcome)),
                Ok(None) => Told::Heard,
                Err(error) => Told::Done(Err(error)),
            }
        });
        outcome.await?.transpose()
    }

    /// Hands over what was said on the way to the answer of one request, and gives that answer if it was there. An answer to
    /// any other request is not believed: it has a way of its own.
    fn hear(&self, id: u64, text: String) -> Result<Option<Outcome>, TransportError> {
        let mut answer = None;
        for message in Message::read(text, &self.caller.limits)? {
            let unasked = match message {
                Message::Response { id: said, outcome }
                    if answer.is_none() && answers(id, said, &outcome) =>
                {
                    answer = Some(outcome);
                    continue;
                }
                Message::Response { outcome, .. } => Message::Response { id: None, outcome },
                other => other,
            };
            self.exchange.deliver_related(unasked, Some(id));
        }
        Ok(answer)
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

/// Whether what came on the way of one request is its answer. An error without a usable id can only be about the one message
/// that was posted.
fn answers(own: u64, said: Option<u64>, outcome: &Outcome) -> bool {
    said == Some(own) || (said.is_none() && outcome.is_err())
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
