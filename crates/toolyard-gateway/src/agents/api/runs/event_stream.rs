//! The updates of a run as server-sent events: first those in the log, then live ones.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};
use toolyard_agent::{RunEnd, RunEvent, RunUpdate, replay_updates};
use toolyard_core::{RunId, text::ChunkSanitizer};

use super::events::{ApiEventBody, RunEventMapper};
use crate::agents::{active_runs::ActiveRuns, api::error::sanitized_json};

/// How often the log is polled if this process does not drive the run.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often other processes of the cluster are asked for a run that none seemed to drive.
const SUBSCRIPTION_INTERVAL: Duration = Duration::from_secs(1);

/// The events of a run from number `from_number` on, until the run is over.
pub(super) fn run_events(
    runs: Arc<ActiveRuns>,
    mapper: RunEventMapper,
    from_number: i64,
) -> impl Stream<Item = Bytes> + Send {
    let reader = RunEventReader {
        runs,
        run: mapper.run.clone(),
        next_number: from_number,
        ready: VecDeque::new(),
        live: None,
        encoder: UpdateEncoder::new(mapper),
        next_subscription: Instant::now(),
        is_over: false,
    };
    stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((event, reader))
    })
}

struct RunEventReader {
    runs: Arc<ActiveRuns>,
    run: RunId,
    /// The number of the first event that was not read yet.
    next_number: i64,
    ready: VecDeque<Bytes>,
    /// Updates of the run, if this process drives it, or another one of the cluster.
    live: Option<Receiver<Arc<RunUpdate>>>,
    encoder: UpdateEncoder,
    /// When other processes of the cluster are asked for the run again.
    next_subscription: Instant,
    is_over: bool,
}

impl RunEventReader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            match &mut self.live {
                None => self.poll().await,
                Some(live) => match live.recv().await {
                    Ok(update) => self.push(&update),
                    // The log has what was missed.
                    Err(RecvError::Lagged(_)) => self.read_log().await,
                    Err(RecvError::Closed) => {
                        self.live = None;
                        self.read_log().await;
                    }
                },
            }
        }
    }

    /// Reads the log, and subscribes if this process drives the run, or another one of the cluster.
    async fn poll(&mut self) {
        // Subscribes before it reads the log, so that no update is missed in between.
        let runs = Arc::clone(&self.runs);
        let mut run_added = std::pin::pin!(runs.run_added());
        run_added.as_mut().enable();
        self.live = runs.find(&self.run).map(|active| active.subscribe());
        if self.live.is_none() && self.next_subscription <= Instant::now() {
            self.live = runs.subscribe_at_peer(&self.run).await;
            self.next_subscription = Instant::now() + SUBSCRIPTION_INTERVAL;
        }
        self.read_log().await;
        if self.ready.is_empty() && !self.is_over && self.live.is_none() {
            let _ = tokio::time::timeout(POLL_INTERVAL, run_added).await;
        }
    }

    async fn read_log(&mut self) {
        match self.runs.config.log.events(&self.run, self.next_number).await {
            Ok(events) => replay_updates(&events).for_each(|update| self.push(&update)),
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "run log cannot be read; event stream closed");
                self.is_over = true;
            }
        }
    }

    fn push(&mut self, update: &RunUpdate) {
        if let RunUpdate::Event { number, event, .. } = update {
            if *number < self.next_number {
                return;
            }
            self.next_number = number + 1;
            self.is_over =
                matches!(event, RunEvent::Ended { end, .. } if !matches!(end, RunEnd::Suspended { .. }));
        }
        self.ready.extend(self.encoder.encode(update));
    }
}

/// Encodes updates as server-sent events without unsafe characters.
#[derive(Debug)]
struct UpdateEncoder {
    mapper: RunEventMapper,
    answer: ChunkSanitizer,
    reasoning: ChunkSanitizer,
}

impl UpdateEncoder {
    fn new(mapper: RunEventMapper) -> Self {
        Self { mapper, answer: ChunkSanitizer::default(), reasoning: ChunkSanitizer::default() }
    }

    /// An update as a server-sent event. Logged events have their number as id, so that a client can resume after them.
    fn encode(&mut self, update: &RunUpdate) -> Option<Bytes> {
        let mut event = self.mapper.event(update.clone())?;
        let is_delta = match &mut event.body {
            ApiEventBody::AnswerDelta { text, .. } => {
                *text = self.answer.sanitize(text);
                true
            }
            ApiEventBody::ReasoningDelta { text } => {
                *text = self.reasoning.sanitize(text);
                true
            }
            _ => false,
        };
        let data = serde_json::to_value(&event).ok()?;
        let id = event.number.map(|number| format!("id: {number}\n")).unwrap_or_default();
        let name = data.get("type").and_then(serde_json::Value::as_str)?;
        // The beginning of a piece can only be judged with the end of the one before.
        let text = if is_delta { data.to_string() } else { sanitized_json(&data) };
        Some(Bytes::from(format!("{id}event: {name}\ndata: {text}\n\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_have_no_hidden_text() {
        let mut encoder = UpdateEncoder::new(RunEventMapper { run: "01J".into(), created_at: None });
        let hidden = "a\u{202e}\u{1b}[2J\u{e0041}b";
        let updates = [
            RunUpdate::StepProgress { step: "s".to_owned(), message: hidden.to_owned() },
            RunUpdate::AnswerDelta { text: hidden.to_owned(), tentative: false },
            RunUpdate::ReasoningDelta { text: hidden.to_owned() },
        ];
        for update in &updates {
            let event = String::from_utf8(encoder.encode(update).unwrap().to_vec()).unwrap();
            let data = event.split_once("data: ").unwrap().1;
            let data: serde_json::Value = serde_json::from_str(data).unwrap();
            let text = data["message"].as_str().or(data["text"].as_str()).unwrap();
            assert!(text.starts_with('a') && text.ends_with('b'), "{event}");
            assert_eq!(toolyard_core::find_unsafe(text), [], "{event}");
        }
    }
}
