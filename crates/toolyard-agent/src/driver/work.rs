//! The loop: begin what may be begun, wait for whatever comes first, take it.

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;
use toolyard_core::{Answer, JournalError, QuestionKind};

use super::{
    happened::Happened,
    session::{Draining, Session},
};
use crate::{AgentError, CancelToken, Cap, RunEnd, RunEvent};

/// What comes first.
enum Next {
    Happened(Happened),
    Beat,
    Stop,
    LayDown,
    TimeIsUp,
}

impl Session<'_> {
    /// Works until the run ends or is suspended.
    pub(super) async fn work(mut self, stop: &CancelToken) -> Result<RunEnd, AgentError> {
        let outcome = self.go_on(stop).await;
        if outcome.is_err() {
            // Nothing more can be written here; calls under way still write down their own outcomes.
            self.leave().await;
        }
        outcome
    }

    async fn go_on(&mut self, stop: &CancelToken) -> Result<RunEnd, AgentError> {
        self.hear_persons().await?;
        loop {
            self.advance()?;
            self.flush().await?;
            if let Some(end) = self.run.end().cloned() {
                if self.run.is_over() {
                    self.close_questions().await;
                }
                return Ok(end);
            }
            if self.is_laying_down() && self.under_way.calls.is_empty() {
                // Whatever has come by now is kept: it was paid for. A model that failed may only have been stopped with us.
                if let Some(happened) = self.come_by_now() {
                    if !matches!(happened, Happened::Thought { outcome: Err(_), .. }) {
                        self.take(happened)?;
                    }
                    continue;
                }
                // Models that have not answered are asked again; whoever is asked a question finds it again.
                return Err(AgentError::LaidDown(self.context.lease.run.clone()));
            }
            match self.next(stop).await {
                Next::Happened(happened) => self.take_all(happened)?,
                Next::Beat => {
                    if self.beat().await? {
                        return self.stop(RunEnd::Cancelled).await;
                    }
                }
                Next::LayDown => self.draining = Some(Draining::LayDown),
                Next::Stop => return self.stop(RunEnd::Cancelled).await,
                Next::TimeIsUp => {
                    let end = self.capped(Cap::Time);
                    return self.stop(end).await;
                }
            }
        }
    }

    /// Waits. Time in which only a person thinks is nobody's work.
    async fn next(&mut self, stop: &CancelToken) -> Next {
        let since = self.under_way.waits_for_persons().then(Instant::now);
        let next = self.first(stop, since.is_none()).await;
        if let Some(since) = since {
            self.deadline += since.elapsed();
        }
        next
    }

    /// Whatever comes first; what tools say meanwhile is passed on.
    async fn first(&mut self, stop: &CancelToken, counts: bool) -> Next {
        loop {
            if stop.is_cancelled() {
                return Next::Stop;
            }
            let goes_on = !self.is_laying_down();
            if goes_on && stop.is_used() {
                return Next::LayDown;
            }
            if let Some(happened) = self.arrived.pop_front() {
                return Next::Happened(happened);
            }
            tokio::select! {
                biased;
                // What tools say comes last: nobody who talks without end keeps the others from their turn.
                () = stop.cancelled() => return Next::Stop,
                () = stop.used(), if goes_on => return Next::LayDown,
                () = tokio::time::sleep_until(self.deadline), if counts => return Next::TimeIsUp,
                _ = self.heartbeat.tick() => return Next::Beat,
                Some(happened) = self.tasks.next(), if !self.tasks.is_empty() => return Next::Happened(happened),
                Some(news) = self.news.recv() => self.context.watcher.see(&news),
            }
        }
    }

    /// Something that ended already.
    fn come_by_now(&mut self) -> Option<Happened> {
        self.arrived.pop_front().or_else(|| self.tasks.next().now_or_never().flatten())
    }

    fn is_laying_down(&self) -> bool {
        matches!(self.draining, Some(Draining::LayDown))
    }

    /// Takes what happened, and all that happened at the same time: it is written down together.
    fn take_all(&mut self, first: Happened) -> Result<(), AgentError> {
        self.take(first)?;
        while let Some(happened) = self.come_by_now() {
            self.take(happened)?;
        }
        Ok(())
    }

    /// Prolongs the lease; whether somebody elsewhere wants the run cancelled.
    async fn beat(&mut self) -> Result<bool, AgentError> {
        let super::session::Context { agent, parts, lease, .. } = self.context;
        match self.meanwhile(parts.log.renew(lease, agent.lease)).await {
            Ok(()) => {}
            Err(lost @ (JournalError::LeaseLost(_) | JournalError::UnknownRun(_))) => return Err(lost.into()),
            // A hiccup of the store is no reason to give up: the lease still lasts for two more beats.
            Err(error) => tracing::warn!(run = %lease.run, %error, "a heartbeat was missed"),
        }
        let questions = self.meanwhile(parts.approvals.of_run(&lease.run)).await.unwrap_or_default();
        let cancelled = |question: &toolyard_core::Question| {
            question.kind == QuestionKind::Cancellation && question.answer == Some(Answer::Allow)
        };
        self.answered_elsewhere(&questions)?;
        Ok(questions.iter().any(cancelled))
    }

    /// Notes the end of the run.
    pub(super) fn end(&mut self, end: RunEnd) -> Result<(), AgentError> {
        if !matches!(end, RunEnd::Answered { .. }) {
            self.drop_said();
        }
        self.note(RunEvent::Ended { end })
    }
}
