//! HTTP+SSE of revision 2024-11-05: one stream for all server messages, and an endpoint to post to.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{
    Client, Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::{sync::oneshot, task::JoinSet};
use toolyard_core::BoxFuture;
use toolyard_core::sse::SseEvent;
use toolyard_mcp::{Message, WireLimits};
use url::Url;

use crate::transport::{
    error::TransportError,
    http::{
        client::{BodyKind, HttpClient, body_kind},
        event_stream::{EventOutcome, EventStream},
        headers::PROTOCOL_VERSION,
        target::{HttpTarget, display_url},
    },
    message::{OutgoingMessage, SendOutcome, Transport},
    requests::pending::PendingRequests,
};

#[derive(Debug)]
pub(crate) struct LegacySse {
    client: Arc<HttpClient>,
    requests: Arc<PendingRequests>,
    endpoint: Url,
    version: Mutex<Option<HeaderValue>>,
    /// The task that reads the stream. Dropping it closes the stream.
    reader: Mutex<JoinSet<()>>,
}

impl LegacySse {
    /// Opens the stream and waits for the server's endpoint, for `startup_timeout` at most. On an error, no message
    /// was sent.
    pub(crate) async fn connect(
        target: HttpTarget,
        requests: Arc<PendingRequests>,
        limits: WireLimits,
        client: Client,
        startup_timeout: Duration,
    ) -> Result<Self, TransportError> {
        let client = Arc::new(HttpClient::new(client, target, limits));
        let (endpoint_sender, endpoint) = oneshot::channel();
        let reader = StreamReader {
            client: Arc::clone(&client),
            requests: Arc::clone(&requests),
            endpoint_sender: Some(endpoint_sender),
        };
        let mut task = JoinSet::new();
        task.spawn(reader.run());
        let endpoint = match tokio::time::timeout(startup_timeout, endpoint).await {
            Ok(Ok(endpoint)) => endpoint?,
            Ok(Err(_)) => return Err(TransportError::Closed),
            Err(_) => {
                let seconds = startup_timeout.as_secs_f64();
                return Err(TransportError::Unreachable(format!("no endpoint event within {seconds} s")));
            }
        };
        Ok(Self { client, requests, endpoint, version: Mutex::default(), reader: Mutex::new(task) })
    }
}

impl Transport for LegacySse {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<SendOutcome, TransportError>> {
        Box::pin(async move {
            if let Some(error) = self.requests.closed() {
                return Err(error);
            }
            let mut headers = HeaderMap::new();
            self.client.target.add_caller_headers(&mut headers, message.identity.as_deref())?;
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            if let Some(version) = self.version.lock().clone() {
                headers.insert(PROTOCOL_VERSION, version);
            }
            let sent = self.client.call(Method::POST, &self.endpoint, headers, Some(message.body)).await;
            match (sent, message.id) {
                // The response came on the stream before the POST itself failed.
                (Err(_), Some(id)) if !self.requests.contains(id) => Ok(SendOutcome::Accepted),
                (sent, _) => sent.map(|_| SendOutcome::Accepted),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.requests.close(&TransportError::Closed);
            let mut reader = std::mem::take(&mut *self.reader.lock());
            reader.shutdown().await;
        })
    }

    fn set_protocol_version(&self, version: Option<&str>) {
        *self.version.lock() = version.and_then(|version| HeaderValue::from_str(version).ok());
    }
}

struct StreamReader {
    client: Arc<HttpClient>,
    requests: Arc<PendingRequests>,
    /// None once the endpoint is known.
    endpoint_sender: Option<oneshot::Sender<Result<Url, TransportError>>>,
}

impl StreamReader {
    async fn run(mut self) {
        let error = match self.read().await {
            Ok(()) => TransportError::ConnectionLost("the stream ended".to_owned()),
            Err(error) => error,
        };
        match self.endpoint_sender.take() {
            // The receiver may be gone.
            Some(sender) => drop(sender.send(Err(error))),
            None => self.requests.close(&error),
        }
    }

    async fn read(&mut self) -> Result<(), TransportError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let client = Arc::clone(&self.client);
        let response = client.call(Method::GET, &client.target.url, headers, None).await?;
        if body_kind(response.headers())? != BodyKind::Events {
            return Err(TransportError::UnexpectedResponse("JSON instead of events".to_owned()));
        }
        let stream_url = response.url.clone();
        let mut events = EventStream::new(response, &client.limits).long_lived();
        events.read(|event| self.handle_event(&stream_url, event)).await?.unwrap_or(Ok(()))
    }

    fn handle_event(
        &mut self,
        stream_url: &Url,
        event: SseEvent,
    ) -> EventOutcome<Result<(), TransportError>> {
        if event.event == "endpoint" {
            if let Some(sender) = self.endpoint_sender.take() {
                // The receiver may be gone.
                let _ = sender.send(endpoint_url(&self.client.target.url, stream_url, &event.data));
            }
            return EventOutcome::Ignored;
        }
        if !event.is_message() || event.data.is_empty() {
            return EventOutcome::Ignored;
        }
        match Message::read(event.data, &self.client.limits) {
            Ok(messages) => {
                messages.into_iter().for_each(|message| self.requests.deliver(message));
                EventOutcome::Message
            }
            // An unreadable message may have been the response to any request, so the connection ends.
            Err(error) => EventOutcome::Done(Err(error.into())),
        }
    }
}

/// The URL to post to, as named on a stream. Another origin is refused, because it would get our messages and headers.
fn endpoint_url(base: &Url, stream_url: &Url, endpoint: &str) -> Result<Url, TransportError> {
    let named = stream_url
        .join(endpoint.trim())
        .map_err(|_| TransportError::UnexpectedResponse("an invalid endpoint URL".to_owned()))?;
    if named.origin() != base.origin() {
        return Err(TransportError::CrossOriginEndpoint(display_url(&named)));
    }
    // Only path and query are the server's choice; credentials stay ours.
    let mut url = base.clone();
    url.set_path(named.path());
    url.set_query(named.query());
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
