//! [`MemoryRunLog`]: a run log and approval store in memory, for embedders without a durable store and for tests.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_core::{
    ApprovalId, ApprovalKind, ApprovalOutcome, ApprovalRecord, Approvals, BoxFuture, FinishedStep, Journal,
    JournalError, JournalFuture, Lease, LoggedEvent, RawJson, Recovery, Resolution, RunId, RunLog, RunRecord,
    RunState, StepIntent, StepRecord, StepResult, StepStart, StepState, StorageError, recovery, redact,
    redact_json,
};

/// Runs, steps, events and approval requests in memory, with the semantics of the durable store. Clones share the log.
#[derive(Debug, Clone)]
pub struct MemoryRunLog {
    state: Arc<Mutex<LogState>>,
    /// Creation time in milliseconds since the epoch and on tokio's clock, which leases use because tests can pause it.
    created: (i64, Instant),
}

#[derive(Debug, Default)]
struct LogState {
    runs: BTreeMap<RunId, RunEntry>,
    approvals: Vec<ApprovalRecord>,
}

#[derive(Debug)]
struct RunEntry {
    record: RunRecord,
    lease_until: Option<Instant>,
    steps: Vec<StepRecord>,
    events: Vec<LoggedEvent>,
}

impl Default for MemoryRunLog {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self { state: Arc::default(), created: (milliseconds, Instant::now()) }
    }
}

impl MemoryRunLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    fn now_millis(&self) -> i64 {
        let (then, instant) = self.created;
        then.saturating_add(i64::try_from(instant.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock()
    }

    /// Runs `work` under the lock and returns its result as a ready future.
    fn with_state<'a, T: Send + 'a>(
        &'a self,
        work: impl FnOnce(&mut LogState) -> Result<T, JournalError>,
    ) -> JournalFuture<'a, T> {
        let done = work(&mut self.lock());
        Box::pin(std::future::ready(done))
    }
}

impl LogState {
    fn run(&mut self, run: &RunId) -> Result<&mut RunEntry, JournalError> {
        self.runs.get_mut(run).ok_or_else(|| JournalError::UnknownRun(run.clone()))
    }

    /// The run of a lease that is still valid.
    fn leased_run(&mut self, lease: &Lease) -> Result<&mut RunEntry, JournalError> {
        let run = self.run(&lease.run)?;
        let record = &run.record;
        if record.owner.as_deref() == Some(lease.owner.as_str()) && record.fence == lease.fence {
            return Ok(run);
        }
        Err(JournalError::LeaseLost(lease.run.clone()))
    }

    fn claim(&mut self, run: &RunId, owner: &str, lease: Duration) -> Result<Lease, JournalError> {
        let entry = self.run(run)?;
        if !entry.is_free() {
            let owner = entry.record.owner.clone().unwrap_or_default();
            return Err(JournalError::Leased { run: run.clone(), owner });
        }
        entry.record.owner = Some(owner.to_owned());
        entry.record.fence += 1;
        entry.lease_until = Some(Instant::now() + lease);
        Ok(Lease { run: run.clone(), owner: owner.to_owned(), fence: entry.record.fence })
    }
}

impl RunEntry {
    fn is_free(&self) -> bool {
        self.record.owner.is_none() || self.lease_until.is_none_or(|until| until < Instant::now())
    }

    /// The record as other processes see it.
    fn record(&self) -> RunRecord {
        RunRecord { leased: !self.is_free(), ..self.record.clone() }
    }

    fn step(&mut self, step: &str) -> Option<&mut StepRecord> {
        self.steps.iter_mut().find(|record| record.step == step)
    }

    /// Whether a user must say how this step ended.
    fn is_unknown(&self, step: &StepRecord) -> bool {
        match step.state {
            StepState::Unknown => true,
            StepState::Started => !step.repeatable && (self.is_free() || self.record.fence > step.fence),
            StepState::Done | StepState::Failed | StepState::NotDone => false,
        }
    }

    fn begin(&mut self, intent: &StepIntent, fence: i64, at: i64) -> StepStart {
        let run = self.record.id.clone();
        let record = self.step(&intent.step);
        match recovery(record.as_deref(), intent) {
            Recovery::Start | Recovery::Repeat => {
                let started = started_record(run, intent, fence, at);
                match record {
                    Some(record) => *record = started,
                    None => self.steps.push(started),
                }
                StepStart::Call
            }
            Recovery::Reuse | Recovery::NeedsResolution => {
                let Some(record) = record else { return StepStart::Call };
                if matches!(record.state, StepState::Started) {
                    record.state = StepState::Unknown;
                    record.fence = fence;
                }
                let step = Box::new(record.clone());
                if step.state == StepState::Unknown {
                    StepStart::Unknown(step)
                } else {
                    StepStart::Reuse(step)
                }
            }
        }
    }
}

fn started_record(run: RunId, intent: &StepIntent, fence: i64, at: i64) -> StepRecord {
    StepRecord {
        run,
        step: intent.step.clone(),
        tool: intent.tool.clone(),
        source: intent.source.clone(),
        definition: intent.definition,
        arguments: intent.arguments,
        redacted_arguments: intent.redacted_arguments.clone(),
        repeatable: intent.repeatable,
        state: StepState::Started,
        outcome: None,
        redacted: false,
        fence,
        started_at: at,
        ended_at: None,
    }
}

impl Journal for MemoryRunLog {
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId> {
        let created_at = self.now_millis();
        self.with_state(|log| {
            let id = RunId::from(format!("run{:06}", log.runs.len() + 1));
            let record = RunRecord {
                id: id.clone(),
                kind: kind.to_owned(),
                state: RunState::Open,
                detail: redact_json(detail).0,
                owner: None,
                leased: false,
                fence: 0,
                created_at,
            };
            let run = RunEntry { record, lease_until: None, steps: Vec::new(), events: Vec::new() };
            log.runs.insert(id.clone(), run);
            Ok(id)
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease> {
        self.with_state(|log| log.claim(run, owner, lease))
    }

    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>> {
        self.with_state(|log| {
            let open = |run: &&RunEntry| {
                run.record.kind == kind && run.record.state == RunState::Open && run.is_free()
            };
            let next = log.runs.values().find(open).map(|run| run.record.id.clone());
            next.map(|run| log.claim(&run, owner, lease)).transpose()
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, duration: Duration) -> JournalFuture<'a, ()> {
        self.with_state(|log| {
            log.leased_run(lease)?.lease_until = Some(Instant::now() + duration);
            Ok(())
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()> {
        self.with_state(|log| {
            let run = log.leased_run(lease)?;
            run.record.owner = None;
            run.record.state = state;
            Ok(())
        })
    }

    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a StepIntent) -> JournalFuture<'a, StepStart> {
        let at = self.now_millis();
        self.with_state(|log| Ok(log.leased_run(lease)?.begin(intent, lease.fence, at)))
    }

    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()> {
        let (outcome_json, redacted) = redact_json(&outcome.result);
        let ended_at = Some(self.now_millis());
        self.with_state(|log| {
            let run = log.leased_run(lease)?;
            let record = run
                .step(step)
                .filter(|record| record.state == StepState::Started && record.fence == lease.fence);
            let record = record.ok_or_else(|| JournalError::LeaseLost(lease.run.clone()))?;
            record.state = outcome.state;
            (record.outcome, record.redacted, record.ended_at) = (Some(outcome_json), redacted, ended_at);
            Ok(())
        })
    }

    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord> {
        self.with_state(|log| Ok(log.run(run)?.record()))
    }

    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>> {
        self.with_state(|log| Ok(log.runs.values().rev().take(limit).map(RunEntry::record).collect()))
    }

    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        self.with_state(|log| Ok(log.runs.get(run).map(|run| run.steps.clone()).unwrap_or_default()))
    }

    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        self.with_state(|log| Ok(log.runs.get_mut(run).and_then(|run| run.step(step).cloned())))
    }

    fn unknown_steps(&self) -> JournalFuture<'_, Vec<StepRecord>> {
        self.with_state(|log| {
            let unknown_steps_of = |run: &RunEntry| {
                run.steps.iter().filter(|step| run.is_unknown(step)).cloned().collect::<Vec<_>>()
            };
            Ok(log.runs.values().flat_map(unknown_steps_of).collect())
        })
    }

    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()> {
        let result = StepResult::Resolved { resolution, by: by.to_owned() };
        let outcome = RawJson::from_serialize(&result).ok();
        let ended_at = Some(self.now_millis());
        self.with_state(|log| {
            let not_resolvable = || JournalError::NotResolvable { run: run.clone(), step: step.to_owned() };
            let entry = log.runs.get_mut(run).ok_or_else(not_resolvable)?;
            let unknown = entry.steps.iter().find(|record| record.step == step);
            if !unknown.is_some_and(|record| entry.is_unknown(record)) {
                return Err(not_resolvable());
            }
            let record = entry.step(step).ok_or_else(not_resolvable)?;
            record.state = match resolution {
                Resolution::Done => StepState::Done,
                Resolution::NotDone => StepState::NotDone,
            };
            (record.outcome, record.ended_at) = (outcome, ended_at);
            Ok(())
        })
    }
}

impl RunLog for MemoryRunLog {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        let at = self.now_millis();
        let events = (number..).zip(events);
        let new = events.map(|(number, event)| LoggedEvent {
            run: lease.run.clone(),
            number,
            event: redact_json(event).0,
            at,
        });
        let new: Vec<LoggedEvent> = new.collect();
        self.with_state(|log| {
            let run = log.leased_run(lease)?;
            if run.events.last().is_some_and(|last| last.number >= number) {
                return Err(JournalError::EventExists { run: lease.run.clone(), number });
            }
            run.events.extend(new);
            Ok(())
        })
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        self.with_state(|log| {
            let events = log.runs.get(run).map(|run| run.events.as_slice()).unwrap_or_default();
            Ok(events.iter().filter(|event| event.number >= from).cloned().collect())
        })
    }
}

impl Approvals for MemoryRunLog {
    fn request_approval<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: ApprovalKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<ApprovalId, StorageError>> {
        let mut log = self.lock();
        let id = ApprovalId(i64::try_from(log.approvals.len()).unwrap_or(i64::MAX).saturating_add(1));
        let (run, step, text) = (run.clone(), step.map(str::to_owned), redact(text).into_owned());
        let (outcome, decided_by, requested_at) = (None, None, self.now_millis());
        log.approvals.push(ApprovalRecord { id, run, step, kind, text, outcome, decided_by, requested_at });
        Box::pin(std::future::ready(Ok(id)))
    }

    fn decide<'a>(
        &'a self,
        id: ApprovalId,
        outcome: ApprovalOutcome,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        let mut log = self.lock();
        let open = log.approvals.iter_mut().find(|approval| approval.id == id && approval.outcome.is_none());
        let is_first = open.is_some();
        if let Some(approval) = open {
            (approval.outcome, approval.decided_by) = (Some(outcome), Some(by.to_owned()));
        }
        Box::pin(std::future::ready(Ok(is_first)))
    }

    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<ApprovalRecord>, StorageError>> {
        let found = self.lock().approvals.iter().find(|approval| approval.id == id).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn pending_approvals(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, StorageError>> {
        let waiting = self.lock().approvals.iter().filter(|one| one.outcome.is_none()).cloned().collect();
        Box::pin(std::future::ready(Ok(waiting)))
    }

    fn approvals_of_run<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<ApprovalRecord>, StorageError>> {
        let of_run = self.lock().approvals.iter().filter(|one| one.run == *run).cloned().collect();
        Box::pin(std::future::ready(Ok(of_run)))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
