//! One step of a run: what it is, how far it is, and what may still be done about it.

use serde::{Deserialize, Serialize};
use toolyard_core::ErrorKind;

use crate::{NO_TOOL, Step, StepEnd, StepFacts, Verification};

/// A step, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    /// The step with its arguments as they are now.
    pub step: Step,
    /// What is known of its tool.
    pub facts: StepFacts,
    /// Which plan it belongs to.
    pub round: usize,
    /// 1 for the first arguments under this name; every other arguments have a larger one.
    pub attempt: usize,
    /// How far it is.
    pub phase: Phase,
    /// A hash of tool and arguments, once it was begun.
    #[serde(default)]
    pub call: String,
    /// What a person said to it.
    pub approval: Approval,
    /// Whether other arguments were tried.
    pub repair: Repair,
    /// What was found when its result was looked at.
    pub verification: Option<Verification>,
    /// Whether a model looked at it too.
    pub judged: bool,
    /// How long it took.
    pub milliseconds: u64,
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It was not begun.
    Waiting,
    /// It was begun, and its end is not known.
    Started,
    /// It is over.
    Ended(StepEnd),
}

impl Phase {
    /// Whether it is over, as far as the run knows.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether only a person knows how it ended.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Ended(StepEnd::Unknown { .. }))
    }
}

/// What a person said to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Nobody was asked.
    None,
    /// A question waits.
    Asked {
        /// Its number.
        question: i64,
        /// What it is about: a hash of tool and arguments.
        call: String,
        /// A hash of the tool alone.
        tool: String,
    },
    /// Yes, to this call.
    Allowed {
        /// A hash of tool and arguments.
        call: String,
    },
    /// No.
    Refused {
        /// Who said so.
        by: String,
    },
}

/// Whether other arguments were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Not yet.
    Untried,
    /// They were written anew.
    Done,
    /// No better ones were found.
    Refused,
}

impl StepRun {
    pub(super) fn new(step: Step, facts: StepFacts, round: usize, attempt: usize) -> Self {
        Self {
            step,
            facts,
            round,
            attempt,
            phase: Phase::Waiting,
            call: String::new(),
            approval: Approval::None,
            repair: Repair::Untried,
            verification: None,
            judged: false,
            milliseconds: 0,
        }
    }

    /// The name under which the journal knows it: other arguments are another call.
    pub fn journal_name(&self) -> String {
        match self.attempt {
            0 | 1 => self.step.id.clone(),
            attempt => format!("{}#{attempt}", self.step.id),
        }
    }

    /// How large its value is, in characters; 0 while it has none.
    pub fn size(&self) -> usize {
        match &self.phase {
            Phase::Ended(StepEnd::Done { size, .. }) => *size,
            _ => 0,
        }
    }

    /// Whether it needs no tool.
    pub fn is_reasoning(&self) -> bool {
        self.step.tool_type == NO_TOOL
    }

    /// Whether it brought a result that others may use, verified or not.
    pub fn has_value(&self) -> bool {
        let failed = |found: &Verification| found.said_error && !found.verified;
        matches!(self.phase, Phase::Ended(StepEnd::Done { .. }))
            && !self.verification.as_ref().is_some_and(failed)
    }

    /// Whether its result was looked at and may be relied on.
    pub fn is_verified(&self) -> bool {
        self.has_value() && self.verification.as_ref().is_some_and(|found| found.verified)
    }

    /// Whether its result may be used now: it was looked at, and nothing more is done about it.
    pub(super) fn is_usable(&self, judge: bool) -> bool {
        self.has_value() && self.verification.is_some() && !self.wants_judge(judge) && !self.wants_repair()
    }

    /// Whether it is over and brought nothing that others could use.
    pub(super) fn is_lost(&self) -> bool {
        match &self.phase {
            Phase::Ended(StepEnd::Failed { .. } | StepEnd::Done { .. }) => {
                !self.has_value() && !self.wants_repair()
            }
            Phase::Ended(StepEnd::Skipped { .. } | StepEnd::Denied { .. }) => true,
            Phase::Ended(StepEnd::Unknown { .. } | StepEnd::Rehearsed) | Phase::Waiting | Phase::Started => {
                false
            }
        }
    }

    pub(super) fn is_rehearsed(&self) -> bool {
        matches!(self.phase, Phase::Ended(StepEnd::Rehearsed))
    }

    /// Whether it failed by itself.
    pub(super) fn is_failed(&self) -> bool {
        self.is_lost() && matches!(self.phase, Phase::Ended(StepEnd::Failed { .. } | StepEnd::Done { .. }))
    }

    pub(super) fn wants_judge(&self, judge: bool) -> bool {
        let verified = self.verification.as_ref().is_some_and(|found| found.verified);
        judge && verified && !self.judged && !self.is_reasoning() && self.has_value()
    }

    /// Whether other arguments may help and do no harm. A call that may have changed something is never made again
    /// because of how its answer reads.
    pub(super) fn wants_repair(&self) -> bool {
        if self.repair != Repair::Untried || self.is_reasoning() {
            return false;
        }
        match (&self.phase, &self.verification) {
            (Phase::Ended(StepEnd::Failed { kind, .. }), _) => {
                *kind == Some(ErrorKind::InvalidArguments)
                    || (*kind == Some(ErrorKind::Failed) && self.facts.read_only)
            }
            (Phase::Ended(StepEnd::Done { .. }), Some(found)) => !found.verified && self.facts.read_only,
            _ => false,
        }
    }
}
