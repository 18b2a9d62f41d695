//! Attempts of one call on one candidate, with retries where they are safe.

use std::{
    borrow::Cow,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, timeout_at};
use toolyard_core::{
    CallContext, CallOutcome, Caller, ErrorKind, ExtendableDeadline, History, OutputMeta, SourceId,
    ToolCallRequest, ToolError, ToolOutput,
};

use crate::{
    execution::{failure::CandidateFailure, options::PendingEffect},
    registry::candidate::ToolCandidate,
    resilience::{breaker::Permit, retry::RetryPolicy},
    routing::{
        decision::{DecisionLog, note},
        profile::Profile,
    },
};

/// Upper bound on one attempt, however much progress the tool reports.
const MAX_CALL_DURATION: Duration = Duration::from_secs(600);

/// Time allowed for processing an output that arrived after the deadline.
const ABANDONED_CALL_GRACE: Duration = Duration::from_secs(5);

/// State shared by all attempts of one call.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a ToolCallRequest,
    pub(crate) deadline: Instant,
    /// Time allowed for the whole call.
    pub(crate) idle_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) history: &'a dyn History,
    pub(crate) trail: Option<&'a DecisionLog>,
    pub(crate) watch: Option<&'a PendingEffect>,
    pub(crate) caller: Option<&'a Arc<dyn Caller>>,
    /// Restricts the candidates, if set.
    pub(crate) profile: Option<&'a Profile>,
    /// Set for journaled calls only.
    pub(crate) idempotency_key: Option<Arc<str>>,
    pub(crate) attempts: AtomicU32,
    /// Tools that answered; collected only if the request is stored for search.
    pub(crate) answered: Option<Mutex<Vec<AnsweringTool>>>,
}

/// Tool name and source that answered.
pub(crate) type AnsweringTool = (Arc<str>, SourceId);

impl Call<'_> {
    /// Number of attempts so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Time since the call started.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = Instant::now();
        self.deadline.checked_sub(self.idle_timeout).map_or(Duration::ZERO, |began| now.duration_since(began))
    }

    /// When processing of the output must end; progress may have extended the call beyond its deadline.
    pub(crate) fn last_moment(&self) -> Instant {
        let prolonged = self.caller.map(|_| Instant::now() + ABANDONED_CALL_GRACE);
        prolonged.map_or(self.deadline, |moment| moment.max(self.deadline))
    }

    /// Calls one candidate; retries if that is safe, useful, and within retry budget and deadline.
    pub(crate) async fn with_retries(
        &self,
        candidate: &ToolCandidate,
    ) -> Result<ToolOutput, CandidateFailure> {
        let mut attempt = 1;
        let mut no_effect = true;
        loop {
            let mut failure = match self.attempt(candidate, attempt).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            // An earlier attempt may have had an effect, even if the last error rules one out.
            no_effect &= failure.no_effect;
            let pause = self.retry.pause_after(attempt, fastrand::f64());
            if let Err(why) = self.may_retry(candidate, &failure.error, attempt, pause) {
                self.note("retry", None, || (candidate.source_id().to_string(), format!("no: {why}")));
                failure.no_effect = no_effect;
                return Err(failure);
            }
            attempt += 1;
            self.note("retry", Some(pause), || {
                (
                    candidate.source_id().to_string(),
                    format!("attempt {attempt} of {} after a pause", self.retry.attempts),
                )
            });
            sleep(pause).await;
        }
    }

    fn may_retry(
        &self,
        candidate: &ToolCandidate,
        error: &ToolError,
        attempt: u32,
        pause: Duration,
    ) -> Result<(), &'static str> {
        if !candidate.hints.repeatable() {
            Err("not known to be idempotent")
        } else if !error.retryable() {
            Err("another attempt would not help")
        } else if attempt >= self.retry.attempts {
            Err("no attempts left")
        } else if Instant::now() + pause >= self.deadline {
            Err("no time left")
        } else if !candidate.health.retries.withdraw() {
            Err("the retry budget is used up")
        } else {
            Ok(())
        }
    }

    /// Calls one candidate once: breaker, then concurrency gate, then the tool, until the deadline.
    pub(crate) async fn attempt(
        &self,
        candidate: &ToolCandidate,
        attempt: u32,
    ) -> Result<ToolOutput, CandidateFailure> {
        let started = Instant::now();
        let outcome =
            self.attempt_guarded(candidate, attempt, started).await.map_err(|error| candidate.locate(error));
        let elapsed = started.elapsed();
        self.note("call", Some(elapsed), || {
            let what = match &outcome {
                Ok(_) => "answered".to_owned(),
                Err(error) => error.message().to_owned(),
            };
            let hints = candidate.hints.label();
            (
                format!("{}@{}", candidate.name, candidate.source_id()),
                format!("{hints}, attempt {attempt}: {what}"),
            )
        });
        outcome.map_err(|error| CandidateFailure::of(candidate, error))
    }

    async fn attempt_guarded(
        &self,
        candidate: &ToolCandidate,
        attempt: u32,
        started: Instant,
    ) -> Result<ToolOutput, ToolError> {
        let permit = candidate.health.breaker.admit(started).map_err(circuit_open_error)?;
        let gate = candidate.gate();
        let alone = candidate.source.info.exclusive && !candidate.hints.read_only;
        let turn = match gate.try_enter(alone) {
            Some(turn) => Some(turn),
            None => timeout_at(self.deadline, gate.enter(alone)).await.ok().flatten(),
        };
        if turn.is_none() || Instant::now() >= self.deadline {
            let message = "the deadline passed before the tool could be called";
            return Err(ToolError::new(ErrorKind::Unavailable, message));
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if attempt == 1 {
            candidate.health.retries.deposit();
        }
        let called = Instant::now();
        let outcome = self.call_tool(candidate, attempt).await;
        self.record_outcome(candidate, permit, &outcome, called.elapsed());
        match outcome {
            Ok(mut output) => {
                output.meta = OutputMeta::of(candidate.source_id().clone(), 1);
                Ok(output)
            }
            // The call may have had an effect: report that, and do not try another candidate.
            Err(error) if !candidate.hints.repeatable() && has_unknown_outcome(&error) => {
                Err(error.outcome_unknown())
            }
            Err(error) => Err(error),
        }
    }

    /// Calls the tool; a panic in it fails this call only.
    async fn call_tool(&self, candidate: &ToolCandidate, attempt: u32) -> Result<ToolOutput, ToolError> {
        let request = if *self.request.tool_name == *candidate.name {
            Cow::Borrowed(self.request)
        } else {
            Cow::Owned(ToolCallRequest { tool_name: candidate.name.to_string(), ..self.request.clone() })
        };
        let idle_timeout = self.idle_timeout_for(candidate);
        let until = self.deadline.min(Instant::now() + idle_timeout);
        let context = CallContext::until(until.into_std()).attempt(attempt);
        let context = context.with_idempotency_key(self.idempotency_key.clone());
        // A caller that receives progress can cancel by itself, so progress extends its deadline.
        let alive = self.caller.map(|_| {
            let now = Instant::now();
            Arc::new(ExtendableDeadline::new(
                now.into_std(),
                until.saturating_duration_since(now),
                MAX_CALL_DURATION,
            ))
        });
        let context =
            context.with_caller(self.caller.map(Arc::clone)).with_extendable_deadline(alive.clone());
        // Inside the block, because a tool may panic before it returns a future.
        let answer = AssertUnwindSafe(async { candidate.tool.call(&request, &context).await }).catch_unwind();
        let risky = self.watch.filter(|_| !candidate.hints.repeatable());
        risky.inspect(|watch| watch.set(true));
        // If this future is dropped here, the effect stays pending: its outcome is unknown.
        let answered = match &alive {
            Some(alive) => await_while_active(alive, answer).await,
            None => timeout_at(until, answer).await.ok(),
        };
        risky.inspect(|watch| watch.set(false));
        match answered {
            Some(Ok(outcome)) => outcome,
            Some(Err(_panic)) => Err(ToolError::new(ErrorKind::Internal, "the tool panicked")
                .with_hint("this is a bug in the tool; the panic message is on stderr")),
            None => {
                let message = format!("did not answer within {} s", idle_timeout.as_secs_f64());
                Err(ToolError::new(ErrorKind::Timeout, message).with_hint("raise the limit with --timeout"))
            }
        }
    }

    /// Timeout of one attempt: that of the whole call, or less if a retry could follow.
    fn idle_timeout_for(&self, candidate: &ToolCandidate) -> Duration {
        match self.retry.attempt_timeout {
            Some(limit) if candidate.hints.repeatable() => limit.min(self.idle_timeout),
            _ => self.idle_timeout,
        }
    }

    fn record_outcome(
        &self,
        candidate: &ToolCandidate,
        permit: Permit,
        outcome: &Result<ToolOutput, ToolError>,
        elapsed: Duration,
    ) {
        match outcome {
            Err(error) if error.is_source_fault() => permit.failed(Instant::now()),
            _ => permit.succeeded(),
        }
        let error = outcome.as_ref().err().map(ToolError::kind);
        if let (None, Some(answered)) = (error, &self.answered) {
            let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.push((Arc::clone(&candidate.name), candidate.source_id().clone()));
        }
        self.history.record(&CallOutcome::new(&candidate.name, candidate.source_id(), error, elapsed));
    }

    /// Logs a decision about this call.
    pub(crate) fn note(
        &self,
        stage: &'static str,
        elapsed: Option<Duration>,
        words: impl FnOnce() -> (String, String),
    ) {
        note(self.trail, &self.request.id, stage, elapsed, words);
    }
}

/// Awaits `work` until the (extendable) deadline passes.
async fn await_while_active<T>(
    idle_deadline: &ExtendableDeadline,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let look = Instant::from_std(idle_deadline.next_check(Instant::now().into_std()));
        match timeout_at(look, &mut work).await {
            Ok(done) => return Some(done),
            Err(_elapsed) if idle_deadline.deadline() > Instant::now().into_std() => {}
            Err(_elapsed) => return None,
        }
    }
}

fn circuit_open_error(left: Duration) -> ToolError {
    ToolError::new(ErrorKind::CircuitOpen, "circuit open after repeated failures")
        .with_hint(format!("retry in {} s", left.as_secs_f64().ceil()))
}

fn has_unknown_outcome(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Timeout | ErrorKind::ResponseLost | ErrorKind::Internal)
}
