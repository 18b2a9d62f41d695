//! Event streams of legacy revisions that outlive one POST: resumed responses, and unsolicited messages.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use tokio::{sync::oneshot, time::sleep};
use toolyard_core::CallerIdentity;
use toolyard_mcp::Message;

use crate::transport::{
    error::TransportError,
    http::{
        client::{BodyKind, body_kind},
        event_stream::{EventOutcome, EventStream},
        response::HttpResponse,
        streamable::HttpConnection,
    },
    requests::pending::RpcOutcome,
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The delay before resuming, if the server does not name one. Doubled after each failure.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// A minimum, so that a stream that ends at once does not cause a busy loop.
const MIN_DELAY: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The longest delay that a server may ask for.
const MAX_SERVER_DELAY: Duration = Duration::from_secs(600);
/// Consecutive failures after which a response is given up.
const MAX_FAILURES: u32 = 5;

#[derive(Debug, Default)]
struct ResumeState {
    last_event_id: Option<String>,
    retry: Option<Duration>,
    failures: u32,
}

impl ResumeState {
    fn update(&mut self, events: &EventStream) {
        let (id, retry) = events.resume_point();
        if let Some(id) = id {
            self.last_event_id = Some(id.to_owned());
        }
        self.retry = retry.or(self.retry);
    }

    /// What the server asked for, or a backoff after failures if that is longer.
    fn delay(&self) -> Duration {
        let requested = self.retry.unwrap_or(DEFAULT_DELAY).min(MAX_SERVER_DELAY);
        let doubled = DEFAULT_DELAY.saturating_mul(1_u32 << self.failures.min(6)).min(MAX_BACKOFF);
        // Between half and the whole of it, so that many streams do not resume at once.
        let backoff =
            if self.failures == 0 { MIN_DELAY } else { doubled.mul_f64(0.5 + fastrand::f64() / 2.0) };
        requested.max(backoff)
    }
}

impl HttpConnection {
    /// Reads the response to one request from its stream and, where events have ids, from the streams that resume it.
    pub(super) async fn read_response(
        &self,
        id: u64,
        mut events: EventStream,
        identity: Option<&CallerIdentity>,
    ) -> Result<RpcOutcome, TransportError> {
        let mut resume = ResumeState::default();
        loop {
            let lost = match self.read_until_response(id, &mut events).await {
                Ok(Some(outcome)) => {
                    events.release();
                    return Ok(outcome);
                }
                Ok(None) => TransportError::ConnectionLost("the stream ended before the response".to_owned()),
                Err(error @ TransportError::ConnectionLost(_)) => error,
                Err(error) => return Err(error),
            };
            resume.update(&events);
            if self.is_modern() || resume.last_event_id.is_none() {
                return Err(lost);
            }
            // Closes the old connection.
            drop(events);
            events = self.resume(&mut resume, identity).await?;
        }
    }

    async fn resume(
        &self,
        resume: &mut ResumeState,
        identity: Option<&CallerIdentity>,
    ) -> Result<EventStream, TransportError> {
        loop {
            sleep(resume.delay()).await;
            match self.open_events(resume.last_event_id.as_deref(), identity).await {
                Ok(response) => {
                    resume.failures = 0;
                    let events = EventStream::new(response, &self.client.limits);
                    return Ok(events.with_large_body_permits(&self.client.large_body_permits));
                }
                // Always `ConnectionLost`, because the request itself was sent.
                Err(error) if is_permanent(&error) || resume.failures >= MAX_FAILURES => {
                    return Err(TransportError::ConnectionLost(format!(
                        "the stream ended before the response and could not be resumed ({error})"
                    )));
                }
                Err(_) => resume.failures += 1,
            }
        }
    }

    /// Opens a stream of events, on behalf of the caller whose response is on it.
    async fn open_events(
        &self,
        last_event_id: Option<&str>,
        identity: Option<&CallerIdentity>,
    ) -> Result<HttpResponse, TransportError> {
        let mut headers = self.session_headers("text/event-stream");
        self.client.target.add_caller_headers(&mut headers, identity)?;
        if let Some(id) = last_event_id {
            let id = HeaderValue::from_bytes(id.as_bytes())
                .map_err(|_| TransportError::UnexpectedResponse("an invalid event id".to_owned()))?;
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.client.call(Method::GET, &self.client.target.url, headers, None).await?;
        match body_kind(response.headers())? {
            BodyKind::Events => Ok(response),
            BodyKind::Json => Err(TransportError::UnexpectedResponse("JSON instead of events".to_owned())),
        }
    }

    /// Delivers unsolicited messages for as long as the server offers a stream of them. `opened` is dropped once the
    /// server has accepted or declined.
    pub(super) async fn listen(self: Arc<Self>, opened: oneshot::Sender<()>) {
        let mut resume = ResumeState::default();
        let mut opened = Some(opened);
        loop {
            let response = self.open_events(resume.last_event_id.as_deref(), None).await;
            drop(opened.take());
            match response {
                Ok(response) => {
                    let mut events = EventStream::new(response, &self.client.limits).long_lived();
                    let outcome =
                        events.read(|event| self.deliver_event(event.is_message(), event.data)).await;
                    resume.update(&events);
                    resume.failures = if outcome.is_ok() { 0 } else { resume.failures.saturating_add(1) };
                }
                Err(error) if is_permanent(&error) => {
                    tracing::debug!(%error, "the server offers no stream of unsolicited messages");
                    return;
                }
                Err(_) => resume.failures = resume.failures.saturating_add(1),
            }
            sleep(resume.delay()).await;
        }
    }

    /// Delivers an event of the listen stream. Responses do not belong there and are dropped.
    fn deliver_event(&self, is_message: bool, data: String) -> EventOutcome<()> {
        if !is_message || data.is_empty() {
            return EventOutcome::Ignored;
        }
        let Ok(messages) = Message::read(data, &self.client.limits) else { return EventOutcome::Ignored };
        for message in messages {
            self.requests.deliver(match message {
                Message::Response { outcome, .. } => Message::Response { id: None, outcome },
                other => other,
            });
        }
        EventOutcome::Message
    }
}

/// Whether the same request would fail again.
fn is_permanent(error: &TransportError) -> bool {
    match error {
        TransportError::Status { status, .. } => {
            (400..500).contains(status) && !matches!(status, 408 | 425 | 429)
        }
        TransportError::Redirect(_) | TransportError::UnexpectedResponse(_) => true,
        _ => false,
    }
}
