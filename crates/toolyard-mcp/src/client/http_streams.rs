//! Streams of the legacy era that outlive one POST: an answer that is fetched later, and what a server tells unasked.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use tokio::{sync::oneshot, time::sleep};

use super::{
    TransportError,
    exchange::Outcome,
    http::Inner,
    http_answer::HttpAnswer,
    http_caller::{BodyKind, body_kind},
    http_events::{EventStream, Told},
};
use crate::wire::Message;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long to wait before coming back to a server that did not say.
const USUAL_WAIT: Duration = Duration::from_secs(1);
/// However eager the server: a stream that ends at once must not keep us busy.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A server that asks to be left alone for longer than this will not be waited for.
const LONGEST_RETRY: Duration = Duration::from_secs(600);
/// How often in a row fetching an answer may fail.
const MOST_FAILURES: u32 = 5;

/// Where a stream was left, and when to come back.
#[derive(Debug, Default)]
struct Mark {
    last_event_id: Option<String>,
    retry: Option<Duration>,
    failures: u32,
}

impl Mark {
    fn note(&mut self, events: &EventStream) {
        let (id, retry) = events.resume_point();
        if let Some(id) = id {
            self.last_event_id = Some(id.to_owned());
        }
        self.retry = retry.or(self.retry);
    }

    /// What the server asked for, and more after each failure in a row.
    fn wait(&self) -> Duration {
        let asked = self.retry.unwrap_or(USUAL_WAIT).min(LONGEST_RETRY);
        let doubled = USUAL_WAIT.saturating_mul(1_u32 << self.failures.min(6)).min(LONGEST_WAIT);
        let backoff =
            if self.failures == 0 { SHORTEST_WAIT } else { doubled.mul_f64(0.5 + fastrand::f64() / 2.0) };
        asked.max(backoff)
    }
}

impl Inner {
    /// Reads the answer to one request from its stream and, where the server gave ids to its events, from the streams that
    /// continue it.
    pub(super) async fn read_answer(
        &self,
        id: u64,
        mut events: EventStream,
    ) -> Result<Outcome, TransportError> {
        let mut mark = Mark::default();
        loop {
            let ended = match self.read_until_answer(id, &mut events).await {
                Ok(Some(outcome)) => {
                    events.leave();
                    return Ok(outcome);
                }
                Ok(None) => TransportError::Broken("the stream ended before the answer".to_owned()),
                Err(error @ TransportError::Broken(_)) => error,
                Err(error) => return Err(error),
            };
            mark.note(&events);
            if self.is_modern() || mark.last_event_id.is_none() {
                return Err(ended);
            }
            // The old connection is of no use any more.
            drop(events);
            events = self.resume(&mut mark).await?;
        }
    }

    /// The stream that continues one that ended.
    async fn resume(&self, mark: &mut Mark) -> Result<EventStream, TransportError> {
        loop {
            sleep(mark.wait()).await;
            match self.get_events(mark.last_event_id.as_deref()).await {
                Ok(response) => {
                    mark.failures = 0;
                    let events = EventStream::new(response, &self.caller.limits);
                    return Ok(events.taking_turns(&self.caller.turns));
                }
                // The request itself was sent, whatever happens to the fetching of its answer.
                Err(error) if is_final(&error) || mark.failures >= MOST_FAILURES => {
                    return Err(TransportError::Broken(format!(
                        "the stream ended before the answer and could not be resumed ({error})"
                    )));
                }
                Err(_) => mark.failures += 1,
            }
        }
    }

    async fn get_events(&self, last_event_id: Option<&str>) -> Result<HttpAnswer, TransportError> {
        let mut headers = self.session_headers("text/event-stream");
        if let Some(id) = last_event_id {
            let id = HeaderValue::from_bytes(id.as_bytes()).map_err(|_| {
                TransportError::NotTheProtocol("an event id that cannot be a header".to_owned())
            })?;
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.caller.call(Method::GET, &self.caller.target.url, headers, None).await?;
        match body_kind(response.headers())? {
            BodyKind::Events => Ok(response),
            BodyKind::Json => Err(TransportError::NotTheProtocol("JSON instead of events".to_owned())),
        }
    }

    /// Hears what the server tells unasked, for as long as it offers that. `answered` is dropped once the server has said
    /// whether it does.
    pub(super) async fn listen(self: Arc<Self>, answered: oneshot::Sender<()>) {
        let mut mark = Mark::default();
        let mut answered = Some(answered);
        loop {
            let response = self.get_events(mark.last_event_id.as_deref()).await;
            drop(answered.take());
            match response {
                Ok(response) => {
                    let mut events = EventStream::new(response, &self.caller.limits).long_lived();
                    let outcome = events.read(|event| self.overhear(event.is_message(), event.data)).await;
                    mark.note(&events);
                    mark.failures = if outcome.is_ok() { 0 } else { mark.failures.saturating_add(1) };
                }
                Err(error) if is_final(&error) => {
                    tracing::debug!(%error, "the server offers no stream to listen to");
                    return;
                }
                Err(_) => mark.failures = mark.failures.saturating_add(1),
            }
            sleep(mark.wait()).await;
        }
    }

    /// What came on the stream that answers nothing: answers on it are made up.
    fn overhear(&self, is_message: bool, data: String) -> Told<()> {
        if !is_message || data.is_empty() {
            return Told::Noise;
        }
        let Ok(messages) = Message::read(data, &self.caller.limits) else { return Told::Noise };
        for message in messages {
            self.exchange.deliver(match message {
                Message::Response { outcome, .. } => Message::Response { id: None, outcome },
                other => other,
            });
        }
        Told::Heard
    }
}

/// Whether asking again would bring the same answer.
fn is_final(error: &TransportError) -> bool {
    match error {
        TransportError::Status { status, .. } => {
            (400..500).contains(status) && !matches!(status, 408 | 425 | 429)
        }
        TransportError::Redirect(_) | TransportError::NotTheProtocol(_) => true,
        _ => false,
    }
}
