//! What happens in a run, as server-sent events: what was kept first, then what happens.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use toolyard_agent::{RunEnd, RunEvent, RunNews, replay};
use toolyard_core::{RunId, RunLog};

use super::live_runs::LiveRuns;

/// How often the log of a run is looked at that another process works on, or nobody.
const LOOK: Duration = Duration::from_millis(500);

/// The events of a run from this number on, until it is over.
pub(super) fn events(runs: Arc<LiveRuns>, run: RunId, from: i64) -> impl Stream<Item = Bytes> + Send {
    let telling = Telling { runs, run, next: from, ready: VecDeque::new(), listening: None, is_over: false };
    stream::unfold(telling, |mut telling| async move {
        let event = telling.next().await?;
        Some((event, telling))
    })
}

struct Telling {
    runs: Arc<LiveRuns>,
    run: RunId,
    /// The number of the next transition.
    next: i64,
    ready: VecDeque<Bytes>,
    listening: Option<Receiver<Arc<RunNews>>>,
    is_over: bool,
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            match &mut self.listening {
                None => self.look().await,
                Some(listening) => match listening.recv().await {
                    Ok(news) => self.take(&news),
                    // Whoever is too slow, or listens to a run that nobody works on any more, looks into the log.
                    Err(RecvError::Lagged(_)) => self.read_log().await,
                    Err(RecvError::Closed) => {
                        self.listening = None;
                        self.read_log().await;
                    }
                },
            }
        }
    }

    /// Reads what was kept, and listens if somebody works on the run here.
    async fn look(&mut self) {
        // Before the log is read, so that nothing happens in between.
        let runs = Arc::clone(&self.runs);
        let mut began = std::pin::pin!(runs.began());
        began.as_mut().enable();
        self.listening = runs.find(&self.run).map(|live| live.listen());
        self.read_log().await;
        if self.ready.is_empty() && !self.is_over && self.listening.is_none() {
            // Whichever run began: a look costs little.
            let _ = tokio::time::timeout(LOOK, began).await;
        }
    }

    async fn read_log(&mut self) {
        let log: Arc<dyn RunLog> = Arc::clone(self.runs.agents.log());
        match log.events(&self.run, self.next).await {
            Ok(events) => {
                replay(&events).for_each(|news| self.take(&news));
            }
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "events cannot be told");
                self.is_over = true;
            }
        }
    }

    fn take(&mut self, news: &RunNews) {
        if let RunNews::Event { number, event, .. } = news {
            // Told already.
            if *number < self.next {
                return;
            }
            self.next = number + 1;
            self.is_over =
                matches!(event, RunEvent::Ended { end } if !matches!(end, RunEnd::Suspended { .. }));
        }
        self.ready.extend(written(news));
    }
}

/// News as an event; those that are kept have their number as id, with which a client can go on later.
pub(super) fn written(news: &RunNews) -> Option<Bytes> {
    let data = serde_json::to_value(news).ok()?;
    let (id, name) = match news {
        RunNews::Event { number, .. } => (format!("id: {number}\n"), data.pointer("/event/event")),
        _ => (String::new(), data.get("news")),
    };
    let name = name.and_then(serde_json::Value::as_str).unwrap_or("news");
    Some(Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n")))
}
