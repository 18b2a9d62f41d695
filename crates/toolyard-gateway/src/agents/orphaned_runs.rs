//! Runs that no process drives: detached ones are taken over as soon as their lease is over, queued ones as soon as there is
//! capacity; the others are counted.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};
use toolyard_agent::{
    AGENT_RUN_KIND, Agent, AgentError, RunEnd, RunEvent, RunUpdate, close_run, discard_run, is_being_created,
    load_run, replay_updates,
};
use toolyard_core::{JournalError, RunId, RunRecord, RunState};

use super::{
    active_runs::ActiveRuns,
    run_notice::claim_delay,
    service::AgentService,
    unix_time::{milliseconds, now_milliseconds},
};

/// Pause between two scans.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// If listing the runs takes longer, the store was probably unavailable meanwhile.
const MAX_SCAN_DURATION: Duration = Duration::from_secs(2);
const MAX_CHECKED_RUNS: usize = 10_000;
/// Runs that are read at a time to find out what to do with them.
const MAX_CONCURRENT_CHECKS: usize = 8;
/// A run that was left alone is looked at again after this time.
const RECHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Older runs are not resumed automatically.
const MAX_RESUME_AGE: Duration = Duration::from_hours(24);
/// The creator of a run drives it within this time.
const MAX_CLAIM_DELAY: Duration = Duration::from_secs(1);
/// A run without events that is older than this was never started.
const MAX_CREATION_TIME: Duration = Duration::from_mins(1);
/// The approver of a suspended run, such as `toolyard runs approve`, resumes it within this time.
const DECISION_GRACE: Duration = Duration::from_secs(15);
/// A run that was resumed this often in a row without progress is not resumed again: it may crash the process.
const MAX_FUTILE_RESUMES: usize = 3;

/// What one scan found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrphanedRuns {
    /// Runs that this process resumes.
    pub resumed: usize,
    /// Runs that are left to the user, unless an earlier scan counted them.
    pub not_resumed: usize,
}

/// Takes over the runs of other processes that died or stopped.
#[derive(Debug)]
pub struct OrphanAdopter {
    runs: Arc<ActiveRuns>,
    /// Runs that were left alone.
    left_alone: HashMap<RunId, LeftAlone>,
    /// Until then, a lease that is over does not mean that its owner died: the store was away, so nobody could renew it.
    leases_unreliable_until: Option<Instant>,
    /// Whether the store took long to answer the latest scan.
    is_slow: bool,
}

#[derive(Debug, Clone, Copy)]
struct LeftAlone {
    /// The fencing token of the run when it was looked at; another one means that a process drove it since.
    fence: i64,
    check_again: Instant,
    /// Since when a decision is known that nobody applied.
    decided_since: Option<Instant>,
    is_left_to_user: bool,
}

impl LeftAlone {
    fn new(run: &RunRecord) -> Self {
        let check_again = Instant::now() + RECHECK_INTERVAL;
        Self { fence: run.fence, check_again, decided_since: None, is_left_to_user: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// The run is over.
    Ignore,
    /// Resume it with this agent.
    Resume(String),
    /// Resume it with this agent if somebody decided what it waits for.
    ResumeIfDecided(String),
    LeaveToUser,
}

enum Verdict {
    Resume(Box<Agent>),
    LeaveToUser,
    /// Another process may take it, or this one later.
    Wait,
    /// An approver decided what it waits for, and may be about to resume it.
    Decided(Box<Agent>),
}

impl AgentService {
    /// Takes over runs of processes that ended.
    pub fn orphan_adopter(&self) -> OrphanAdopter {
        OrphanAdopter {
            runs: Arc::clone(&self.0),
            left_alone: HashMap::new(),
            leases_unreliable_until: None,
            is_slow: false,
        }
    }
}

impl OrphanAdopter {
    /// Scans again and again, and reports what each scan found; starts queued runs meanwhile. Never completes.
    pub async fn run(mut self, mut report: impl FnMut(Result<OrphanedRuns, JournalError>)) {
        loop {
            report(self.scan().await);
            let next_scan = Instant::now() + SCAN_INTERVAL;
            while Instant::now() < next_scan && timeout_at(next_scan, self.runs.queue.changed()).await.is_ok()
            {
                self.take_queued().await;
            }
        }
    }

    /// Starts runs of the queue that no process drives, as many as there is capacity for.
    async fn take_queued(&self) {
        while !self.runs.is_draining() && self.runs.has_capacity() {
            let next = std::iter::from_fn(|| self.runs.queue.pop());
            let batch: Vec<RunId> = next.take(MAX_CONCURRENT_CHECKS.min(self.runs.free_places())).collect();
            if batch.is_empty() {
                return;
            }
            let agents = join_all(batch.iter().map(|run| self.agent_of_queued(run))).await;
            for (run, agent) in batch.iter().zip(agents) {
                match agent {
                    Ok(Some(agent)) => self.runs.spawn(*agent, run),
                    Ok(None) => {}
                    // The next scan finds what cannot be read now.
                    Err(error) => tracing::debug!(%run, %error, "failed to start a queued run"),
                }
            }
        }
    }

    /// The agent of a queued run; none if another process was faster, or this one may not take the run.
    async fn agent_of_queued(&self, run: &RunId) -> Result<Option<Box<Agent>>, JournalError> {
        let record = self.runs.config.log.run(run).await?;
        let is_waiting = record.state == RunState::Open && !record.leased && record.kind == AGENT_RUN_KIND;
        if !is_waiting || self.runs.find(run).is_some() {
            return Ok(None);
        }
        match self.verdict(&record, now_milliseconds()).await? {
            Verdict::Resume(agent) | Verdict::Decided(agent) => Ok(Some(agent)),
            Verdict::LeaveToUser | Verdict::Wait => Ok(None),
        }
    }

    /// Resumes detached runs that no process drives any more. A run that a client waited for, one that was started under
    /// other rules or with tools that are missing here, and an old one are left to the user. At the limit of runs, the rest waits.
    pub async fn scan(&mut self) -> Result<OrphanedRuns, JournalError> {
        let mut counts = OrphanedRuns::default();
        if self.runs.is_draining() {
            return Ok(counts);
        }
        let started = Instant::now();
        let listed = self.runs.config.log.unleased_runs(AGENT_RUN_KIND, 0, MAX_CHECKED_RUNS).await;
        let lease = self.runs.config.lease;
        let is_slow = started.elapsed() > MAX_SCAN_DURATION.max(lease / 3);
        let was_slow = std::mem::replace(&mut self.is_slow, is_slow);
        // A store that is always slow must not keep runs waiting for ever.
        if listed.is_err() || (is_slow && !was_slow) {
            self.leases_unreliable_until = Some(Instant::now() + lease / 2);
        }
        let records = listed?;
        let (now, unleased): (_, HashSet<&RunId>) =
            (now_milliseconds(), records.iter().map(|record| &record.id).collect());
        self.left_alone.retain(|run, _| unleased.contains(run));
        let candidates = self.candidates(&records);
        for batch in candidates.chunks(MAX_CONCURRENT_CHECKS) {
            if !self.runs.has_capacity() {
                break;
            }
            let verdicts = join_all(batch.iter().map(|(record, _)| self.verdict(record, now))).await;
            for ((record, known), verdict) in batch.iter().zip(verdicts) {
                self.apply(record, *known, verdict?, &mut counts);
            }
        }
        Ok(counts)
    }

    /// The runs to look at now, with what is known of them. Those come first that this process should take according to the order of
    /// the processes of its cluster, and of those the oldest, which may have waited for capacity.
    fn candidates<'a>(&mut self, records: &'a [RunRecord]) -> Vec<(&'a RunRecord, Option<LeftAlone>)> {
        let mut candidates = Vec::new();
        for record in records.iter().rev() {
            let known = self.left_alone.get(&record.id).filter(|known| known.fence == record.fence).copied();
            if known.is_some_and(|known| known.check_again > Instant::now()) {
                continue;
            }
            if self.runs.find(&record.id).is_some() || !self.is_orphaned(record) {
                continue;
            }
            // The first claim belongs to the creator, who is about to drive the run.
            if known.is_none() && record.owner.is_none() && record.fence <= 1 {
                let check_again = Instant::now() + MAX_CLAIM_DELAY;
                let left_alone = LeftAlone { check_again, ..LeftAlone::new(record) };
                self.left_alone.insert(record.id.clone(), left_alone);
                continue;
            }
            candidates.push((record, known));
        }
        if let Some(peers) = &self.runs.config.peers {
            let (own_number, members) = (peers.own_number(), peers.members());
            candidates.sort_by_cached_key(|(record, _)| claim_delay(&record.id, own_number, &members));
        }
        candidates
    }

    /// Resumes a run, or leaves it alone for a while.
    fn apply(
        &mut self,
        record: &RunRecord,
        known: Option<LeftAlone>,
        verdict: Verdict,
        counts: &mut OrphanedRuns,
    ) {
        let decided_since = matches!(verdict, Verdict::Decided(_))
            .then(|| known.and_then(|known| known.decided_since).unwrap_or_else(Instant::now));
        let is_left_to_user = matches!(verdict, Verdict::LeaveToUser);
        match verdict {
            Verdict::Resume(agent) => {
                self.runs.spawn(*agent, &record.id);
                counts.resumed += 1;
                return;
            }
            Verdict::Decided(agent) if decided_since.is_some_and(|at| at.elapsed() >= DECISION_GRACE) => {
                self.runs.spawn(*agent, &record.id);
                counts.resumed += 1;
                return;
            }
            Verdict::LeaveToUser if !known.is_some_and(|known| known.is_left_to_user) => {
                counts.not_resumed += 1;
            }
            _ => {}
        }
        let left_alone = LeftAlone { decided_since, is_left_to_user, ..LeftAlone::new(record) };
        self.left_alone.insert(record.id.clone(), left_alone);
    }

    /// Whether the process that drove an unleased run is gone, as far as its record tells.
    fn is_orphaned(&self, run: &RunRecord) -> bool {
        run.owner.is_none() || self.leases_unreliable_until.is_none_or(|until| until <= Instant::now())
    }

    async fn verdict(&self, record: &RunRecord, now: i64) -> Result<Verdict, JournalError> {
        let (runs, log) = (&self.runs, &*self.runs.config.log);
        let age = now.saturating_sub(record.created_at);
        if is_being_created(record) {
            self.discard(&record.id).await;
            return Ok(Verdict::Wait);
        }
        let (run, events) = match load_run(log, &record.id).await {
            Ok(loaded) => loaded,
            Err(AgentError::Journal(error)) => return Err(error),
            Err(error) => {
                tracing::debug!(run = %record.id, %error, "an orphaned run cannot be read");
                return Ok(Verdict::LeaveToUser);
            }
        };
        if let (true, Some(end)) = (run.is_finished(), run.end()) {
            self.close(&record.id, end).await;
            return Ok(Verdict::Wait);
        }
        if events.is_empty() && age > milliseconds(MAX_CREATION_TIME) {
            self.discard(&record.id).await;
        }
        let action = action(replay_updates(&events), age);
        let (name, must_be_decided) = match &action {
            Action::Ignore => return Ok(Verdict::Wait),
            Action::LeaveToUser => return Ok(Verdict::LeaveToUser),
            Action::Resume(name) => (name, false),
            Action::ResumeIfDecided(name) => (name, true),
        };
        runs.config.agents.refresh().await;
        let Some(agent) = runs.agent(name).ok().filter(|agent| agent.may_take_over(&run)) else {
            return Ok(if must_be_decided { Verdict::Wait } else { Verdict::LeaveToUser });
        };
        let agent = Box::new(agent);
        if !must_be_decided {
            return Ok(Verdict::Resume(agent));
        }
        match agent.has_decision(&record.id).await {
            Ok(true) => Ok(Verdict::Decided(agent)),
            Ok(false) => Ok(Verdict::Wait),
            Err(AgentError::Journal(error)) => Err(error),
            Err(error) => Err(JournalError::Storage(error.to_string())),
        }
    }

    /// Closes a run whose process died after it logged the end.
    async fn close(&self, run: &RunId, end: &RunEnd) {
        if let Err(error) = close_run(&*self.runs.config.log, run, end, &self.runs.config.owner).await {
            tracing::debug!(%run, %error, "failed to close a run that has ended");
        }
    }

    /// Closes a run whose creator died before it told its client that the run was started.
    async fn discard(&self, run: &RunId) {
        if let Err(error) = discard_run(&*self.runs.config.log, run, &self.runs.config.owner).await {
            tracing::debug!(%run, %error, "failed to discard a run that was never started");
        }
    }
}

/// What to do with a run that was created `age` milliseconds ago.
fn action(updates: impl Iterator<Item = RunUpdate>, age: i64) -> Action {
    let mut action = Action::Ignore;
    let (mut is_suspended, mut futile_resumes) = (false, 0);
    for update in updates {
        let RunUpdate::Event { event, .. } = update else { continue };
        futile_resumes = if matches!(event, RunEvent::Resumed { .. }) { futile_resumes + 1 } else { 0 };
        match event {
            RunEvent::Requested { request } if request.detached && age < milliseconds(MAX_RESUME_AGE) => {
                action = Action::Resume(request.agent);
            }
            RunEvent::Requested { .. } => action = Action::LeaveToUser,
            RunEvent::Ended { end: RunEnd::Suspended { .. }, .. } => is_suspended = true,
            RunEvent::Resumed { .. } => is_suspended = false,
            RunEvent::Ended { .. } => return Action::Ignore,
            _ => {}
        }
    }
    match action {
        Action::Resume(agent) if is_suspended => Action::ResumeIfDecided(agent),
        _ if is_suspended => Action::Ignore,
        Action::Resume(_) if futile_resumes >= MAX_FUTILE_RESUMES => Action::LeaveToUser,
        action => action,
    }
}

#[cfg(test)]
#[path = "orphaned_runs_tests.rs"]
mod tests;
