//! A log of runs in memory, under the same rules as the durable one: for libraries that need none, and for tests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;
use toolyard_core::{
    Answer, Approvals, Begun, BoxFuture, Intent, Journal, JournalError, JournalFuture, Lease, LoggedEvent,
    Question, QuestionKind, RawJson, Recovery, Resolution, RunId, RunLog, RunRecord, RunState, StepAnswer,
    StepOutcome, StepRecord, StepState, recovery, redact, redact_json,
};

/// Runs, steps, transitions and questions in memory. Cloning it is cheap and gives the same log.
#[derive(Debug, Clone)]
pub struct MemoryLog {
    kept: Arc<Mutex<Kept>>,
    /// When it was made, by both clocks: leases go by the one that tests can pause.
    since: (i64, Instant),
}

#[derive(Debug, Default)]
struct Kept {
    runs: BTreeMap<RunId, KeptRun>,
    questions: Vec<Question>,
}

#[derive(Debug)]
struct KeptRun {
    record: RunRecord,
    lease_until: Option<Instant>,
    steps: Vec<StepRecord>,
    events: Vec<LoggedEvent>,
}

impl Default for MemoryLog {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self { kept: Arc::default(), since: (milliseconds, Instant::now()) }
    }
}

impl MemoryLog {
    /// A log without any run.
    pub fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> i64 {
        let (then, instant) = self.since;
        then.saturating_add(i64::try_from(instant.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something at once and gives it as a future.
    fn at_once<'a, T: Send + 'a>(
        &'a self,
        work: impl FnOnce(&mut Kept) -> Result<T, JournalError>,
    ) -> JournalFuture<'a, T> {
        let done = work(&mut self.lock());
        Box::pin(std::future::ready(done))
    }
}

impl Kept {
    fn run(&mut self, run: &RunId) -> Result<&mut KeptRun, JournalError> {
        self.runs.get_mut(run).ok_or_else(|| JournalError::UnknownRun(run.clone()))
    }

    /// The run of a lease, if that still holds.
    fn held(&mut self, lease: &Lease) -> Result<&mut KeptRun, JournalError> {
        let run = self.run(&lease.run)?;
        let record = &run.record;
        if record.owner.as_deref() == Some(lease.owner.as_str()) && record.fence == lease.fence {
            return Ok(run);
        }
        Err(JournalError::LeaseLost(lease.run.clone()))
    }

    fn take(&mut self, run: &RunId, owner: &str, lease: Duration) -> Result<Lease, JournalError> {
        let kept = self.run(run)?;
        if !kept.is_free() {
            let owner = kept.record.owner.clone().unwrap_or_default();
            return Err(JournalError::Held { run: run.clone(), owner });
        }
        kept.record.owner = Some(owner.to_owned());
        kept.record.fence += 1;
        kept.lease_until = Some(Instant::now() + lease);
        Ok(Lease { run: run.clone(), owner: owner.to_owned(), fence: kept.record.fence })
    }
}

impl KeptRun {
    fn is_free(&self) -> bool {
        self.record.owner.is_none() || self.lease_until.is_none_or(|until| until < Instant::now())
    }

    /// What others are told of it.
    fn record(&self) -> RunRecord {
        RunRecord { held: !self.is_free(), ..self.record.clone() }
    }

    fn step(&mut self, step: &str) -> Option<&mut StepRecord> {
        self.steps.iter_mut().find(|known| known.step == step)
    }

    /// Whether only a person knows how this step ended.
    fn is_unknown(&self, step: &StepRecord) -> bool {
        match step.state {
            StepState::Unknown => true,
            StepState::Started => !step.repeatable && self.is_free(),
            StepState::Done | StepState::Failed | StepState::NotDone => false,
        }
    }

    fn begin(&mut self, intent: &Intent, fence: i64, at: i64) -> Begun {
        let run = self.record.id.clone();
        let known = self.step(&intent.step);
        match recovery(known.as_deref(), intent) {
            Recovery::Start | Recovery::Repeat => {
                let started = started(run, intent, fence, at);
                match known {
                    Some(known) => *known = started,
                    None => self.steps.push(started),
                }
                Begun::Call
            }
            Recovery::Reuse | Recovery::Ask => {
                let Some(known) = known else { return Begun::Call };
                if matches!(known.state, StepState::Started) {
                    known.state = StepState::Unknown;
                    known.fence = fence;
                }
                let step = Box::new(known.clone());
                if step.state == StepState::Unknown { Begun::Unknown(step) } else { Begun::Reuse(step) }
            }
        }
    }
}

fn started(run: RunId, intent: &Intent, fence: i64, at: i64) -> StepRecord {
    StepRecord {
        run,
        step: intent.step.clone(),
        tool: intent.tool.clone(),
        source: intent.source.clone(),
        definition: intent.definition,
        arguments: intent.arguments,
        shown_arguments: intent.shown_arguments.clone(),
        repeatable: intent.repeatable,
        state: StepState::Started,
        outcome: None,
        redacted: false,
        fence,
        started_at: at,
        ended_at: None,
    }
}

impl Journal for MemoryLog {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        let created_at = self.now();
        self.at_once(|kept| {
            let id = RunId::from(format!("run{:06}", kept.runs.len() + 1));
            let record = RunRecord {
                id: id.clone(),
                kind: kind.to_owned(),
                state: RunState::Open,
                detail: redact_json(detail).0,
                owner: None,
                held: false,
                fence: 0,
                created_at,
            };
            let run = KeptRun { record, lease_until: None, steps: Vec::new(), events: Vec::new() };
            kept.runs.insert(id.clone(), run);
            Ok(id)
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        self.at_once(|kept| kept.take(run, owner, lease))
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        self.at_once(|kept| {
            let open = |run: &&KeptRun| {
                run.record.kind == kind && run.record.state == RunState::Open && run.is_free()
            };
            let next = kept.runs.values().find(open).map(|run| run.record.id.clone());
            next.map(|run| kept.take(&run, owner, lease)).transpose()
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()> {
        self.at_once(|kept| {
            kept.held(lease)?.lease_until = Some(Instant::now() + time);
            Ok(())
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        self.at_once(|kept| {
            let run = kept.held(lease)?;
            run.record.owner = None;
            run.record.state = state;
            Ok(())
        })
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a Intent) -> JournalFuture<'a, Begun> {
        let at = self.now();
        self.at_once(|kept| Ok(kept.held(lease)?.begin(intent, lease.fence, at)))
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a StepOutcome,
    ) -> JournalFuture<'a, ()> {
        let (shown, redacted) = redact_json(&outcome.outcome);
        let ended_at = Some(self.now());
        self.at_once(|kept| {
            let run = kept.held(lease)?;
            let known = run
                .step(step)
                .filter(|known| known.state == StepState::Started && known.fence == lease.fence);
            let known = known.ok_or_else(|| JournalError::LeaseLost(lease.run.clone()))?;
            known.state = outcome.state;
            (known.outcome, known.redacted, known.ended_at) = (Some(shown), redacted, ended_at);
            Ok(())
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        self.at_once(|kept| Ok(kept.run(run)?.record()))
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        self.at_once(|kept| Ok(kept.runs.values().rev().take(limit).map(KeptRun::record).collect()))
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        self.at_once(|kept| Ok(kept.runs.get(run).map(|run| run.steps.clone()).unwrap_or_default()))
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        self.at_once(|kept| Ok(kept.runs.get_mut(run).and_then(|run| run.step(step).cloned())))
    }

    fn unknown(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        self.at_once(|kept| {
            let of_run = |run: &KeptRun| {
                run.steps.iter().filter(|step| run.is_unknown(step)).cloned().collect::<Vec<_>>()
            };
            Ok(kept.runs.values().flat_map(of_run).collect())
        })
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        let said = StepAnswer::Resolved { resolution, by: by.to_owned() };
        let outcome = RawJson::from_serialize(&said).ok();
        let ended_at = Some(self.now());
        self.at_once(|kept| {
            let not_waiting = || JournalError::NotWaiting { run: run.clone(), step: step.to_owned() };
            let kept = kept.runs.get_mut(run).ok_or_else(not_waiting)?;
            let unknown = kept.steps.iter().find(|known| known.step == step);
            if !unknown.is_some_and(|known| kept.is_unknown(known)) {
                return Err(not_waiting());
            }
            let known = kept.step(step).ok_or_else(not_waiting)?;
            known.state = match resolution {
                Resolution::Done => StepState::Done,
                Resolution::NotDone => StepState::NotDone,
            };
            (known.outcome, known.ended_at) = (outcome, ended_at);
            Ok(())
        })
    }
}

impl RunLog for MemoryLog {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        let at = self.now();
        let events = (number..).zip(events);
        let new = events.map(|(number, event)| LoggedEvent {
            run: lease.run.clone(),
            number,
            event: redact_json(event).0,
            at,
        });
        let new: Vec<LoggedEvent> = new.collect();
        self.at_once(|kept| {
            let run = kept.held(lease)?;
            if run.events.last().is_some_and(|last| last.number >= number) {
                return Err(JournalError::NumberTaken { run: lease.run.clone(), number });
            }
            run.events.extend(new);
            Ok(())
        })
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        self.at_once(|kept| {
            let events = kept.runs.get(run).map(|run| run.events.as_slice()).unwrap_or_default();
            Ok(events.iter().filter(|event| event.number >= from).cloned().collect())
        })
    }
}

impl Approvals for MemoryLog {
    fn ask<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: QuestionKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, String>> {
        let mut kept = self.lock();
        let id = i64::try_from(kept.questions.len()).unwrap_or(i64::MAX).saturating_add(1);
        let (run, step, text) = (run.clone(), step.map(str::to_owned), redact(text).into_owned());
        kept.questions.push(Question { id, run, step, kind, text, answer: None, by: None });
        Box::pin(std::future::ready(Ok(id)))
    }

    fn answer<'a>(&'a self, id: i64, answer: Answer, by: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        let mut kept = self.lock();
        let open = kept.questions.iter_mut().find(|question| question.id == id && question.answer.is_none());
        let first = open.is_some();
        if let Some(question) = open {
            (question.answer, question.by) = (Some(answer), Some(by.to_owned()));
        }
        Box::pin(std::future::ready(Ok(first)))
    }

    fn question(&self, id: i64) -> BoxFuture<'_, Result<Option<Question>, String>> {
        let found = self.lock().questions.iter().find(|question| question.id == id).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, String>> {
        let waiting = self.lock().questions.iter().filter(|one| one.answer.is_none()).cloned().collect();
        Box::pin(std::future::ready(Ok(waiting)))
    }

    fn of_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Question>, String>> {
        let of_run = self.lock().questions.iter().filter(|one| one.run == *run).cloned().collect();
        Box::pin(std::future::ready(Ok(of_run)))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
