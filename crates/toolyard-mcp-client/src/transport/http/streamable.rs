//! Streamable HTTP: every message is a POST, and its response is JSON or an event stream.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{
    Client, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::{sync::oneshot, task::JoinSet};
use toolyard_core::BoxFuture;
use toolyard_mcp::{Message, ResponseId, WireLimits, versions::MODERN_REVISION};

use crate::transport::{
    error::TransportError,
    http::{
        client::{BodyKind, HttpClient, body_kind},
        event_stream::{EventOutcome, EventStream},
        headers::{METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION, SESSION_ID},
        response::HttpResponse,
        target::HttpTarget,
    },
    message::{OutgoingMessage, SendOutcome, Transport},
    requests::pending::{PendingRequests, RpcOutcome},
};

const DELETE_SESSION_TIMEOUT: Duration = Duration::from_secs(1);
/// Header names of every modern request, parsed once.
static COMMON_HEADERS: [(&str, HeaderName); 2] = [
    (METHOD_HEADER, HeaderName::from_static("mcp-method")),
    (NAME_HEADER, HeaderName::from_static("mcp-name")),
];
/// Few requests have more headers, and growing the map is slow.
const HEADER_CAPACITY: usize = 12;

#[derive(Debug)]
pub(crate) struct StreamableHttp {
    connection: Arc<HttpConnection>,
    /// The task that reads unsolicited messages, which ends with the connection.
    listener: Mutex<JoinSet<()>>,
}

/// What the transport and its listener task share.
#[derive(Debug)]
pub(super) struct HttpConnection {
    pub(super) client: HttpClient,
    pub(super) requests: Arc<PendingRequests>,
    session: Mutex<HttpSession>,
}

#[derive(Debug, Clone, Default)]
struct HttpSession {
    id: Option<HeaderValue>,
    /// Whether the server gave the latest session an id; stays set when that session expires.
    had_id: bool,
    version: Option<HeaderValue>,
    /// Modern revisions have no sessions and no resumption, and closing a stream cancels its request.
    is_modern: bool,
}

impl StreamableHttp {
    /// A connection to `target`; nothing is sent yet.
    pub(crate) fn new(
        target: HttpTarget,
        requests: Arc<PendingRequests>,
        limits: WireLimits,
        client: Client,
    ) -> Self {
        let client = HttpClient::new(client, target, limits);
        let connection = HttpConnection { client, requests, session: Mutex::default() };
        Self { connection: Arc::new(connection), listener: Mutex::default() }
    }

    #[cfg(test)]
    fn has_session(&self) -> bool {
        self.connection.session.lock().id.is_some()
    }
}

impl Transport for StreamableHttp {
    fn relates_requests(&self) -> bool {
        true
    }

    fn has_state(&self) -> bool {
        self.connection.session.lock().had_id
    }

    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<SendOutcome, TransportError>> {
        Box::pin(async move {
            if let Some(error) = self.connection.requests.closed() {
                return Err(error);
            }
            let headers = self.connection.post_headers(&message)?;
            match message.id {
                Some(id) => {
                    self.connection.send_request(id, message, headers).await.map(SendOutcome::Response)
                }
                None => self.connection.post(message.body, headers).await.map(|_| SendOutcome::Accepted),
            }
        })
    }

    fn cancels_on_drop(&self) -> bool {
        self.connection.is_modern()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.connection.requests.close(&TransportError::Closed);
            let mut listener = std::mem::take(&mut *self.listener.lock());
            listener.shutdown().await;
            self.connection.delete_session().await;
        })
    }

    fn set_protocol_version(&self, version: Option<&str>) {
        let mut session = self.connection.session.lock();
        session.is_modern = version.is_some_and(|version| version >= MODERN_REVISION);
        session.version = version.and_then(|version| HeaderValue::from_str(version).ok());
    }

    fn open_listen_stream(&self) -> BoxFuture<'_, ()> {
        if self.connection.is_modern() {
            return Box::pin(std::future::ready(()));
        }
        let (opened_sender, opened) = oneshot::channel();
        let mut listener = self.listener.lock();
        listener.abort_all();
        listener.spawn(Arc::clone(&self.connection).listen(opened_sender));
        // An error means that the task has ended.
        Box::pin(async move { drop(opened.await) })
    }
}

impl HttpConnection {
    pub(super) fn is_modern(&self) -> bool {
        self.session.lock().is_modern
    }

    /// The headers of every request in this session.
    pub(super) fn session_headers(&self, accept: &'static str) -> HeaderMap {
        let session = self.session.lock().clone();
        let mut headers = HeaderMap::with_capacity(HEADER_CAPACITY);
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(version) = session.version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        if let Some(id) = session.id {
            headers.insert(SESSION_ID, id);
        }
        headers
    }

    fn post_headers(&self, message: &OutgoingMessage) -> Result<HeaderMap, TransportError> {
        if message.method == "initialize" {
            // A new session must not carry the id of a previous one.
            self.session.lock().id = None;
        }
        let mut headers = self.session_headers("application/json, text/event-stream");
        self.client.target.add_caller_headers(&mut headers, message.identity.as_deref())?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &message.headers {
            // The server chose some of these names; it must not override other headers.
            let common =
                COMMON_HEADERS.iter().find(|(known, _)| known == name).map(|(_, header)| header.clone());
            let header = common.or_else(|| HeaderName::from_bytes(name.as_bytes()).ok());
            let header = header.filter(|name| name.as_str().starts_with("mcp-") && *name != SESSION_ID);
            let (Some(header), Ok(value)) = (header, HeaderValue::from_str(value)) else {
                return Err(TransportError::Unreachable(format!("invalid header {name:?}")));
            };
            headers.insert(header, value);
        }
        Ok(headers)
    }

    async fn post(&self, body: Vec<u8>, headers: HeaderMap) -> Result<HttpResponse, TransportError> {
        let session = headers.get(SESSION_ID).cloned();
        let response = self.client.call(Method::POST, &self.client.target.url, headers, Some(body)).await;
        response.map_err(|error| self.check_session(error, session.as_ref()))
    }

    async fn send_request(
        &self,
        id: u64,
        message: OutgoingMessage,
        headers: HeaderMap,
    ) -> Result<RpcOutcome, TransportError> {
        let OutgoingMessage { method, identity, .. } = message;
        let response = self.post(message.body, headers).await?;
        if method == "initialize" {
            self.store_session_id(response.headers());
        }
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(TransportError::UnexpectedResponse(format!("status {}", response.status())));
        }
        match body_kind(response.headers())? {
            BodyKind::Json => {
                let body = self.client.read_body(response).await?;
                let no_response =
                    || TransportError::UnexpectedResponse("JSON without the response".to_owned());
                self.deliver_messages(id, body)?.ok_or_else(no_response)
            }
            BodyKind::Events => {
                let mut events = EventStream::new(response, &self.client.limits)
                    .with_large_body_permits(&self.client.large_body_permits);
                if method == "subscriptions/listen" {
                    events = events.long_lived();
                }
                self.read_response(id, events, identity.as_deref()).await
            }
        }
    }

    /// Reads events until the response. None if the stream ends before.
    pub(super) async fn read_until_response(
        &self,
        id: u64,
        events: &mut EventStream,
    ) -> Result<Option<RpcOutcome>, TransportError> {
        let outcome = events.read(|event| {
            // An event without data only carries an id to resume after.
            if !event.is_message() || event.data.is_empty() {
                return EventOutcome::Ignored;
            }
            match self.deliver_messages(id, event.data) {
                Ok(Some(outcome)) => EventOutcome::Done(Ok(outcome)),
                Ok(None) => EventOutcome::Message,
                Err(error) => EventOutcome::Done(Err(error)),
            }
        });
        outcome.await?.transpose()
    }

    /// Delivers messages from the stream of one request and returns its response, if that is among them. A response to
    /// any other request is dropped: it cannot belong on this stream.
    fn deliver_messages(&self, id: u64, text: String) -> Result<Option<RpcOutcome>, TransportError> {
        let mut response = None;
        for message in Message::read(text, &self.client.limits)? {
            let other = match message {
                Message::Response { id: response_id, outcome }
                    if response.is_none() && is_response_to(id, response_id.as_ref(), &outcome) =>
                {
                    response = Some(outcome);
                    continue;
                }
                Message::Response { outcome, .. } => Message::Response { id: None, outcome },
                other => other,
            };
            self.requests.deliver_related(other, Some(id));
        }
        Ok(response)
    }

    fn store_session_id(&self, headers: &HeaderMap) {
        let mut id = headers.get(SESSION_ID).cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        let mut session = self.session.lock();
        session.had_id = id.is_some();
        session.id = id;
    }

    /// Turns an error about an unknown session into [`TransportError::SessionExpired`] and forgets the session.
    fn check_session(&self, error: TransportError, sent_id: Option<&HeaderValue>) -> TransportError {
        if sent_id.is_none() || !is_unknown_session(&error) {
            return error;
        }
        let mut session = self.session.lock();
        // Another request may have started a new session meanwhile.
        if session.id.as_ref() == sent_id {
            session.id = None;
        }
        TransportError::SessionExpired
    }

    async fn delete_session(&self) {
        let headers = self.session_headers("application/json");
        if self.session.lock().id.take().is_none() {
            return;
        }
        let request = self.client.call(Method::DELETE, &self.client.target.url, headers, None);
        // The server may not support DELETE; nothing depends on it.
        let _ = tokio::time::timeout(DELETE_SESSION_TIMEOUT, request).await;
    }
}

/// Whether a response on the stream of a request is its own. An error without a usable id can only be about the message
/// that was posted.
fn is_response_to(request: u64, id: Option<&ResponseId>, outcome: &RpcOutcome) -> bool {
    let id = id.and_then(ResponseId::number);
    id == Some(request) || (id.is_none() && outcome.is_err())
}

/// Whether an error says that the session does not exist: 404 by the specification; 400 with one of these texts by the
/// official TypeScript servers after a restart.
fn is_unknown_session(error: &TransportError) -> bool {
    match error {
        TransportError::Status { status: 404, .. } => true,
        TransportError::Status { status: 400, error, excerpt, .. } => {
            let text = error.as_ref().map(|error| error.message.as_str()).or(excerpt.as_deref());
            let text = text.unwrap_or_default().to_ascii_lowercase();
            // A tool may fail with a text about sessions of its own; only these say that the request was not processed.
            [
                "no valid session",
                "missing session id",
                "invalid session id",
                "session not found",
                "server not initialized",
            ]
            .iter()
            .any(|known| text.contains(known))
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "streamable_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "streamable_hostile_tests.rs"]
mod hostile_tests;
