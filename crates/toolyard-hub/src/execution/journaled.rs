//! Calls as journaled steps of a run: recorded before and after, so that a call with side effects is not repeated after a crash.

use std::{convert::Infallible, time::Duration};

use serde_json::json;
use toolyard_core::{
    Capability, ContentHash, ErrorKind, FinishedStep, Journal, JournalError, Lease, RawJson, RunState,
    StepIntent, StepRecord, StepResult, StepStart, StepState, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec, idempotency_key, redact, redact_json,
};

use crate::{
    execution::{attempt::Call, failure::CallFailure, options::CallOptions},
    hub::{AuditGuard, PreparedCall, ToolHub, allows_capability_fallback},
};

/// Duration of the lease on the run of a single call. It is renewed during the call, so that a call whose process died is
/// soon known to be unknown.
const CALL_LEASE_DURATION: Duration = Duration::from_secs(15);
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// Larger arguments are recorded as a preview of this size.
const MAX_ARGUMENT_PREVIEW_BYTES: usize = 16 << 10;

impl ToolHub {
    /// Executes one call as a run with a single step. If the intent cannot be recorded, the tool is not called.
    pub async fn execute_journaled(
        &self,
        journal: &dyn Journal,
        owner: &str,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let detail = RawJson::from(json!({"tool": request.tool_name}));
        let not_recorded = |error| self.refuse(request, options, journal_start_failed(&error, request));
        let run = journal.create_run("call", &detail).await.map_err(not_recorded)?;
        let lease = journal.claim(&run, owner, CALL_LEASE_DURATION).await.map_err(not_recorded)?;
        let call = Box::pin(self.execute_step(journal, &lease, "call", request, options));
        let outcome = tokio::select! {
            biased;
            outcome = call => outcome,
            never = renew_lease(journal, &lease) => match never {},
        };
        let state = match &outcome {
            Ok(_) => RunState::Done,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => RunState::Open,
            Err(_) => RunState::Failed,
        };
        if let Err(error) = journal.release(&lease, state).await {
            tracing::warn!(%error, "failed to close the run");
        }
        outcome
    }

    /// Executes one step of a run unless the journal has its outcome, which is then returned. A step with an unknown
    /// outcome is never repeated automatically.
    pub async fn execute_step(
        &self,
        journal: &dyn Journal,
        lease: &Lease,
        step: &str,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        self.execute_step_or_by_capability(journal, lease, step, request, None, options).await
    }

    /// Like [`execute_step`](Self::execute_step), with the capability fallback of [`execute_or_by_capability`](Self::execute_or_by_capability).
    pub async fn execute_step_or_by_capability(
        &self,
        journal: &dyn Journal,
        lease: &Lease,
        step: &str,
        request: &ToolCallRequest,
        capability: Option<&Capability>,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let mut call = self.new_call(request, options);
        call.idempotency_key = Some(idempotency_key(&lease.run, step).into());
        let prepared = match self.prepare(&call) {
            Err(failure) if capability.is_none() || !allows_capability_fallback(request, &failure) => {
                return self.record(&call, options, Err(failure.error));
            }
            prepared => prepared,
        };
        let intent = intent(step, prepared.as_ref().ok(), request);
        if let (Ok(prepared), Some(approved)) = (&prepared, &options.approved_definitions)
            && !prepared
                .candidates
                .iter()
                .all(|candidate| approved.contains(&definition_hash(candidate.spec())))
        {
            let message = "the tool definition changed while the call awaited approval";
            let error = ToolError::new(ErrorKind::Refused, message).on_tool(&request.tool_name);
            return self.record(&call, options, Err(error));
        }
        self.admit(request).inspect_err(|_| call.discard_operation())?;
        // Before the intent is recorded: a call that waits for its quota is the same step later.
        let candidates = prepared.as_ref().map(|prepared| prepared.candidates.as_slice()).unwrap_or_default();
        let _permit = match self.take_quota(&call, candidates).await {
            Ok(permit) => permit,
            Err(error) => return self.record(&call, options, Err(error)),
        };
        match journal.begin(lease, &intent).await {
            Ok(StepStart::Call) => {}
            Ok(StepStart::Reuse(record)) => {
                call.discard_operation();
                return reuse_recorded(&record, &intent);
            }
            Ok(StepStart::Unknown(record)) => {
                call.discard_operation();
                return Err(outcome_unknown(&record));
            }
            Err(error) => {
                return self.record(&call, options, Err(journal_start_failed(&error, request)));
            }
        }
        let audit_guard = AuditGuard { hub: self, call: &call, options, is_recorded: false };
        let outcome = self.execute_with_intent(&call, prepared, capability, options).await;
        // Before the step is finished: its result is given again to who resumes the run.
        let outcome = self.withhold_until_recorded(request, audit_guard.record(outcome)).await;
        match journal.finish(lease, step, &finished_step(&outcome)).await {
            Ok(()) => outcome,
            Err(error) => Err(journal_finish_failed(&error, request, intent.repeatable)),
        }
    }

    async fn execute_with_intent(
        &self,
        call: &Call<'_>,
        prepared: Result<PreparedCall, CallFailure>,
        capability: Option<&Capability>,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = match prepared {
            Ok(prepared) => self.execute_prepared(call, &prepared, options).await,
            Err(failure) => Err(failure),
        };
        match capability {
            Some(capability) => self.or_by_capability(call, capability, options, outcome).await,
            None => outcome.map_err(|failure| failure.error),
        }
    }
}

/// Renews a lease for as long as it is polled. A renewal that fails is tried again after the interval.
async fn renew_lease(journal: &dyn Journal, lease: &Lease) -> Infallible {
    loop {
        tokio::time::sleep(LEASE_RENEWAL_INTERVAL).await;
        if let Err(error) = journal.renew(lease, CALL_LEASE_DURATION).await {
            tracing::warn!(run = %lease.run, %error, "failed to renew the lease of a call");
        }
    }
}

/// Hash of a tool definition.
pub fn definition_hash(spec: &ToolSpec) -> ContentHash {
    ContentHash::of(serde_json::to_vec(spec).unwrap_or_default())
}

/// The intent to record before the call. Without a candidate of that name only read-only tools can serve the call, so it
/// is safe to repeat.
fn intent(step: &str, prepared: Option<&PreparedCall>, request: &ToolCallRequest) -> StepIntent {
    let candidates = prepared.map(|prepared| prepared.candidates.as_slice()).unwrap_or_default();
    let first = candidates.first();
    StepIntent {
        step: step.to_owned(),
        tool: request.tool_name.clone(),
        source: first.map(|candidate| candidate.source_id().clone()),
        definition: first.map_or_else(|| ContentHash::of(""), |candidate| definition_hash(candidate.spec())),
        arguments: ContentHash::of(request.arguments.get()),
        redacted_arguments: preview_arguments(&request.arguments),
        repeatable: candidates.iter().all(|candidate| candidate.hints.repeatable()),
    }
}

/// Redacted arguments for display; large ones are truncated.
fn preview_arguments(arguments: &RawJson) -> String {
    let text = arguments.get();
    if text.len() <= MAX_ARGUMENT_PREVIEW_BYTES {
        return redact_json(arguments).0.get().to_owned();
    }
    let beginning = text.get(..text.floor_char_boundary(MAX_ARGUMENT_PREVIEW_BYTES)).unwrap_or_default();
    format!("{}… ({} bytes)", redact(beginning), text.len())
}

/// The recorded outcome of a step. Fails if the step was recorded with other arguments.
fn reuse_recorded(record: &StepRecord, intent: &StepIntent) -> Result<ToolOutput, ToolError> {
    if record.arguments != intent.arguments {
        let message = format!("step {} was executed before with other arguments", record.step);
        return Err(ToolError::new(ErrorKind::Refused, message)
            .on_tool(&intent.tool)
            .with_hint("use another step name for other arguments"));
    }
    if record.definition != intent.definition {
        tracing::warn!(run = %record.run, step = record.step, tool = intent.tool, "the tool definition changed since this step was executed");
    }
    let result = record.outcome.as_ref().map(RawJson::read::<StepResult>);
    match result {
        Some(Ok(result)) => result.into_tool_result().map_err(|error| error.on_tool(&intent.tool)),
        Some(Err(error)) => {
            Err(ToolError::new(ErrorKind::Internal, format!("failed to parse a journal entry: {error}")))
        }
        None => Ok(ToolOutput::default()),
    }
}

fn outcome_unknown(record: &StepRecord) -> ToolError {
    let message =
        format!("step {} of run {} was started before and its outcome is unknown", record.step, record.run);
    ToolError::new(ErrorKind::ResponseLost, message)
        .outcome_unknown()
        .on_tool(&record.tool)
        .with_operator_hint(
            "check what happened, then record it: toolyard runs resolve RUN STEP done|not-done",
        )
}

/// The intent could not be recorded, so the tool was not called.
fn journal_start_failed(error: &JournalError, request: &ToolCallRequest) -> ToolError {
    ToolError::new(ErrorKind::Refused, format!("not called: {error}")).on_tool(&request.tool_name)
}

/// The tool was called but its outcome could not be recorded.
fn journal_finish_failed(error: &JournalError, request: &ToolCallRequest, repeatable: bool) -> ToolError {
    let error = ToolError::new(
        ErrorKind::ResponseLost,
        format!("the outcome of the call could not be recorded in the journal: {error}"),
    );
    let error = error.on_tool(&request.tool_name);
    if repeatable { error } else { error.outcome_unknown() }
}

fn finished_step(outcome: &Result<ToolOutput, ToolError>) -> FinishedStep {
    let state = match outcome {
        Ok(_) => StepState::Done,
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => StepState::Unknown,
        Err(_) => StepState::Failed,
    };
    let result =
        RawJson::from_serialize(&StepResult::of(outcome)).unwrap_or_else(|_| RawJson::empty_object());
    FinishedStep { state, result }
}
