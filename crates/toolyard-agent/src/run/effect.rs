//! [`Effect`]: a line of the receipt of a run.

use serde::{Deserialize, Serialize};

/// What became of a planned call of a tool that may change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The step.
    pub step: String,
    /// The tool.
    pub tool: String,
    /// Its source, if the hub knew the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What the call was about: its short arguments, secrets redacted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Whether it was done.
    pub state: EffectState,
    /// Why it was not done, or is not known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EffectCause>,
    /// The error, the step that failed, or who denied the call; as `cause` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether a call was begun, be it with other arguments.
    #[serde(default)]
    pub called: bool,
}

/// Whether a change was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// The tool answered, and its answer reports no failure.
    Done,
    /// The call was not made, or the tool reported a failure.
    NotDone,
    /// The call was made, and whether it took effect is not known.
    Unknown,
}

/// Why a change was not made, or is not known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectCause {
    /// The call failed, or could not be made.
    Failed,
    /// A step that it depends on has no result.
    Skipped,
    /// A rule or an approver denied it.
    Denied,
    /// Nobody approved it.
    NotApproved,
    /// The run is a dry run.
    DryRun,
    /// The tool could not be used, and a model reasoned out a result instead.
    ReasonedOut,
    /// The run ended before the call was begun.
    NotBegun,
    /// The call was in progress when the run or its process ended, or the answer was lost.
    NoAnswer,
    /// The tool answered, and the run ended before the answer was checked.
    Unchecked,
}

impl Effect {
    /// Whether something may have been changed. A call that failed may have changed something before it did.
    pub fn may_have_changed(&self) -> bool {
        self.state != EffectState::NotDone || self.called
    }
}
