//! Attempts of one call on one candidate, with retries where they are safe.

use std::{
    borrow::Cow,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout_at};
use toolyard_core::{
    CallContext, CallRecord, Caller, CallerIdentity, DataOwner, ErrorKind, ExtendableDeadline, History,
    OutputMeta, SourceId, SourceSignal, ToolCallRequest, ToolError, ToolOutput,
    telemetry::{SpanContext, Telemetry},
};

use crate::{
    execution::{failure::CandidateFailure, operation::CallOperation, options::PendingEffect},
    registry::candidate::ToolCandidate,
    resilience::{breaker::Permit, retry::RetryPolicy},
    routing::{
        decision::{DecisionLog, log_decision},
        profile::Profile,
    },
};

/// Upper bound on one attempt, however much progress the tool reports.
const MAX_CALL_DURATION: Duration = Duration::from_secs(600);

/// Time allowed for processing an output that arrived shortly before or after the deadline.
const OUTPUT_PROCESSING_GRACE: Duration = Duration::from_secs(5);

/// Longer delays that a source asks for are shortened to this, so that adding them to an `Instant` cannot overflow.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// State shared by all attempts of one call.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a ToolCallRequest,
    pub(crate) deadline: Instant,
    /// Time allowed for the whole call; progress extends it if there is a caller.
    pub(crate) idle_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) history: &'a dyn History,
    pub(crate) decision_log: Option<&'a DecisionLog>,
    /// Set while a tool with side effects runs, so that an interrupted caller knows of a possible effect.
    pub(crate) pending_effect: Option<&'a PendingEffect>,
    pub(crate) caller: Option<&'a Arc<dyn Caller>>,
    /// For the audit log.
    pub(crate) caller_name: &'a Arc<str>,
    /// Callers share the slots of a source fairly, and failures of one do not stop the calls of another.
    pub(crate) share_key: Arc<str>,
    /// Restricts the candidates, if set.
    pub(crate) profile: Option<&'a Profile>,
    /// The agent that makes the call.
    pub(crate) agent: Option<&'a str>,
    /// For whom the call is made.
    pub(crate) identity: Option<&'a Arc<CallerIdentity>>,
    /// Set for journaled calls only.
    pub(crate) idempotency_key: Option<Arc<str>>,
    pub(crate) attempts: AtomicU32,
    pub(crate) telemetry: Option<&'a Arc<dyn Telemetry>>,
    /// Reported to telemetry, if there is one.
    pub(crate) operation: Option<CallOperation>,
    /// The span that causes the call, without telemetry.
    pub(crate) parent: Option<SpanContext>,
    /// Tools that succeeded; collected only if the user's request is stored for search.
    pub(crate) succeeded_tools: Option<Mutex<Vec<ToolAndSource>>>,
}

/// A tool name and the source that was called.
pub(crate) type ToolAndSource = (Arc<str>, SourceId);

impl Call<'_> {
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Whose data the call reads and leaves behind.
    pub(crate) fn data_owner(&self) -> DataOwner {
        DataOwner::of(self.identity.map(|identity| &**identity))
    }

    /// The trace of the call as text, for the log.
    fn trace_id(&self) -> Option<String> {
        let span = self.operation.as_ref()?.span?;
        Some(format!("{:032x}", span.trace_id))
    }

    /// The span that causes what the call calls.
    pub(crate) fn span(&self) -> Option<SpanContext> {
        self.operation.as_ref().map_or(self.parent, |operation| operation.span)
    }

    /// Reports nothing to telemetry, because nothing is called.
    pub(crate) fn discard_operation(&self) {
        self.operation.as_ref().inspect(|operation| operation.discard());
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let now = Instant::now();
        self.deadline
            .checked_sub(self.idle_timeout)
            .map_or(Duration::ZERO, |started| now.duration_since(started))
    }

    /// When processing of the output must end. Progress may have extended the call beyond its deadline, so there is always
    /// some time left for a call with a caller.
    pub(crate) fn processing_deadline(&self) -> Instant {
        let extended = self.caller.map(|_| Instant::now() + OUTPUT_PROCESSING_GRACE);
        extended.map_or(self.deadline, |extended| extended.max(self.deadline))
    }

    /// Calls one candidate; retries if that is safe or nothing was sent, and if it is useful and within retry budget and deadline.
    pub(crate) async fn call_with_retries(
        &self,
        candidate: &ToolCandidate,
    ) -> Result<ToolOutput, CandidateFailure> {
        let mut attempt = 1;
        // The last failure that may have had an effect.
        let mut failure_with_effect = None;
        loop {
            let failure = match self.attempt(candidate, attempt).await {
                Ok(output) => return Ok(output),
                Err(failure) => failure,
            };
            let backoff = self.retry.backoff_after(attempt, fastrand::f64());
            let retry_after = failure.error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
            let backoff = backoff.max(retry_after);
            let reason = match self.may_retry(candidate, &failure, attempt, backoff) {
                Ok(reason) => reason,
                Err(reason) => {
                    self.log_decision("retry", None, || {
                        (candidate.source_id().to_string(), format!("no: {reason}"))
                    });
                    return Err(match failure_with_effect {
                        Some(earlier) if failure.had_no_effect => failure.after(earlier),
                        _ => failure,
                    });
                }
            };
            if failure.never_sent && !candidate.hints.repeatable() {
                self.pending_effect.inspect(|effect| effect.retract());
            }
            if !failure.had_no_effect {
                failure_with_effect = Some(failure);
            }
            attempt += 1;
            self.log_decision("retry", Some(backoff), || {
                (
                    candidate.source_id().to_string(),
                    format!("attempt {attempt} of {} after a pause: {reason}", self.retry.max_attempts),
                )
            });
            sleep(backoff).await;
        }
    }

    /// Why the candidate may be called again, or why not.
    fn may_retry(
        &self,
        candidate: &ToolCandidate,
        failure: &CandidateFailure,
        attempt: u32,
        backoff: Duration,
    ) -> Result<&'static str, &'static str> {
        if !failure.never_sent && !candidate.hints.repeatable() {
            Err("not known to be idempotent")
        } else if !failure.error.retryable() {
            Err("another attempt would not help")
        } else if attempt >= self.retry.max_attempts {
            Err("no attempts left")
        } else if Instant::now() + backoff >= self.deadline {
            Err("no time left")
        } else if !candidate.health.retry_budget.withdraw() {
            Err("the retry budget is used up")
        } else if failure.never_sent {
            Ok("nothing was sent")
        } else {
            Ok("the tool is safe to repeat")
        }
    }

    /// Calls one candidate once: breaker, then concurrency limit, then the tool, until the deadline.
    pub(crate) async fn attempt(
        &self,
        candidate: &ToolCandidate,
        attempt: u32,
    ) -> Result<ToolOutput, CandidateFailure> {
        let started = Instant::now();
        let outcome =
            self.attempt_guarded(candidate, attempt, started).await.map_err(|error| candidate.locate(error));
        let elapsed = started.elapsed();
        self.log_decision("call", Some(elapsed), || {
            let result = match &outcome {
                Ok(_) => "answered".to_owned(),
                Err(error) => error.message().to_owned(),
            };
            let hints = candidate.hints.label();
            (
                format!("{}@{}", candidate.name, candidate.source_id()),
                format!("{hints}, attempt {attempt}: {result}"),
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
        let identity = self.identity.map(|identity| &**identity);
        // An instance that only this caller uses has its own health.
        let permit = match candidate.tool.is_isolated(identity) {
            true => None,
            false => {
                let admitted = candidate.health.breaker.admit(started, &self.share_key);
                Some(admitted.map_err(circuit_open_error)?)
            }
        };
        let limit = candidate.concurrency_limit();
        let exclusive = candidate.source.info.exclusive && !candidate.hints.read_only;
        let slot = match limit.try_acquire(&self.share_key, exclusive) {
            Some(slot) => Some(slot),
            None => timeout_at(self.deadline, limit.acquire(&self.share_key, exclusive)).await.ok(),
        };
        if slot.is_none() || Instant::now() >= self.deadline {
            let message = "the deadline passed before the tool could be called";
            return Err(ToolError::new(ErrorKind::Unavailable, message));
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.operation.as_ref().inspect(|operation| operation.set_called(candidate));
        if attempt == 1 {
            candidate.health.retry_budget.deposit();
        }
        let called_at = Instant::now();
        let outcome = self.call_tool(candidate, attempt).await;
        self.record_outcome(candidate, permit, &outcome, called_at.elapsed());
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
        // A caller that receives progress can cancel by itself, so progress extends its deadline.
        let extendable_deadline = self.caller.map(|_| {
            let now = Instant::now();
            Arc::new(ExtendableDeadline::new(
                now.into_std(),
                until.saturating_duration_since(now),
                MAX_CALL_DURATION,
            ))
        });
        let mut context = CallContext::until(until.into_std()).with_caller(self.caller.map(Arc::clone));
        context.attempt = attempt;
        context.owner = self.data_owner();
        context.span = self.span();
        context.identity = self.identity.map(Arc::clone);
        context.idempotency_key.clone_from(&self.idempotency_key);
        context.extendable_deadline.clone_from(&extendable_deadline);
        // Inside the block, because a tool may panic before it returns a future.
        let tool_future =
            AssertUnwindSafe(async { candidate.tool.call(&request, &context).await }).catch_unwind();
        let pending_effect = self.pending_effect.filter(|_| !candidate.hints.repeatable());
        pending_effect.inspect(|effect| effect.set(true));
        // If this future is dropped here, the effect stays pending: its outcome is unknown.
        let result = match &extendable_deadline {
            Some(extendable_deadline) => await_while_active(extendable_deadline, tool_future).await,
            None => timeout_at(until, tool_future).await.ok(),
        };
        pending_effect.inspect(|effect| effect.set(false));
        match result {
            Some(Ok(outcome)) => outcome,
            Some(Err(_panic)) => Err(ToolError::new(ErrorKind::Internal, "the tool panicked")
                .with_operator_hint("this is a bug in the tool; the panic message is on stderr")),
            None => {
                let message = format!("did not answer within {} s", idle_timeout.as_secs_f64());
                Err(ToolError::new(ErrorKind::Timeout, message)
                    .with_operator_hint("raise the limit with --timeout or `[call] timeout`"))
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
        permit: Option<Permit>,
        outcome: &Result<ToolOutput, ToolError>,
        elapsed: Duration,
    ) {
        let signal = outcome.as_ref().map_or_else(ToolError::source_signal, |_| SourceSignal::Healthy);
        match (permit, signal) {
            (Some(permit), SourceSignal::Healthy) => permit.succeeded(),
            (Some(permit), SourceSignal::Faulty) => permit.failed(Instant::now(), &self.share_key),
            (permit, _) => drop(permit),
        }
        if let Err(error) = outcome {
            self.log_failure(candidate, error, elapsed);
        }
        let error = outcome.as_ref().err().map(ToolError::kind);
        if let (None, Some(succeeded)) = (error, &self.succeeded_tools) {
            let mut succeeded = succeeded.lock();
            succeeded.push((Arc::clone(&candidate.name), candidate.source_id().clone()));
        }
        self.history.record(&CallRecord::new(&candidate.name, candidate.source_id(), error, elapsed));
    }

    /// Logs a call that failed through its source. What a tool itself reports concerns its caller only.
    fn log_failure(&self, candidate: &ToolCandidate, error: &ToolError, elapsed: Duration) {
        use ErrorKind as K;
        if matches!(error.kind(), K::Unavailable | K::Timeout | K::ResponseLost | K::Internal) {
            let is_authenticated = self.identity.is_some_and(|identity| identity.is_distinguished());
            let scope = &candidate.source.info.scope;
            tracing::warn!(
                target: "toolyard_hub::upstream",
                source = %candidate.source_id(),
                tool = &*candidate.name,
                // A server with a URL has its host as the only label.
                host = scope.labels.first().filter(|_| scope.program.is_none()).map(String::as_str),
                error = error.message(),
                hint = error.hint(),
                // Unless the caller is identified, the name is only the client's claim.
                caller = is_authenticated.then_some(&**self.caller_name),
                client = (!is_authenticated).then_some(&**self.caller_name),
                call = self.request.id,
                duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                trace_id = self.trace_id(),
                "call failed"
            );
        }
    }

    pub(crate) fn log_decision(
        &self,
        stage: &'static str,
        elapsed: Option<Duration>,
        describe: impl FnOnce() -> (String, String),
    ) {
        log_decision(self.decision_log, &self.request.id, stage, elapsed, describe);
    }
}

/// Awaits `work` until the deadline, which activity extends. `None` if it passes.
async fn await_while_active<T>(deadline: &ExtendableDeadline, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let next_check_at = Instant::from_std(deadline.next_check(Instant::now().into_std()));
        match timeout_at(next_check_at, &mut work).await {
            Ok(done) => return Some(done),
            Err(_elapsed) if deadline.deadline() > Instant::now().into_std() => {}
            Err(_elapsed) => return None,
        }
    }
}

fn circuit_open_error(remaining: Duration) -> ToolError {
    ToolError::new(ErrorKind::CircuitOpen, "circuit open after repeated failures")
        .with_hint(format!("retry in {} s", remaining.as_secs_f64().ceil()))
        .with_retry_after(remaining)
}

fn has_unknown_outcome(error: &ToolError) -> bool {
    matches!(error.kind(), ErrorKind::Timeout | ErrorKind::ResponseLost | ErrorKind::Internal)
}
