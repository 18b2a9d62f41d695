//! One driver at one run: what it knows, and how it writes down what happens before anything follows from it.

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
use toolyard_core::{BoxFuture, JournalError, Lease, RawJson, RunLog, RunState, redact_json};

use super::{happened::Happened, patient::append, prepare::REDACTED};
use crate::{
    Agent, AgentError, AgentParts, Cap, ModelTask, Run, RunEvent, RunNews, RunWatcher, StepRun,
    planning::text::cleaned,
    replay::{Loaded, written},
    step_value,
    values::Values,
};

/// So much news of tools may wait; what comes on top is dropped.
const NEWS: usize = 256;

/// No run takes longer, whatever its caps say: an instant that far away can still be counted.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// What everything under way in a run needs.
#[derive(Clone)]
pub(super) struct Context<'a> {
    pub(super) agent: &'a Agent,
    pub(super) parts: &'a AgentParts,
    pub(super) lease: &'a Lease,
    pub(super) watcher: &'a dyn RunWatcher,
    pub(super) values: Arc<Values>,
    /// What tools say while they work.
    pub(super) progress: mpsc::Sender<RunNews>,
    /// Whether another process worked on this run before: what it knew and did not write down is gone.
    pub(super) resumed: bool,
}

impl Context<'_> {
    /// For so long a store that fails is tried again: the lease must not be over meanwhile.
    pub(super) fn patience(&self) -> Duration {
        self.agent.lease / 2
    }
}

/// One driver at one run.
pub(super) struct Session<'a> {
    pub(super) context: Context<'a>,
    pub(super) run: Run,
    /// The place of the next transition in the log.
    next: i64,
    /// Transitions that the run has taken and the log has not.
    unwritten: Vec<RunEvent>,
    /// What begins as soon as everything is written.
    queued: Vec<BoxFuture<'a, Happened>>,
    pub(super) tasks: FuturesUnordered<BoxFuture<'a, Happened>>,
    /// What ended while something was written.
    pub(super) arrived: VecDeque<Happened>,
    pub(super) under_way: UnderWay,
    /// What was told of the answer.
    pub(super) said: String,
    /// Why nothing is begun any more.
    pub(super) draining: Option<Draining>,
    pub(super) news: mpsc::Receiver<RunNews>,
    pub(super) deadline: Instant,
    pub(super) heartbeat: Interval,
}

/// Why nothing is begun any more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Draining {
    /// A cap was reached: the run ends as soon as nothing is under way.
    Cap(Cap),
    /// It is being stopped.
    Stop,
    /// It is laid down as soon as no call is under way.
    LayDown,
}

/// What is under way, by what it is.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Steps being prepared or called, with their source and whether they write.
    pub(super) calls: BTreeMap<String, (Option<String>, bool)>,
    pub(super) models: BTreeSet<ModelTask>,
    /// Steps about which a person is being asked.
    pub(super) persons: BTreeSet<String>,
    /// Steps whose result is being looked at.
    pub(super) looks: BTreeSet<String>,
    /// Steps about which nobody here can decide.
    pub(super) nobody: BTreeSet<String>,
    /// Whether it is being looked whether persons elsewhere have answered.
    pub(super) hearing: bool,
    /// Whether that was done, and nobody had.
    pub(super) heard_nothing: bool,
}

impl UnderWay {
    /// Whether nothing but persons is waited for.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.models.is_empty() && self.looks.is_empty()
    }

    /// Whether nothing goes on before a person here has decided.
    pub(super) fn waits_for_persons(&self) -> bool {
        self.is_idle() && !self.persons.is_empty()
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(
        agent: &'a Agent,
        lease: &'a Lease,
        watcher: &'a dyn RunWatcher,
        loaded: Loaded,
    ) -> Self {
        let Loaded { run, next, worked } = loaded;
        let (progress, news) = mpsc::channel(NEWS);
        let values = Arc::new(reasoned(&run));
        let resumed = next > 1;
        let time = run.ask().map_or(Duration::ZERO, |ask| ask.caps.time);
        let beat = (agent.lease / 3).max(Duration::from_millis(1));
        let mut heartbeat = interval_at(Instant::now() + beat, beat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            context: Context { agent, parts: &agent.parts, lease, watcher, values, progress, resumed },
            run,
            next,
            unwritten: Vec::new(),
            queued: Vec::new(),
            tasks: FuturesUnordered::new(),
            arrived: VecDeque::new(),
            under_way: UnderWay::default(),
            said: String::new(),
            draining: None,
            news,
            deadline: Instant::now() + time.saturating_sub(worked).min(LONGEST),
            heartbeat,
        }
    }

    /// The run takes a transition; nothing follows from it before [`Session::flush`].
    pub(super) fn note(&mut self, event: RunEvent) -> Result<(), AgentError> {
        let number = self.next.saturating_add(i64::try_from(self.unwritten.len()).unwrap_or(i64::MAX));
        let run = &self.context.lease.run;
        let impossible = |reason| AgentError::Impossible { run: run.clone(), number, reason };
        self.run.apply(&event).map_err(impossible)?;
        self.unwritten.push(event);
        Ok(())
    }

    /// Something that begins once all that was noted is written.
    pub(super) fn queue(&mut self, work: impl Future<Output = Happened> + Send + 'a) {
        self.queued.push(Box::pin(work));
    }

    /// Writes what was noted, tells whoever watches, and begins what was queued.
    pub(super) async fn flush(&mut self) -> Result<(), AgentError> {
        if !self.unwritten.is_empty() {
            let events: Vec<_> = self.unwritten.iter().map(written).collect();
            let Context { parts, lease, watcher, .. } = self.context;
            let patience = self.context.patience();
            self.meanwhile(append(&*parts.log, lease, self.next, &events, patience)).await?;
            for (event, text) in std::mem::take(&mut self.unwritten).into_iter().zip(events) {
                // Whoever watches sees what is written down, and that is without secrets.
                if let Some(event) = shown(event, &text) {
                    watcher.see(&RunNews::Event { run: lease.run.clone(), number: self.next, event });
                }
                self.next = self.next.saturating_add(1);
            }
        }
        self.tasks.extend(self.queued.drain(..));
        Ok(())
    }

    /// Does something while everything under way goes on.
    pub(super) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(happened) = self.tasks.next(), if !self.tasks.is_empty() => self.arrived.push_back(happened),
            }
        }
    }
}

/// A transition without the secrets in it.
fn shown(event: RunEvent, text: &RawJson) -> Option<RunEvent> {
    match redact_json(text) {
        (_, false) => Some(event),
        (text, true) => text.read().ok(),
    }
}

/// The values of steps that a model reasoned out are in the run itself.
fn reasoned(run: &Run) -> Values {
    let values = Values::default();
    let done = run.steps().iter().filter(|step| step.has_value());
    // What secrets were taken out of is not what the model said.
    let is_whole = |text: &String| !text.contains(REDACTED);
    for (name, text) in
        done.filter_map(|step| Some((step.journal_name(), reasoning(run, step).filter(is_whole)?)))
    {
        values.put(name, step_value(None, &text));
    }
    values
}

/// What a model said for a step.
pub(super) fn reasoning(run: &Run, step: &StepRun) -> Option<String> {
    let task = ModelTask::Reason { step: step.step.id.clone() };
    run.reply(&task).map(|reply| cleaned(&reply.text))
}

/// A lease that is given back when its driver is dropped.
pub(super) struct Held {
    log: Arc<dyn RunLog>,
    lease: Option<Lease>,
}

impl Held {
    pub(super) fn new(log: &Arc<dyn RunLog>, lease: &Lease) -> Self {
        Self { log: Arc::clone(log), lease: Some(lease.clone()) }
    }

    pub(super) async fn release(&mut self, state: RunState) -> Result<(), JournalError> {
        match self.lease.take() {
            Some(lease) => self.log.release(&lease, state).await,
            None => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let log = Arc::clone(&self.log);
        runtime.spawn(async move {
            if let Err(error) = log.release(&lease, RunState::Open).await {
                tracing::debug!(run = %lease.run, %error, "a run that was left could not be given back");
            }
        });
    }
}
