//! [`RunDriver`]: drives one run. Applies and logs events before anything follows from them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use toolyard_core::{BoxFuture, Conversation, Lease, RawJson, redact_json, telemetry::SpanContext};

use super::{context::Context, model::model_io::reasoned_values, outcome::TaskOutcome, retry::append_events};
use crate::{
    Agent, AgentError, ModelTask, Run, RunEvent, RunLimit, RunUpdate, RunWatcher,
    run_log::{LoadedRun, to_json},
};

/// Progress updates beyond this backlog are dropped.
const MAX_PENDING_UPDATES: usize = 256;

/// Upper bound for the time limit of a run, so that its deadline can be represented.
const MAX_RUN_DURATION: Duration = Duration::from_hours(365 * 24);

pub(super) struct RunDriver<'a> {
    pub(super) context: Context<'a>,
    pub(super) run: Run,
    /// Position of the next event in the log.
    next_number: i64,
    /// Events applied to the run and not logged yet.
    unlogged: Vec<RunEvent>,
    /// Tasks that start once all events are logged.
    queued: Vec<BoxFuture<'a, TaskOutcome>>,
    pub(super) tasks: FuturesUnordered<BoxFuture<'a, TaskOutcome>>,
    /// Outcomes of tasks that ended while something else was awaited.
    pub(super) ready_outcomes: VecDeque<TaskOutcome>,
    pub(super) in_flight: InFlight,
    /// The part of the answer that was streamed to the watcher.
    pub(super) streamed: String,
    /// Why nothing new is started.
    pub(super) draining: Option<Draining>,
    /// The message of the quota that is used up.
    pub(super) exceeded_quota: Option<String>,
    pub(super) progress: mpsc::Receiver<RunUpdate>,
    pub(super) deadline: Instant,
    pub(super) heartbeat: Interval,
}

/// Why nothing new is started.
#[derive(Debug, Clone, Copy)]
pub(super) enum Draining {
    /// A limit was reached: the run ends once nothing is in flight.
    LimitReached(RunLimit),
    /// The run stops now: it is cancelled, out of time, or its log cannot be written. Calls in flight have a short grace.
    Stop,
    /// The run is released once no call is in flight.
    Release,
}

#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Steps being prepared or called, with their source and whether they write.
    pub(super) calls: BTreeMap<String, (Option<String>, bool)>,
    /// When the calls of steps began.
    pub(super) call_starts: BTreeMap<String, Instant>,
    pub(super) models: BTreeSet<ModelTask>,
    /// Steps whose approval is being requested or decided by this process.
    pub(super) approvals: BTreeSet<String>,
    pub(super) verifications: BTreeSet<String>,
    /// Steps that the watcher did not decide on, because no approver is present.
    pub(super) left_undecided: BTreeSet<String>,
    /// Whether the store is being polled for approvals decided by other processes.
    pub(super) polling_approvals: bool,
    /// Whether the last poll found no decision.
    pub(super) polled_without_result: bool,
}

impl InFlight {
    /// Whether nothing but approvals is in flight.
    pub(super) fn is_idle_but_for_approvals(&self) -> bool {
        self.calls.is_empty() && self.models.is_empty() && self.verifications.is_empty()
    }

    /// Whether the run waits for nothing but the watcher's decision.
    pub(super) fn awaits_only_approval(&self) -> bool {
        self.is_idle_but_for_approvals() && !self.approvals.is_empty()
    }
}

impl<'a> RunDriver<'a> {
    pub(super) fn new(
        agent: &'a Agent,
        lease: &'a Lease,
        watcher: &'a dyn RunWatcher,
        loaded: LoadedRun,
        span: Option<SpanContext>,
    ) -> Self {
        let LoadedRun { run, next_number, active_time, .. } = loaded;
        let (sender, progress) = mpsc::channel(MAX_PENDING_UPDATES);
        // Values of tool steps are read from the journal when they are needed; those of reasoning steps are in the run.
        let values = Arc::new(reasoned_values(&run));
        // A new run has logged only its request, which is event 0.
        let resumed = next_number > 1;
        let conversation = run.request().and_then(|request| request.conversation.as_deref().cloned());
        let conversation = conversation
            .map(|id| Conversation::of_run(Arc::clone(&agent.conversations), id, lease.run.clone()));
        // Only runs with a request are driven.
        let time_limit = run.request().map_or(Duration::ZERO, |request| request.limits.time);
        let period = (agent.lease_duration / 3).max(Duration::from_millis(1));
        let mut heartbeat = interval_at(Instant::now() + period, period);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            context: Context {
                agent,
                parts: &agent.parts,
                lease,
                watcher,
                values,
                conversation,
                progress: sender,
                resumed,
                span,
            },
            run,
            next_number,
            unlogged: Vec::new(),
            queued: Vec::new(),
            tasks: FuturesUnordered::new(),
            ready_outcomes: VecDeque::new(),
            in_flight: InFlight::default(),
            streamed: String::new(),
            draining: None,
            exceeded_quota: None,
            progress,
            deadline: Instant::now() + time_limit.saturating_sub(active_time).min(MAX_RUN_DURATION),
            heartbeat,
        }
    }

    /// Applies an event; nothing follows from it before [`RunDriver::flush`] has logged it.
    pub(super) fn record(&mut self, event: RunEvent) -> Result<(), AgentError> {
        let number = self.next_number.saturating_add(i64::try_from(self.unlogged.len()).unwrap_or(i64::MAX));
        let run = &self.context.lease.run;
        let invalid = |reason| AgentError::InvalidEvent { run: run.clone(), number, reason };
        self.run.apply(&event).map_err(invalid)?;
        self.unlogged.push(event);
        Ok(())
    }

    /// Queues a task that starts once all recorded events are logged.
    pub(super) fn queue(&mut self, task: impl Future<Output = TaskOutcome> + Send + 'a) {
        self.queued.push(Box::pin(task));
    }

    /// Logs the recorded events, sends them to the watcher, and starts the queued tasks.
    pub(super) async fn flush(&mut self) -> Result<(), AgentError> {
        if !self.unlogged.is_empty() {
            let events: Vec<_> = self.unlogged.iter().map(to_json).collect();
            let Context { parts, lease, watcher, .. } = self.context;
            let window = self.context.retry_window();
            self.await_while_tasks_run(append_events(&*parts.log, lease, self.next_number, &events, window))
                .await?;
            for (event, text) in std::mem::take(&mut self.unlogged).into_iter().zip(events) {
                if let Some(event) = redact_event(event, &text) {
                    watcher.on_update(&RunUpdate::Event {
                        run: lease.run.clone(),
                        number: self.next_number,
                        event,
                    });
                }
                self.next_number = self.next_number.saturating_add(1);
            }
        }
        self.tasks.extend(self.queued.drain(..));
        Ok(())
    }

    /// Awaits a future while the tasks in flight make progress.
    pub(super) async fn await_while_tasks_run<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                Some(outcome) = self.tasks.next(), if !self.tasks.is_empty() => self.ready_outcomes.push_back(outcome),
            }
        }
    }
}

/// The event for the watcher, with secrets redacted as in the log; `None` if it cannot be read after redaction.
fn redact_event(event: RunEvent, text: &RawJson) -> Option<RunEvent> {
    match redact_json(text) {
        (_, false) => Some(event),
        (text, true) => text.read().ok(),
    }
}
