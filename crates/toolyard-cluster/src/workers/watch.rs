//! [`WorkerWatch`]: follows the announcements of workers, and tells the gateway which definitions each group serves.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use toolyard_core::{BoxFuture, ContentHash, PeerError, RawJson, WorkerNetwork, WorkerObserver};

use super::{
    groups::{AnnouncementEffect, WorkerGroups, WorkerProcessStatus},
    message::{Announcement, CatalogueMessage},
};

/// How often silent processes are looked for, and failed deliveries to the sink are repeated.
const TICK: Duration = Duration::from_secs(1);
/// How long a process may take to list its tools.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Processes that are asked at the same time.
const MAX_QUESTIONS: usize = 8;

/// Receives what the processes of a group serve.
pub trait WorkerSink: Send + Sync {
    /// The definitions of all processes of a group, each once, and how many processes there are. Two processes may have
    /// different definitions of one tool. Without a process, there are no definitions.
    ///
    /// Returns whether it was processed; otherwise it is repeated with what is current then.
    fn offered<'a>(
        &'a self,
        group: &'a str,
        definitions: Vec<RawJson>,
        processes: usize,
    ) -> BoxFuture<'a, bool>;

    /// Called about once per second.
    fn tick(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Follows the announcements of the groups that a gateway uses.
pub struct WorkerWatch {
    network: Arc<dyn WorkerNetwork>,
    groups: Mutex<WorkerGroups>,
    heard: mpsc::UnboundedSender<AnnouncementEffect>,
    events: Mutex<Option<mpsc::UnboundedReceiver<AnnouncementEffect>>>,
}

type Answer = (Arc<str>, u64, Option<(ContentHash, Arc<[RawJson]>)>);

impl fmt::Debug for WorkerWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerWatch").finish_non_exhaustive()
    }
}

impl WorkerWatch {
    /// Follows groups with these names, in which `*` stands for any characters.
    pub fn new(network: Arc<dyn WorkerNetwork>, patterns: Vec<String>) -> Self {
        let (heard, events) = mpsc::unbounded_channel();
        Self {
            network,
            groups: Mutex::new(WorkerGroups::new(patterns)),
            heard,
            events: Mutex::new(Some(events)),
        }
    }

    /// The processes of each group that were heard of lately, with those that were lost in the last minutes.
    pub fn processes(&self) -> BTreeMap<Arc<str>, Vec<WorkerProcessStatus>> {
        self.groups.lock().processes(Instant::now())
    }

    /// The number of processes of all groups that were heard of lately.
    pub fn process_count(&self) -> usize {
        self.groups.lock().process_count()
    }

    /// Asks processes what they serve and tells the sink. Never completes; must be called once.
    pub async fn run(&self, sink: &dyn WorkerSink) {
        let Some(mut events) = self.events.lock().take() else { return std::future::pending().await };
        let (mut to_ask, mut changed) = (VecDeque::new(), BTreeSet::new());
        let mut questions: JoinSet<Answer> = JoinSet::new();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.network.request_announcements();
        loop {
            tokio::select! {
                Some(heard) = events.recv() => match heard {
                    AnnouncementEffect::Nothing => {}
                    AnnouncementEffect::Ask(group, process) => to_ask.push_back((group, process)),
                    AnnouncementEffect::Changed(group) => drop(changed.insert(group)),
                },
                Some(answer) = questions.join_next() => {
                    if let Ok((group, process, answer)) = answer {
                        if self.groups.lock().record_answer(&group, process, answer) {
                            to_ask.push_back((Arc::clone(&group), process));
                        }
                        changed.insert(group);
                    }
                }
                _ = ticks.tick() => {
                    changed.extend(self.groups.lock().move_silent_to_lost(Instant::now()));
                    sink.tick().await;
                }
            }
            while questions.len() < MAX_QUESTIONS
                && let Some((group, process)) = to_ask.pop_front()
            {
                questions.spawn(ask(Arc::clone(&self.network), group, process));
            }
            self.deliver(sink, &mut changed).await;
        }
    }

    /// Tells the sink of changed groups; those that it cannot process stay.
    async fn deliver(&self, sink: &dyn WorkerSink, changed: &mut BTreeSet<Arc<str>>) {
        for group in std::mem::take(changed) {
            let (definitions, processes) = self.groups.lock().definitions(&group);
            if !sink.offered(&group, definitions, processes).await {
                changed.insert(group);
            }
        }
    }
}

impl WorkerObserver for WorkerWatch {
    fn announced(&self, group: &str, announcement: &[u8]) {
        let Some(announcement) = Announcement::decode(announcement) else {
            return tracing::debug!(group, "ignored a malformed announcement of a worker");
        };
        let heard = self.groups.lock().record_announcement(group, &announcement, Instant::now());
        if heard != AnnouncementEffect::Nothing {
            // Fails only while the gateway ends.
            let _ = self.heard.send(heard);
        }
    }
}

async fn ask(network: Arc<dyn WorkerNetwork>, group: Arc<str>, process: u64) -> Answer {
    let asking = async {
        let mut exchange = network.open_process(&group, process).await?;
        exchange.receive().await
    };
    let answer = match timeout(ANSWER_TIMEOUT, asking).await {
        Ok(Ok(Some(answer))) => answer,
        Ok(Ok(None)) => return failed(group, process, "the worker described no tools"),
        Ok(Err(PeerError::NotReached(reason) | PeerError::Lost(reason))) => {
            return failed(group, process, &reason);
        }
        Err(_elapsed) => return failed(group, process, "the worker did not answer in time"),
    };
    let hash = ContentHash::of(&answer);
    match CatalogueMessage::decode(&answer) {
        Ok(list) => (group, process, Some((hash, list.tools.into()))),
        // Counts as known, so that the process is not asked again and again for the same.
        Err(error) => {
            tracing::warn!(%group, process = %format_args!("{process:016x}"), %error, "ignored the tools of a worker");
            (group, process, Some((hash, Arc::default())))
        }
    }
}

/// The next announcement leads to the next question.
fn failed(group: Arc<str>, process: u64, reason: &str) -> Answer {
    tracing::debug!(%group, process = %format_args!("{process:016x}"), reason, "a worker did not list its tools");
    (group, process, None)
}
