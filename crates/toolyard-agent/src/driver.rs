//! Carries runs out: begins what may be begun, waits for whatever ends first, and writes every transition down before
//! anything follows from it.
//!
//! A run is data. Everything under way in it is one set of futures that its driver polls: no thread, no task per step.
//!
//! | file | what it does |
//! |---|---|
//! | `session.rs` | one driver at one run: notes and writes transitions |
//! | `work.rs` | the loop: begin, wait, take what happened |
//! | `begin.rs`, `happened.rs` | what each task begins, what each ending means |
//! | `prepare.rs`, `standing.rs`, `call.rs` | a step's call: arguments, permission, execution |
//! | `persons.rs` | questions to persons and their answers |
//! | `thought.rs`, `thinking.rs` | requests to models, and what is made of replies |
//! | `stop.rs` | ends a run in the middle |
//! | `patient.rs` | tries again what a store could not do at once |
//! | `caps.rs` | what may not be begun any more |
//! | `aside.rs` | work on large values, beside everything else |
//! | `progress.rs` | what tools say while they work |

pub(crate) mod aside;
mod begin;
mod call;
mod caps;
mod happened;
mod patient;
mod persons;
mod prepare;
mod progress;
mod saying;
mod session;
mod standing;
mod stop;
mod thinking;
mod thought;
mod work;

use serde_json::json;
use toolyard_core::{Lease, RawJson, RunId, RunRecord, RunState};

use self::session::{Held, Session};
use crate::{
    Agent, AgentError, Ask, CancelToken, RequestMark, RunEnd, RunEvent, RunWatcher,
    replay::{self, Loaded},
};

/// The kind of run that agents make.
pub const RUN_KIND: &str = "agent";
/// Where the detail of a run says by what the request is known that it was asked with.
const REQUEST: &str = "request";
/// So much of a question names its run in a list.
const SHOWN_QUESTION: usize = 200;

impl Agent {
    /// Writes down a new run. Nothing is done about it yet.
    pub async fn begin(&self, ask: Ask) -> Result<RunId, AgentError> {
        let parts = &self.parts;
        let question: String = ask.question.chars().take(SHOWN_QUESTION).collect();
        let mut detail = json!({"agent": ask.agent, "question": question, "who": ask.who});
        if let (Some(request), Some(detail)) = (&ask.request, detail.as_object_mut()) {
            detail.insert(REQUEST.to_owned(), json!(request));
        }
        let detail = RawJson::from(detail);
        let run = parts.log.create_run(RUN_KIND, &detail).await?;
        let lease = parts.log.claim(&run, &parts.owner, self.lease).await?;
        parts.log.append(&lease, 0, &replay::written(&RunEvent::Asked { ask })).await?;
        parts.log.release(&lease, RunState::Open).await?;
        Ok(run)
    }

    /// Works on a run until it ends or is suspended. A run that is over is only told about. Whoever drops this leaves
    /// the run as it is: it can be gone on with, or cancelled by [`crate::cancel`]. Whoever lays it down
    /// ([`CancelToken::lay_down`]) hears of that as [`AgentError::LaidDown`], once its calls have ended and it is free.
    pub async fn drive(
        &self,
        run: &RunId,
        watcher: &dyn RunWatcher,
        stop: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        let loaded = replay::loaded(&*self.parts.log, run).await?;
        if let (true, Some(end)) = (loaded.run.is_over(), loaded.run.end()) {
            return Ok(end.clone());
        }
        loop {
            if stop.is_used() && !stop.is_cancelled() {
                return Err(AgentError::LaidDown(run.clone()));
            }
            let lease = self.parts.log.claim(run, &self.parts.owner, self.lease).await?;
            let end = self.drive_held(&lease, watcher, stop).await?;
            // An answer that came while the run was being laid down would wait for nobody.
            let answered = matches!(end, RunEnd::Suspended { .. }) && self.is_answered(run).await?;
            if !answered || stop.is_cancelled() {
                return Ok(end);
            }
        }
    }

    /// Begins a run and works on it.
    pub async fn ask(
        &self,
        ask: Ask,
        watcher: &dyn RunWatcher,
        stop: &CancelToken,
    ) -> Result<(RunId, RunEnd), AgentError> {
        let run = self.begin(ask).await?;
        let end = self.drive(&run, watcher, stop).await?;
        Ok((run, end))
    }

    async fn drive_held(
        &self,
        lease: &Lease,
        watcher: &dyn RunWatcher,
        stop: &CancelToken,
    ) -> Result<RunEnd, AgentError> {
        let mut held = Held::new(&self.parts.log, lease);
        // Only the holder writes, so what is read now stays true.
        let loaded = replay::loaded(&*self.parts.log, &lease.run).await?;
        if let (true, Some(end)) = (loaded.run.is_over(), loaded.run.end()) {
            held.release(state_of(end)).await?;
            return Ok(end.clone());
        }
        if loaded.run.ask().is_none() {
            // Whoever began it was gone before the question was written down: nobody knows what it is about.
            self.parts.log.append(lease, loaded.next, &written_cancellation()).await?;
            held.release(RunState::Cancelled).await?;
            return Ok(RunEnd::Cancelled);
        }
        let worked = Box::pin(self.session(lease, watcher, loaded)?.work(stop)).await;
        match &worked {
            // What came of it is written down; whoever asked is told, whether the run could be given back or not.
            Ok(end) => {
                if let Err(error) = held.release(state_of(end)).await {
                    tracing::warn!(run = %lease.run, %error, "a run that is over could not be given back");
                }
            }
            Err(AgentError::LaidDown(_)) => held.release(RunState::Open).await?,
            Err(_) => {}
        }
        worked
    }

    fn session<'a>(
        &'a self,
        lease: &'a Lease,
        watcher: &'a dyn RunWatcher,
        loaded: Loaded,
    ) -> Result<Session<'a>, AgentError> {
        let resumed = loaded.run.end().is_some() || loaded.next > 1;
        let mut session = Session::new(self, lease, watcher, loaded);
        if resumed {
            session.note(RunEvent::Resumed { owner: self.parts.owner.clone() })?;
        }
        Ok(session)
    }
}

/// By what the request of a client is known that a run was asked with.
pub fn request_of(run: &RunRecord) -> Option<RequestMark> {
    serde_json::from_value(run.detail.to_value().get_mut(REQUEST)?.take()).ok()
}

fn written_cancellation() -> RawJson {
    replay::written(&RunEvent::Ended { end: RunEnd::Cancelled })
}

/// How the journal calls a run that ended so.
pub(crate) fn state_of(end: &RunEnd) -> RunState {
    match end {
        RunEnd::Answered { .. } | RunEnd::Planned => RunState::Done,
        RunEnd::Failed { .. } | RunEnd::Capped { .. } => RunState::Failed,
        RunEnd::Suspended { .. } => RunState::Open,
        RunEnd::Cancelled => RunState::Cancelled,
    }
}

#[cfg(test)]
#[path = "driver_tests/mod.rs"]
pub(crate) mod tests;
