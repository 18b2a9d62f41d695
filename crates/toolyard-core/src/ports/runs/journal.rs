//! The journal of runs and steps: after a crash, no call with side effects is repeated.
//!
//! The intent of a step is written before its call, the outcome after it. When a run is resumed, [`recovery`] decides what
//! to do about each step. A lease with a fencing token keeps an owner whose lease expired from writing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ContentHash, ErrorKind, RawJson, SourceId, ToolError, ToolOutput, text_id::text_id};

text_id! {
    /// Identifies a run: the steps of one plan, or a single call. One process at a time executes it, and another can resume it.
    RunId
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RunState {
    Open,
    Done,
    Failed,
    Cancelled,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// What it executes: a single call, a plan.
    pub kind: String,
    /// Its state.
    pub state: RunState,
    /// The data that its driver needs to resume it.
    pub detail: RawJson,
    /// The owner of the latest lease; none if the run was never claimed or was released.
    pub owner: Option<String>,
    /// Whether the lease has not expired, so that no other process can claim the run.
    pub leased: bool,
    /// The fencing token of the latest lease.
    pub fence: i64,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// The right to write to a run, until another process claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The owner.
    pub owner: String,
    /// The fencing token: larger for each new lease. Writes with a smaller one are rejected.
    pub fence: i64,
}

/// The call that a step is about to make.
#[derive(Debug, Clone, PartialEq)]
pub struct StepIntent {
    /// The step's name within its run.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// The source that is called first.
    pub source: Option<SourceId>,
    /// The hash of the tool's definition, to detect a changed tool.
    pub definition: ContentHash,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The arguments for display, with secrets redacted.
    pub redacted_arguments: String,
    /// Whether the call can be repeated safely.
    pub repeatable: bool,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// The call may have been made.
    Started,
    /// The call succeeded.
    Done,
    /// The call failed.
    Failed,
    /// The outcome is unknown; the user must find out and record it.
    Unknown,
    /// The user resolved that the call had no effect: it may be made.
    NotDone,
}

/// A stored step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRecord {
    /// Its run.
    pub run: RunId,
    /// Its name within the run.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// The source that was called first.
    pub source: Option<SourceId>,
    /// The hash of the tool's definition at the time of the call.
    pub definition: ContentHash,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The arguments with secrets redacted.
    pub redacted_arguments: String,
    /// Whether the call can be repeated safely.
    pub repeatable: bool,
    /// Its state.
    pub state: StepState,
    /// The [`StepResult`], once known.
    pub outcome: Option<RawJson>,
    /// Whether secrets were redacted from the outcome, so that it differs from the tool's output.
    pub redacted: bool,
    /// The fencing token of the last write.
    pub fence: i64,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Milliseconds since 1970.
    pub ended_at: Option<i64>,
}

/// What to do about a step when its run is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The call was never made, or the user resolved that it had no effect: make it.
    Start,
    /// The call may have been made and can be repeated safely: make it.
    Repeat,
    /// The call is finished: reuse its outcome.
    Reuse,
    /// The call may have had an effect: the user must resolve it.
    NeedsResolution,
}

/// What to do about a step, given its record. A call with side effects that was started and has no known outcome is never
/// repeated; it waits for the user.
pub fn recovery(known: Option<&StepRecord>, intent: &StepIntent) -> Recovery {
    let Some(step) = known else { return Recovery::Start };
    match step.state {
        StepState::NotDone => Recovery::Start,
        StepState::Done | StepState::Failed => Recovery::Reuse,
        // A changed tool or changed arguments make it another call.
        StepState::Started if step.repeatable && intent.repeatable && is_same_call(step, intent) => {
            Recovery::Repeat
        }
        StepState::Started | StepState::Unknown => Recovery::NeedsResolution,
    }
}

/// Whether a step was started with the same definition and arguments.
fn is_same_call(step: &StepRecord, intent: &StepIntent) -> bool {
    step.definition == intent.definition && step.arguments == intent.arguments
}

/// The journal's response to an intent.
#[derive(Debug, Clone, PartialEq)]
pub enum StepStart {
    /// The intent is recorded: make the call.
    Call,
    /// The call was made before; reuse its outcome.
    Reuse(Box<StepRecord>),
    /// The call may have been made before; its outcome is unknown.
    Unknown(Box<StepRecord>),
}

/// The final state and the result of a step's call.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedStep {
    /// `Done`, `Failed` or `Unknown`.
    pub state: StepState,
    /// The [`StepResult`] as JSON.
    pub result: RawJson,
}

/// The result of a step, as the journal stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// The output of a successful call.
    Output(Box<ToolOutput>),
    /// The error of a failed call.
    Error {
        /// The kind of error.
        kind: ErrorKind,
        /// What failed.
        message: String,
        /// How to resolve it.
        hint: Option<String>,
    },
    /// The user's resolution of an unknown outcome.
    Resolved {
        /// The resolution.
        resolution: Resolution,
        /// Who resolved it.
        by: String,
    },
}

impl StepResult {
    /// The result of a call as the journal stores it.
    pub fn of(outcome: &Result<ToolOutput, ToolError>) -> Self {
        match outcome {
            Ok(output) => Self::Output(Box::new(output.clone())),
            Err(error) => Self::Error {
                kind: error.kind(),
                message: error.message().to_owned(),
                hint: error.hint().map(str::to_owned),
            },
        }
    }

    /// The result of the call.
    pub fn into_tool_result(self) -> Result<ToolOutput, ToolError> {
        match self {
            Self::Output(output) => Ok(*output),
            Self::Error { kind, message, hint: None } => Err(ToolError::new(kind, message)),
            Self::Error { kind, message, hint: Some(hint) } => {
                // The journal keeps all hints together; some are for the operator only.
                Err(ToolError::new(kind, message).with_operator_hint(hint))
            }
            Self::Resolved { .. } => {
                Ok(ToolOutput::text("the user confirmed that this call was made; its output is unknown"))
            }
        }
    }
}

/// The user's resolution of a step whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The call had its effect: continue as if it had succeeded.
    Done,
    /// The call had no effect: it may be made.
    NotDone,
}

/// Why the journal rejects an operation or fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process claimed the run, because this one gave no sign of life for too long; nothing was written.
    ///
    /// Remedy: follow the run there: `toolyard runs show RUN`. Give the machine more time, or raise `[serve]
    /// run_lease`.
    #[error("run {0} was taken over by another process")]
    LeaseLost(RunId),
    /// Another process executes the run, or did until a moment ago.
    ///
    /// Remedy: wait until it has ended or its lease has expired (seconds), then retry; or cancel it: `toolyard runs
    /// cancel RUN`.
    #[error("run {run} is in use by {owner}")]
    Leased {
        /// The run.
        run: RunId,
        /// The owner of the lease.
        owner: String,
    },
    /// No run of this store has the id, or retention removed it.
    ///
    /// Remedy: list the runs with `toolyard runs list`; check that the command uses the same `store` as the gateway.
    #[error("run {0} does not exist")]
    UnknownRun(RunId),
    /// The step does not exist, or its outcome is known.
    ///
    /// Remedy: list the steps that need a decision: `toolyard runs unknown`.
    #[error("step {step} of run {run} has no unknown outcome to resolve")]
    NotResolvable {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
    },
    /// Two processes wrote to the log of one run at once; nothing of the second was written.
    ///
    /// Remedy: show the run with `toolyard runs show RUN`, and resume it with `toolyard runs resume RUN` if it has not
    /// ended.
    #[error("event {number} of run {run} already exists")]
    EventExists {
        /// The run.
        run: RunId,
        /// The number.
        number: i64,
    },
    /// The store failed while the journal was read or written.
    ///
    /// Remedy: check the store with `toolyard store check`, then repeat the command.
    #[error("failed to access the journal: {0}")]
    Storage(String),
}

/// The future of a journal operation.
pub type JournalFuture<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Stores runs and their steps durably.
pub trait Journal: Send + Sync {
    /// Creates a run. If the future is dropped before the run is written, the store need not write it.
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId>;

    /// Claims a run without a lease, or with an expired one.
    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease>;

    /// Claims any open run of this kind without a valid lease.
    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>>;

    /// Extends a lease to `duration` from now.
    fn renew<'a>(&'a self, lease: &'a Lease, duration: Duration) -> JournalFuture<'a, ()>;

    /// Ends the lease and sets the state of the run; an open run can be claimed again.
    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()>;

    /// Records an intent. If the call must not be repeated, the intent is durable before this returns [`StepStart::Call`];
    /// otherwise it may be written later.
    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a StepIntent) -> JournalFuture<'a, StepStart>;

    /// Records the outcome of a call durably.
    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a FinishedStep,
    ) -> JournalFuture<'a, ()>;

    /// One run.
    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord>;

    /// The latest runs, newest first.
    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>>;

    /// Runs of a kind, newest first: those older than `after`, or the newest.
    fn runs_page<'a>(
        &'a self,
        kind: &'a str,
        after: Option<&'a RunId>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let mut runs = self.runs(usize::MAX).await?;
            if let Some(after) = after {
                let unknown = || JournalError::UnknownRun(after.clone());
                let position = runs.iter().position(|run| run.id == *after).ok_or_else(unknown)?;
                runs.drain(..=position);
            }
            runs.retain(|run| run.kind == kind);
            runs.truncate(limit);
            Ok(runs)
        })
    }

    /// Like [`Self::runs_page`], of the runs whose detail contains this owner only. The caller compares the owner itself: other
    /// text of a detail, such as a question, may contain the hash, too.
    fn runs_page_of_owner<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a ContentHash,
        after: Option<&'a RunId>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        const BATCH_SIZE: usize = 500;
        Box::pin(async move {
            let (owner, mut after, mut found) = (owner.to_string(), after.cloned(), Vec::new());
            loop {
                let batch = self.runs_page(kind, after.as_ref(), BATCH_SIZE).await?;
                let is_last = batch.len() < BATCH_SIZE;
                after = batch.last().map(|run| run.id.clone());
                found.extend(batch.into_iter().filter(|run| run.detail.get().contains(&owner)));
                if is_last || found.len() >= limit {
                    found.truncate(limit);
                    return Ok(found);
                }
            }
        })
    }

    /// All runs of a kind created since a time (milliseconds since 1970), newest first.
    fn runs_since<'a>(&'a self, kind: &'a str, since: i64) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let mut runs = self.runs(usize::MAX).await?;
            runs.retain(|run| run.kind == kind && run.created_at >= since);
            Ok(runs)
        })
    }

    /// The latest open runs of a kind that no process drives, created since a time (milliseconds since 1970), newest
    /// first.
    fn unleased_runs<'a>(
        &'a self,
        kind: &'a str,
        since: i64,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let mut runs = self.runs_since(kind, since).await?;
            runs.retain(|run| run.state == RunState::Open && !run.leased);
            runs.truncate(limit);
            Ok(runs)
        })
    }

    /// All steps of a run, in the order in which they were started.
    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>>;

    /// One step of a run, if it was started.
    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        Box::pin(async move { Ok(self.steps(run).await?.into_iter().find(|known| known.step == step)) })
    }

    /// All steps whose outcome is unknown, oldest first. Includes steps that must not be repeated and whose owner's lease
    /// expired, or was followed by that of another owner, before they finished.
    fn unknown_steps(&self) -> JournalFuture<'_, Vec<StepRecord>>;

    /// Those of [`Self::unknown_steps`] that belong to one run.
    fn unknown_steps_of<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>> {
        Box::pin(async move {
            let mut steps = self.unknown_steps().await?;
            steps.retain(|step| step.run == *run);
            Ok(steps)
        })
    }

    /// Resolves a step whose outcome is unknown.
    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()>;
}

/// The idempotency key of a step's call: the same for every attempt.
pub fn idempotency_key(run: &RunId, step: &str) -> String {
    let hash = ContentHash::of_parts([run.as_str().as_bytes(), step.as_bytes()]).to_string();
    hash.chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(state: StepState, repeatable: bool) -> StepRecord {
        let hash = ContentHash::of("");
        StepRecord {
            run: "r".into(),
            step: "s".to_owned(),
            tool: "t".to_owned(),
            source: None,
            definition: hash,
            arguments: hash,
            redacted_arguments: String::new(),
            repeatable,
            state,
            outcome: None,
            redacted: false,
            fence: 1,
            started_at: 0,
            ended_at: None,
        }
    }

    fn intent(repeatable: bool, definition: &str) -> StepIntent {
        StepIntent {
            step: "s".to_owned(),
            tool: "t".to_owned(),
            source: None,
            definition: ContentHash::of(definition),
            arguments: ContentHash::of(""),
            redacted_arguments: String::new(),
            repeatable,
        }
    }

    #[test]
    fn a_changed_tool_is_not_called_again() {
        let started = step(StepState::Started, true);
        assert_eq!(recovery(Some(&started), &intent(true, "")), Recovery::Repeat);
        assert_eq!(recovery(Some(&started), &intent(true, "changed")), Recovery::NeedsResolution);
    }

    #[test]
    fn every_state_has_its_recovery() {
        use Recovery as R;
        use StepState as S;
        assert_eq!(recovery(None, &intent(false, "")), R::Start);
        for (state, repeatable, repeatable_now, expected) in [
            (S::Started, true, true, R::Repeat),
            (S::Started, true, false, R::NeedsResolution),
            (S::Started, false, true, R::NeedsResolution),
            (S::Started, false, false, R::NeedsResolution),
            (S::Done, false, false, R::Reuse),
            (S::Failed, true, true, R::Reuse),
            (S::Unknown, true, true, R::NeedsResolution),
            (S::Unknown, false, false, R::NeedsResolution),
            (S::NotDone, false, false, R::Start),
        ] {
            assert_eq!(
                recovery(Some(&step(state, repeatable)), &intent(repeatable_now, "")),
                expected,
                "{state:?} {repeatable} {repeatable_now}"
            );
        }
    }

    #[test]
    fn an_idempotency_key_identifies_one_step_of_one_run() {
        let key = idempotency_key(&"run".into(), "1");
        assert_eq!(key, idempotency_key(&"run".into(), "1"));
        assert_ne!(key, idempotency_key(&"run".into(), "2"));
        assert_ne!(key, idempotency_key(&"run1".into(), ""));
    }
}
