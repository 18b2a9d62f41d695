//! What was intended and what came of it, so that after a crash nothing with side effects is done twice.
//!
//! Before a step's call an intent is written, after it the outcome. Whoever goes on after a crash finds one of four
//! states, and [`recovery`] says what may be done. A lease with a fencing number keeps an owner that slept through its
//! lease from writing.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ContentHash, ErrorKind, RawJson, SourceId, ToolError, ToolOutput};

/// The name of a run: a sequence of steps that is resumed as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

impl RunId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for RunId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum RunState {
    Open,
    Done,
    Failed,
    Cancelled,
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// What it is: a single call, a plan.
    pub kind: String,
    /// How it is doing.
    pub state: RunState,
    /// Whatever its driver needs to go on.
    pub detail: RawJson,
    /// Who holds it, if anyone.
    pub owner: Option<String>,
    /// Whether whoever holds it said so lately: nobody else can take it.
    pub held: bool,
    /// Counts its owners.
    pub fence: i64,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// The right to write to a run, until somebody else has taken it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which run.
    pub run: RunId,
    /// Whose it is.
    pub owner: String,
    /// Every taking of the lease has a larger number; writes with a smaller one are refused.
    pub fence: i64,
}

/// What is about to be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The step's name within its run.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// The source that is asked first.
    pub source: Option<SourceId>,
    /// The hash of the tool's definition, so that a changed tool is noticed.
    pub definition: ContentHash,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The arguments as they may be shown to a person: secrets removed.
    pub shown_arguments: String,
    /// Whether the call may be made again without harm.
    pub repeatable: bool,
}

/// How a step is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// The call may have been made.
    Started,
    /// It was made and succeeded.
    Done,
    /// It was made and failed.
    Failed,
    /// Nobody knows whether it took effect; a person must say.
    Unknown,
    /// A person said that it did not take effect: it may be made.
    NotDone,
}

/// A step as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRecord {
    /// Its run.
    pub run: RunId,
    /// Its name within the run.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// The source that was asked first.
    pub source: Option<SourceId>,
    /// The hash of the tool's definition at that time.
    pub definition: ContentHash,
    /// The hash of the arguments.
    pub arguments: ContentHash,
    /// The arguments with secrets removed.
    pub shown_arguments: String,
    /// Whether it may be repeated.
    pub repeatable: bool,
    /// How it is doing.
    pub state: StepState,
    /// What came of it, once that is known.
    pub outcome: Option<RawJson>,
    /// Whether secrets were removed from the outcome, so that it is not what the tool said.
    pub redacted: bool,
    /// The fencing number it was last written with.
    pub fence: i64,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Milliseconds since 1970.
    pub ended_at: Option<i64>,
}

/// What may be done about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// It was never started, or a person said that it had no effect: make the call.
    Start,
    /// It was started and may be made again without harm: make the call.
    Repeat,
    /// It is finished: use what came of it.
    Reuse,
    /// It may have taken effect: only a person can say.
    Ask,
}

/// What may be done about a step of which this is known. A call with side effects is never made on a guess: what was
/// started, must not be repeated and is not known to be over, waits for a person.
pub fn recovery(known: Option<&StepRecord>, intent: &Intent) -> Recovery {
    let Some(step) = known else { return Recovery::Start };
    match step.state {
        StepState::NotDone => Recovery::Start,
        StepState::Done | StepState::Failed => Recovery::Reuse,
        // All must agree: a tool or arguments that are not the same now make it another call.
        StepState::Started if step.repeatable && intent.repeatable && is_same(step, intent) => {
            Recovery::Repeat
        }
        StepState::Started | StepState::Unknown => Recovery::Ask,
    }
}

/// Whether a step was begun with the definition and arguments it has now.
fn is_same(step: &StepRecord, intent: &Intent) -> bool {
    step.definition == intent.definition && step.arguments == intent.arguments
}

/// What the journal answers to an intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// The intent is written: make the call.
    Call,
    /// It was done before; this is what came of it.
    Reuse(Box<StepRecord>),
    /// It may have been done before; this is what is known.
    Unknown(Box<StepRecord>),
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutcome {
    /// `Done`, `Failed` or `Unknown`.
    pub state: StepState,
    /// The answer or the error.
    pub outcome: RawJson,
}

/// What a call answered, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAnswer {
    /// The answer of a call that succeeded.
    Output(Box<ToolOutput>),
    /// Why it failed.
    Error {
        /// The class of failure.
        kind: ErrorKind,
        /// What failed.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A person's word on what happened.
    Resolved {
        /// What the person said.
        resolution: Resolution,
        /// Who it was.
        by: String,
    },
}

impl StepAnswer {
    /// The form in which an outcome is kept.
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

    /// The outcome that was kept.
    pub fn into_outcome(self) -> Result<ToolOutput, ToolError> {
        match self {
            Self::Output(output) => Ok(*output),
            Self::Error { kind, message, hint: None } => Err(ToolError::new(kind, message)),
            Self::Error { kind, message, hint: Some(hint) } => {
                Err(ToolError::new(kind, message).with_hint(hint))
            }
            Self::Resolved { .. } => {
                Ok(ToolOutput::text("a person said that this was done; its answer is not known"))
            }
        }
    }
}

/// A person's word on a step whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It took effect: go on as if it had answered.
    Done,
    /// It did not: it may be called.
    NotDone,
}

/// Why the journal refuses or fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Somebody else owns the run now; nothing was written.
    #[error("run {0} was taken over by another process")]
    LeaseLost(RunId),
    /// Somebody else owns the run, and the lease is not over.
    #[error("run {run} is held by {owner}")]
    Held {
        /// The run.
        run: RunId,
        /// Who holds it.
        owner: String,
    },
    /// There is no such run.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// There is no such step, or it is not in a state in which this can be done.
    #[error("step {step} of run {run} is not waiting for this")]
    NotWaiting {
        /// The run.
        run: RunId,
        /// The step.
        step: String,
    },
    /// Somebody wrote a transition of this number before; nothing was written.
    #[error("transition {number} of run {run} is written already")]
    NumberTaken {
        /// The run.
        run: RunId,
        /// The number.
        number: i64,
    },
    /// The place where the journal is kept failed.
    #[error("failed to write or read the journal: {0}")]
    Failed(String),
}

/// A future of the journal.
pub type JournalFuture<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Keeps runs and their steps beyond the life of a process.
pub trait Journal: Send + Sync {
    /// Writes down a new run.
    fn create_run<'a>(&'a self, kind: &'a str, detail: &'a RawJson) -> JournalFuture<'a, RunId>;

    /// Takes a run that nobody holds, or whose holder's lease is over.
    fn claim<'a>(&'a self, run: &'a RunId, owner: &'a str, lease: Duration) -> JournalFuture<'a, Lease>;

    /// Takes any open run of this kind that nobody holds.
    fn claim_next<'a>(
        &'a self,
        kind: &'a str,
        owner: &'a str,
        lease: Duration,
    ) -> JournalFuture<'a, Option<Lease>>;

    /// Prolongs a lease: the heartbeat.
    fn renew<'a>(&'a self, lease: &'a Lease, time: Duration) -> JournalFuture<'a, ()>;

    /// Ends a run, or gives it back as it is.
    fn release<'a>(&'a self, lease: &'a Lease, state: RunState) -> JournalFuture<'a, ()>;

    /// Writes an intent, durably before this returns [`Begun::Call`] for a call that must not be repeated.
    fn begin<'a>(&'a self, lease: &'a Lease, intent: &'a Intent) -> JournalFuture<'a, Begun>;

    /// Writes what came of a call, durably.
    fn finish<'a>(
        &'a self,
        lease: &'a Lease,
        step: &'a str,
        outcome: &'a StepOutcome,
    ) -> JournalFuture<'a, ()>;

    /// One run.
    fn run<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, RunRecord>;

    /// The latest runs, newest first.
    fn runs<'a>(&'a self, limit: usize) -> JournalFuture<'a, Vec<RunRecord>>;

    /// All runs of a kind that were begun since then (milliseconds since 1970), newest first.
    fn runs_since<'a>(&'a self, kind: &'a str, since: i64) -> JournalFuture<'a, Vec<RunRecord>> {
        Box::pin(async move {
            let mut runs = self.runs(usize::MAX).await?;
            runs.retain(|run| run.kind == kind && run.created_at >= since);
            Ok(runs)
        })
    }

    /// All steps of a run, in the order they were started.
    fn steps<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<StepRecord>>;

    /// One step of a run, if it was ever started.
    fn step<'a>(&'a self, run: &'a RunId, step: &'a str) -> JournalFuture<'a, Option<StepRecord>> {
        Box::pin(async move { Ok(self.steps(run).await?.into_iter().find(|known| known.step == step)) })
    }

    /// All steps whose outcome is unknown, oldest first. Steps that were started by an owner whose lease is over and
    /// must not be repeated count among them.
    fn unknown(&self) -> JournalFuture<'_, Vec<StepRecord>>;

    /// A person's word on a step whose outcome is unknown.
    fn resolve<'a>(
        &'a self,
        run: &'a RunId,
        step: &'a str,
        resolution: Resolution,
        by: &'a str,
    ) -> JournalFuture<'a, ()>;
}

/// A name for a step's call that stays the same however often the call is tried: tools that take an idempotency key
/// get it.
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
            shown_arguments: String::new(),
            repeatable,
            state,
            outcome: None,
            redacted: false,
            fence: 1,
            started_at: 0,
            ended_at: None,
        }
    }

    fn intent(repeatable: bool, definition: &str) -> Intent {
        Intent {
            step: "s".to_owned(),
            tool: "t".to_owned(),
            source: None,
            definition: ContentHash::of(definition),
            arguments: ContentHash::of(""),
            shown_arguments: String::new(),
            repeatable,
        }
    }

    #[test]
    fn a_changed_tool_is_not_called_again() {
        let started = step(StepState::Started, true);
        assert_eq!(recovery(Some(&started), &intent(true, "")), Recovery::Repeat);
        assert_eq!(recovery(Some(&started), &intent(true, "changed")), Recovery::Ask);
    }

    #[test]
    fn what_may_be_done_in_every_state() {
        use Recovery as R;
        use StepState as S;
        assert_eq!(recovery(None, &intent(false, "")), R::Start);
        for (state, repeatable, now, expected) in [
            (S::Started, true, true, R::Repeat),
            (S::Started, true, false, R::Ask),
            (S::Started, false, true, R::Ask),
            (S::Started, false, false, R::Ask),
            (S::Done, false, false, R::Reuse),
            (S::Failed, true, true, R::Reuse),
            (S::Unknown, true, true, R::Ask),
            (S::Unknown, false, false, R::Ask),
            (S::NotDone, false, false, R::Start),
        ] {
            assert_eq!(
                recovery(Some(&step(state, repeatable)), &intent(now, "")),
                expected,
                "{state:?} {repeatable} {now}"
            );
        }
    }

    #[test]
    fn a_key_belongs_to_one_step_of_one_run() {
        let key = idempotency_key(&"run".into(), "1");
        assert_eq!(key, idempotency_key(&"run".into(), "1"));
        assert_ne!(key, idempotency_key(&"run".into(), "2"));
        assert_ne!(key, idempotency_key(&"run1".into(), ""));
    }
}
