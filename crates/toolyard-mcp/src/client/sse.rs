//! The HTTP+SSE transport of 2024-11-05: one stream for everything the server says, and an address to post to.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::{
    Client, Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::{sync::oneshot, task::JoinHandle};
use toolyard_core::BoxFuture;
use url::Url;

use super::{
    Exchange, HttpTarget, Outgoing, Sent, Transport, TransportError,
    http::{PROTOCOL_VERSION, lock},
    http_caller::{BodyKind, HttpCaller, body_kind},
    http_events::{EventStream, Told},
    http_target::shown,
};
use crate::wire::{Message, SseEvent, WireLimits};

/// A connection to one server over HTTP+SSE.
#[derive(Debug)]
pub struct LegacySse {
    caller: Arc<HttpCaller>,
    exchange: Arc<Exchange>,
    endpoint: Url,
    version: Mutex<Option<HeaderValue>>,
    reader: Mutex<Option<ReaderTask>>,
}

impl LegacySse {
    /// Opens the stream and waits until the server names the address to post to, for `startup` at most. Any failure means
    /// that no message was sent.
    pub async fn connect(
        target: HttpTarget,
        exchange: Arc<Exchange>,
        limits: WireLimits,
        client: Client,
        startup: Duration,
    ) -> Result<Self, TransportError> {
        let caller = Arc::new(HttpCaller::new(client, target, limits));
        let (tell, told) = oneshot::channel();
        let reader =
            Reader { caller: Arc::clone(&caller), exchange: Arc::clone(&exchange), tell: Some(tell) };
        let reader = ReaderTask(tokio::spawn(reader.run()));
        let endpoint = match tokio::time::timeout(startup, told).await {
            Ok(Ok(endpoint)) => endpoint?,
            Ok(Err(_)) => return Err(TransportError::Closed),
            Err(_) => {
                let waited = startup.as_secs_f64();
                return Err(TransportError::Unreachable(format!("no endpoint event within {waited} s")));
            }
        };
        Ok(Self { caller, exchange, endpoint, version: Mutex::default(), reader: Mutex::new(Some(reader)) })
    }
}

impl Transport for LegacySse {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<Sent, TransportError>> {
        Box::pin(async move {
            if let Some(error) = self.exchange.closed() {
                return Err(error);
            }
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            if let Some(version) = lock(&self.version).clone() {
                headers.insert(PROTOCOL_VERSION, version);
            }
            let sent = self.caller.call(Method::POST, &self.endpoint, headers, Some(message.body)).await;
            match (sent, message.id) {
                // The answer came on the stream before the POST itself failed: nobody waits any more.
                (Err(_), Some(id)) if !self.exchange.awaits(id) => Ok(Sent::Taken),
                (sent, _) => sent.map(|_| Sent::Taken),
            }
        })
    }

    fn forget(&self, _id: u64) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.exchange.close(&TransportError::Closed);
            let reader = lock(&self.reader).take();
            if let Some(reader) = reader {
                reader.stop().await;
            }
        })
    }

    fn set_protocol_version(&self, version: Option<&str>) {
        *lock(&self.version) = version.and_then(|version| HeaderValue::from_str(version).ok());
    }
}

/// The task that reads the stream; the stream is closed when this is dropped.
#[derive(Debug)]
struct ReaderTask(JoinHandle<()>);

impl ReaderTask {
    async fn stop(mut self) {
        self.0.abort();
        // It was told to end; how it did is of no interest.
        let _ = (&mut self.0).await;
    }
}

impl Drop for ReaderTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads the one stream of a connection.
struct Reader {
    caller: Arc<HttpCaller>,
    exchange: Arc<Exchange>,
    /// Who waits for the endpoint, until it is known.
    tell: Option<oneshot::Sender<Result<Url, TransportError>>>,
}

impl Reader {
    async fn run(mut self) {
        let error = match self.read().await {
            Ok(()) => TransportError::Broken("the stream ended".to_owned()),
            Err(error) => error,
        };
        match self.tell.take() {
            // Whoever gave up waiting need not hear it.
            Some(tell) => drop(tell.send(Err(error))),
            None => self.exchange.close(&error),
        }
    }

    async fn read(&mut self) -> Result<(), TransportError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let caller = Arc::clone(&self.caller);
        let response = caller.call(Method::GET, &caller.target.url, headers, None).await?;
        if body_kind(response.headers())? != BodyKind::Events {
            return Err(TransportError::NotTheProtocol("JSON instead of events".to_owned()));
        }
        let opened_at = response.url.clone();
        let mut events = EventStream::new(response, &caller.limits).long_lived();
        events.read(|event| self.hear(&opened_at, event)).await?.unwrap_or(Ok(()))
    }

    fn hear(&mut self, opened_at: &Url, event: SseEvent) -> Told<Result<(), TransportError>> {
        if event.event == "endpoint" {
            if let Some(tell) = self.tell.take() {
                // Whoever gave up waiting has closed the stream too.
                let _ = tell.send(endpoint_url(&self.caller.target.url, opened_at, &event.data));
            }
            return Told::Noise;
        }
        if !event.is_message() || event.data.is_empty() {
            return Told::Noise;
        }
        match Message::read(event.data, &self.caller.limits) {
            Ok(messages) => {
                messages.into_iter().for_each(|message| self.exchange.deliver(message));
                Told::Heard
            }
            // Nobody can say whose answer that was.
            Err(error) => Told::Done(Err(error.into())),
        }
    }
}

/// Where to post to, as named on a stream that was opened at a place. An address at another origin would get our messages and
/// headers, so it is refused.
fn endpoint_url(base: &Url, opened_at: &Url, endpoint: &str) -> Result<Url, TransportError> {
    let named = opened_at
        .join(endpoint.trim())
        .map_err(|_| TransportError::NotTheProtocol("an endpoint that is no address".to_owned()))?;
    if named.origin() != base.origin() {
        return Err(TransportError::ForeignEndpoint(shown(&named)));
    }
    // Only where on this server; what it says about users is not ours to send.
    let mut url = base.clone();
    url.set_path(named.path());
    url.set_query(named.query());
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
