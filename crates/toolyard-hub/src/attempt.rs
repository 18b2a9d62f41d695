//! One call under way: single attempts, and repetition where that is safe.

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
    CallContext, CallOutcome, Caller, ErrorKind, History, OutputMeta, Patience, SourceId, ToolCallRequest,
    ToolError, ToolOutput,
};

use crate::{
    breaker::Permit,
    candidate::ToolCandidate,
    decision::{Trail, note},
    failure::Failure,
    options::Watch,
    retry::RetryPolicy,
    surface::Profile,
};

/// However many signs of life a tool shows: nobody waits longer for one attempt.
const LONGEST_ALIVE: Duration = Duration::from_secs(600);

/// How long an answer may be worked on that came after the deadline.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// What all attempts of one call share.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a ToolCallRequest,
    pub(crate) deadline: Instant,
    /// How long the call may take in all.
    pub(crate) patience: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) history: &'a dyn History,
    pub(crate) trail: Option<&'a Trail>,
    pub(crate) watch: Option<&'a Watch>,
    pub(crate) caller: Option<&'a Arc<dyn Caller>>,
    /// Which tools may answer at all.
    pub(crate) profile: Option<&'a Profile>,
    /// Only calls that are journalled have one.
    pub(crate) idempotency_key: Option<Arc<str>>,
    pub(crate) attempts: AtomicU32,
    /// Who answered; only for calls whose request is remembered.
    pub(crate) answered: Option<Mutex<Vec<Answered>>>,
}

/// A tool and the source that answered.
pub(crate) type Answered = (Arc<str>, SourceId);

impl Call<'_> {
    /// How many calls were made so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// How long it has been going on.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = Instant::now();
        self.deadline.checked_sub(self.patience).map_or(Duration::ZERO, |began| now.duration_since(began))
    }

    /// Until when its answer may be worked on: signs of life may have carried it beyond its deadline.
    pub(crate) fn last_moment(&self) -> Instant {
        let prolonged = self.caller.map(|_| Instant::now() + AFTERWARDS);
        prolonged.map_or(self.deadline, |moment| moment.max(self.deadline))
    }

    /// Calls one candidate, again after a failure where that is safe, may help, and is within budget and deadline.
    pub(crate) async fn with_retries(&self, candidate: &ToolCandidate) -> Result<ToolOutput, Failure> {
        let mut attempt = 1;
        let mut no_effect = true;
        loop {
            let mut failure = match self.attempt(candidate, attempt).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            // The last error alone does not tell what an earlier attempt did.
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
        } else if !candidate.health.retries.pay() {
            Err("the retry budget is used up")
        } else {
            Ok(())
        }
    }

    /// Calls one candidate once: if its source is not left alone, when it is its turn, until the deadline.
    pub(crate) async fn attempt(
        &self,
        candidate: &ToolCandidate,
        attempt: u32,
    ) -> Result<ToolOutput, Failure> {
        let started = Instant::now();
        let outcome =
            self.carried_out(candidate, attempt, started).await.map_err(|error| candidate.locate(error));
        let elapsed = started.elapsed();
        self.note("call", Some(elapsed), || {
            let what = match &outcome {
                Ok(_) => "answered".to_owned(),
                Err(error) => error.message().to_owned(),
            };
            let hints = candidate.hints.word();
            (
                format!("{}@{}", candidate.name, candidate.source_id()),
                format!("{hints}, attempt {attempt}: {what}"),
            )
        });
        outcome.map_err(|error| Failure::of(candidate, error))
    }

    async fn carried_out(
        &self,
        candidate: &ToolCandidate,
        attempt: u32,
        started: Instant,
    ) -> Result<ToolOutput, ToolError> {
        let permit = candidate.health.breaker.admit(started).map_err(left_alone)?;
        let gate = candidate.gate();
        let alone = candidate.source.info.exclusive && !candidate.hints.read_only;
        let turn = match gate.try_enter(alone) {
            Some(turn) => Some(turn),
            None => timeout_at(self.deadline, gate.enter(alone)).await.ok().flatten(),
        };
        if turn.is_none() || Instant::now() >= self.deadline {
            let message = "there was no time left to call it before the deadline";
            return Err(ToolError::new(ErrorKind::Unavailable, message));
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if attempt == 1 {
            candidate.health.retries.earn();
        }
        let called = Instant::now();
        let outcome = self.called(candidate, attempt).await;
        self.settle(candidate, permit, &outcome, called.elapsed());
        match outcome {
            Ok(mut output) => {
                output.meta = OutputMeta::of(candidate.source_id().clone(), 1);
                Ok(output)
            }
            // Whoever waits must know that it may have happened; nobody may try it elsewhere.
            Err(error) if !candidate.hints.repeatable() && leaves_outcome_open(&error) => {
                Err(error.outcome_unknown())
            }
            Err(error) => Err(error),
        }
    }

    /// The tool's own answer; a panic in it is a failure of this call and of nothing else.
    async fn called(&self, candidate: &ToolCandidate, attempt: u32) -> Result<ToolOutput, ToolError> {
        let request = if *self.request.tool_name == *candidate.name {
            Cow::Borrowed(self.request)
        } else {
            Cow::Owned(ToolCallRequest { tool_name: candidate.name.to_string(), ..self.request.clone() })
        };
        let patience = self.patience_with(candidate);
        let until = self.deadline.min(Instant::now() + patience);
        let context = CallContext::until(until.into_std()).attempt(attempt);
        let context = context.with_idempotency_key(self.idempotency_key.clone());
        // Whoever hears of progress, and can give up by itself, waits longer than others for a tool that shows some.
        let alive = self.caller.map(|_| {
            let now = Instant::now();
            Arc::new(Patience::new(now.into_std(), until.saturating_duration_since(now), LONGEST_ALIVE))
        });
        let context = context.with_caller(self.caller.map(Arc::clone)).with_patience(alive.clone());
        // Inside the block, because a tool may panic before there is a future too.
        let answer = AssertUnwindSafe(async { candidate.tool.call(&request, &context).await }).catch_unwind();
        let risky = self.watch.filter(|_| !candidate.hints.repeatable());
        risky.inspect(|watch| watch.set(true));
        // Whoever is dropped while waiting here leaves the watch as it is: nobody knows how it ended.
        let answered = match &alive {
            Some(alive) => while_alive(alive, answer).await,
            None => timeout_at(until, answer).await.ok(),
        };
        risky.inspect(|watch| watch.set(false));
        match answered {
            Some(Ok(outcome)) => outcome,
            Some(Err(_panic)) => Err(ToolError::new(ErrorKind::Internal, "the tool panicked")
                .with_hint("this is a fault in the tool; its message is on stderr")),
            None => {
                let message = format!("did not answer within {} s", patience.as_secs_f64());
                Err(ToolError::new(ErrorKind::Timeout, message).with_hint("raise the limit with --timeout"))
            }
        }
    }

    /// How long one attempt may take: the whole time of the call, or less where another attempt could follow.
    fn patience_with(&self, candidate: &ToolCandidate) -> Duration {
        match self.retry.attempt_timeout {
            Some(limit) if candidate.hints.repeatable() => limit.min(self.patience),
            _ => self.patience,
        }
    }

    fn settle(
        &self,
        candidate: &ToolCandidate,
        permit: Permit,
        outcome: &Result<ToolOutput, ToolError>,
        elapsed: Duration,
    ) {
        match outcome {
            Err(error) if error.blames_source() => permit.failed(Instant::now()),
            _ => permit.succeeded(),
        }
        let error = outcome.as_ref().err().map(ToolError::kind);
        if let (None, Some(answered)) = (error, &self.answered) {
            let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.push((Arc::clone(&candidate.name), candidate.source_id().clone()));
        }
        self.history.record(&CallOutcome::new(&candidate.name, candidate.source_id(), error, elapsed));
    }

    /// Takes note of a decision about this call.
    pub(crate) fn note(
        &self,
        stage: &'static str,
        elapsed: Option<Duration>,
        words: impl FnOnce() -> (String, String),
    ) {
        note(self.trail, &self.request.id, stage, elapsed, words);
    }
}

/// What `work` brings, unless its patience is over before.
async fn while_alive<T>(patience: &Patience, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let look = Instant::from_std(patience.next_look(Instant::now().into_std()));
        match timeout_at(look, &mut work).await {
            Ok(done) => return Some(done),
            Err(_elapsed) if patience.deadline() > Instant::now().into_std() => {}
            Err(_elapsed) => return None,
        }
    }
}

fn left_alone(left: Duration) -> ToolError {
    ToolError::new(ErrorKind::CircuitOpen, "it failed repeatedly and is left alone for a while")
        .with_hint(format!("it is tried again in {} s", left.as_secs_f64().ceil()))
}

fn leaves_outcome_open(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Lost | ErrorKind::Internal)
}
