//! A call as a step of a run: written down before it is made and after, so that a crash never makes it twice.

use std::time::Duration;

use serde_json::json;
use toolyard_core::{
    Begun, Capability, ContentHash, ErrorKind, Intent, Journal, JournalError, Lease, RawJson, RunState,
    StepAnswer, StepOutcome, StepRecord, StepState, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
    idempotency_key, redact, redact_json,
};

use crate::{
    attempt::Call,
    failure::Failed,
    hub::{Prepared, ToolHub, Unrecorded, may_be_stood_in_for},
    options::CallOptions,
};

/// How long a lease outlives the call that it is for.
const GRACE: Duration = Duration::from_secs(60);
/// Of larger arguments only so many bytes are written down to be shown.
const SHOWN: usize = 16 << 10;

impl ToolHub {
    /// Carries out one call as a run of one step: written down before it is made and after. What cannot be written down is
    /// not called.
    pub async fn execute_journalled(
        &self,
        journal: &dyn Journal,
        owner: &str,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let detail = RawJson::from(json!({"tool": request.tool_name}));
        let unwritable = |error| not_begun(&error, request);
        let run = journal.create_run("call", &detail).await.map_err(unwritable)?;
        let lease = options.timeout.saturating_add(GRACE);
        let lease = journal.claim(&run, owner, lease).await.map_err(unwritable)?;
        let outcome = self.execute_step(journal, &lease, "call", request, options).await;
        let state = match &outcome {
            Ok(_) => RunState::Done,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => RunState::Open,
            Err(_) => RunState::Failed,
        };
        if let Err(error) = journal.release(&lease, state).await {
            tracing::warn!(%error, "the run was not closed");
        }
        outcome
    }

    /// Carries out one step of a run, unless the journal knows that it was done, or may have been. Its answer is the
    /// one it gave the first time; a step whose outcome is unknown is never made again by itself.
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

    /// The same, and where the call by name certainly changed nothing, by capability: only trusted tools that only read
    /// stand in for the one that was named.
    pub async fn execute_step_or_by_capability(
        &self,
        journal: &dyn Journal,
        lease: &Lease,
        step: &str,
        request: &ToolCallRequest,
        capability: Option<&Capability>,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let mut call = self.call(request, options);
        call.idempotency_key = Some(idempotency_key(&lease.run, step).into());
        let prepared = match self.prepared(&call) {
            Err(failed) if capability.is_none() || !may_be_stood_in_for(request, &failed) => {
                return Err(failed.error);
            }
            prepared => prepared,
        };
        let intent = intent(step, prepared.as_ref().ok(), request);
        if let (Ok(prepared), Some(judged)) = (&prepared, &options.judged)
            && !prepared.candidates.iter().all(|candidate| judged.contains(&definition_of(candidate.spec())))
        {
            let message = "the tool changed while it was being decided whether it may be called";
            return Err(ToolError::new(ErrorKind::Refused, message).on_tool(&request.tool_name));
        }
        match journal.begin(lease, &intent).await {
            Ok(Begun::Call) => {}
            Ok(Begun::Reuse(known)) => return reused(&known, &intent),
            Ok(Begun::Unknown(known)) => return Err(unknown(&known)),
            Err(error) => return Err(not_begun(&error, request)),
        }
        let watched = Unrecorded { hub: self, call: &call, options, open: true };
        let outcome = self.made(&call, prepared, capability, options).await;
        let outcome = watched.record(outcome);
        match journal.finish(lease, step, &step_outcome(&outcome)).await {
            Ok(()) => outcome,
            Err(error) => Err(not_finished(&error, request, intent.repeatable)),
        }
    }

    async fn made(
        &self,
        call: &Call<'_>,
        prepared: Result<Prepared, Failed>,
        capability: Option<&Capability>,
        options: &CallOptions,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = match prepared {
            Ok(prepared) => self.answered(call, &prepared, options).await,
            Err(failed) => Err(failed),
        };
        match capability {
            Some(capability) => self.or_by_capability(call, capability, options, outcome).await,
            None => outcome.map_err(|failed| failed.error),
        }
    }
}

/// What tells a tool's definition from others.
pub fn definition_of(spec: &ToolSpec) -> ContentHash {
    ContentHash::of(serde_json::to_vec(spec).unwrap_or_default())
}

/// What is about to be done. Without anybody of that name only tools that read can answer, so it may be repeated.
fn intent(step: &str, prepared: Option<&Prepared>, request: &ToolCallRequest) -> Intent {
    let candidates = prepared.map(|prepared| prepared.candidates.as_slice()).unwrap_or_default();
    let first = candidates.first();
    Intent {
        step: step.to_owned(),
        tool: request.tool_name.clone(),
        source: first.map(|candidate| candidate.source_id().clone()),
        definition: first.map_or_else(|| ContentHash::of(""), |candidate| definition_of(candidate.spec())),
        arguments: ContentHash::of(request.arguments.get()),
        shown_arguments: shown(&request.arguments),
        repeatable: candidates.iter().all(|candidate| candidate.hints.repeatable()),
    }
}

/// Arguments for a person, secrets removed; of large ones the beginning.
fn shown(arguments: &RawJson) -> String {
    let text = arguments.get();
    if text.len() <= SHOWN {
        return redact_json(arguments).0.get().to_owned();
    }
    let beginning = text.get(..text.floor_char_boundary(SHOWN)).unwrap_or_default();
    format!("{}… ({} bytes)", redact(beginning), text.len())
}

/// What the step answered the first time. A step that was made with other arguments is not this step.
fn reused(known: &StepRecord, intent: &Intent) -> Result<ToolOutput, ToolError> {
    if known.arguments != intent.arguments {
        let message = format!("step {} was made before with other arguments", known.step);
        return Err(ToolError::new(ErrorKind::Refused, message)
            .on_tool(&intent.tool)
            .with_hint("give a step with other arguments another name"));
    }
    if known.definition != intent.definition {
        tracing::warn!(run = %known.run, step = known.step, tool = intent.tool, "the tool changed since this step was made");
    }
    let kept = known.outcome.as_ref().map(RawJson::read::<StepAnswer>);
    match kept {
        Some(Ok(answer)) => answer.into_outcome().map_err(|error| error.on_tool(&intent.tool)),
        Some(Err(error)) => {
            Err(ToolError::new(ErrorKind::Internal, format!("the journal cannot be understood: {error}")))
        }
        None => Ok(ToolOutput::default()),
    }
}

fn unknown(known: &StepRecord) -> ToolError {
    let message =
        format!("step {} of run {} was begun before and nobody knows how it ended", known.step, known.run);
    ToolError::new(ErrorKind::Lost, message)
        .outcome_unknown()
        .on_tool(&known.tool)
        .with_hint("find out, then say it: toolyard runs unknown")
}

/// Nothing was called: without an intent there is no call.
fn not_begun(error: &JournalError, request: &ToolCallRequest) -> ToolError {
    ToolError::new(ErrorKind::Refused, format!("it was not called: {error}")).on_tool(&request.tool_name)
}

/// It was called, and what came of it could not be written down.
fn not_finished(error: &JournalError, request: &ToolCallRequest, repeatable: bool) -> ToolError {
    let lost = ToolError::new(ErrorKind::Lost, format!("its outcome could not be journalled: {error}"));
    let lost = lost.on_tool(&request.tool_name);
    if repeatable { lost } else { lost.outcome_unknown() }
}

fn step_outcome(outcome: &Result<ToolOutput, ToolError>) -> StepOutcome {
    let state = match outcome {
        Ok(_) => StepState::Done,
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => StepState::Unknown,
        Err(_) => StepState::Failed,
    };
    let answer =
        RawJson::from_serialize(&StepAnswer::of(outcome)).unwrap_or_else(|_| RawJson::empty_object());
    StepOutcome { state, outcome: answer }
}
