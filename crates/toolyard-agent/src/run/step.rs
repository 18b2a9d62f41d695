//! The state of one step.

use serde::{Deserialize, Serialize};
use toolyard_core::{ApprovalId, ErrorKind};

use super::{
    data_sources::DataSources,
    event::{ApprovalDetails, PlannedTool, StepEnd, Verification},
};
use crate::{NO_TOOL, Step, planning::paths::wants_absolute_paths};

/// A step and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    /// The step with its current arguments.
    pub step: Step,
    /// Its tool as it was known when the plan was accepted.
    pub tool: PlannedTool,
    /// The planning round it belongs to.
    pub round: usize,
    /// 1 for the first arguments under this id, larger for later ones.
    pub attempt: usize,
    /// How far it is.
    pub phase: StepPhase,
    /// What its call is about, once started; see [`Effect::target`](crate::Effect::target).
    #[serde(default)]
    pub target: String,
    /// Hash of tool and arguments, once started.
    #[serde(default)]
    pub call: String,
    /// Sources of the non-public data that the model had seen which wrote its arguments.
    #[serde(default)]
    pub written_from: DataSources,
    /// Sources of the non-public data in its result or error.
    #[serde(default)]
    pub result_from: DataSources,
    /// The state of its approval.
    pub approval: ApprovalState,
    /// Whether new arguments were tried.
    pub repair: RepairState,
    /// Whether its tool may change something, by what was known when it was called.
    pub calls_changing_tool: bool,
    /// Whether a process died or stopped during its call.
    pub was_interrupted: bool,
    /// The verdict on its result.
    pub verification: Option<Verification>,
    /// Whether a model judged the result.
    pub judged: bool,
    /// Its duration.
    pub milliseconds: u64,
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPhase {
    /// Not started.
    Waiting,
    /// Started; its end is not known yet.
    Started,
    /// Ended.
    Ended(StepEnd),
}

impl StepPhase {
    /// Whether the step ended.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether the outcome is unknown and a user must resolve it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Ended(StepEnd::Unknown { .. }))
    }
}

/// The state of a step's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// No approval was requested.
    None,
    /// A request is pending.
    Requested {
        /// Id of the request.
        id: ApprovalId,
        /// Hash of the tool and the arguments it is about.
        call: String,
        /// Hash of the tool alone.
        tool: String,
        /// The parts of its text; absent in logs of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Box<ApprovalDetails>>,
    },
    /// The call was approved.
    Allowed {
        /// Hash of the approved tool and arguments.
        call: String,
    },
    /// The call was denied.
    Denied {
        /// The approver.
        by: String,
    },
}

/// Whether new arguments were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairState {
    /// Not yet.
    Untried,
    /// The step has new arguments.
    Done,
    /// No better arguments were found.
    Failed,
}

impl StepRun {
    pub(super) fn new(
        step: Step,
        tool: PlannedTool,
        round: usize,
        attempt: usize,
        written_from: DataSources,
    ) -> Self {
        Self {
            step,
            tool,
            written_from,
            result_from: DataSources::default(),
            round,
            attempt,
            phase: StepPhase::Waiting,
            target: String::new(),
            call: String::new(),
            calls_changing_tool: false,
            was_interrupted: false,
            approval: ApprovalState::None,
            repair: RepairState::Untried,
            verification: None,
            judged: false,
            milliseconds: 0,
        }
    }

    /// The step's name in the journal. Every attempt has its own, because other arguments are another call.
    pub fn journal_name(&self) -> String {
        match self.attempt {
            0 | 1 => self.step.id.clone(),
            attempt => format!("{}#{attempt}", self.step.id),
        }
    }

    /// Size of its value, see [`StepEnd::Done`]; 0 while it has none.
    pub fn size(&self) -> usize {
        match &self.phase {
            StepPhase::Ended(StepEnd::Done { size, .. }) => *size,
            _ => 0,
        }
    }

    /// Whether a model produces its result without a tool.
    pub fn is_reasoning(&self) -> bool {
        self.step.tool_type == NO_TOOL
    }

    /// Whether a model reasoned out its result although it names a tool.
    pub fn is_reasoned_out(&self) -> bool {
        matches!(self.phase, StepPhase::Ended(StepEnd::Done { reasoned: true, .. }))
    }

    /// Whether it has a result, verified or not, that is not a reported error.
    pub fn has_value(&self) -> bool {
        let failed = |found: &Verification| found.reported_error && !found.verified;
        matches!(self.phase, StepPhase::Ended(StepEnd::Done { .. }))
            && !self.verification.as_ref().is_some_and(failed)
    }

    /// Whether its result passed verification.
    pub fn is_verified(&self) -> bool {
        self.has_value() && self.verification.as_ref().is_some_and(|found| found.verified)
    }

    /// Whether dependent steps may use its result: verification, judging and repair are complete.
    pub(super) fn is_usable(&self, judge: bool) -> bool {
        self.has_value()
            && self.verification.is_some()
            && !self.needs_judgement(judge)
            && !self.needs_repair()
    }

    /// Whether it ended without a value for good: it is neither repaired, nor simulated, nor is its outcome unknown.
    pub(super) fn ended_without_value(&self) -> bool {
        match &self.phase {
            StepPhase::Ended(StepEnd::Failed { .. } | StepEnd::Done { .. }) => {
                !self.has_value() && !self.needs_repair()
            }
            StepPhase::Ended(StepEnd::Skipped { .. } | StepEnd::Denied { .. }) => true,
            StepPhase::Ended(StepEnd::Unknown { .. } | StepEnd::Simulated)
            | StepPhase::Waiting
            | StepPhase::Started => false,
        }
    }

    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.phase, StepPhase::Ended(StepEnd::Simulated))
    }

    /// Whether the step itself failed, rather than a dependency or an approval.
    pub(super) fn is_failed(&self) -> bool {
        self.ended_without_value()
            && matches!(self.phase, StepPhase::Ended(StepEnd::Failed { .. } | StepEnd::Done { .. }))
    }

    pub(super) fn needs_judgement(&self, judge: bool) -> bool {
        let verified = self.verification.as_ref().is_some_and(|found| found.verified);
        judge && verified && !self.judged && !self.is_reasoning() && self.has_value()
    }

    /// Whether new arguments may help without doing harm. A call that may have changed something is never repeated
    /// merely because its output reads like a failure.
    pub(super) fn needs_repair(&self) -> bool {
        if self.repair != RepairState::Untried || self.is_reasoning() {
            return false;
        }
        match (&self.phase, &self.verification) {
            (StepPhase::Ended(StepEnd::Failed { kind, message, .. }), _) => {
                *kind == Some(ErrorKind::InvalidArguments)
                    || (*kind == Some(ErrorKind::Failed)
                        && (self.tool.read_only || wants_absolute_paths(message, &self.step.arguments)))
            }
            (StepPhase::Ended(StepEnd::Done { .. }), Some(found)) => !found.verified && self.tool.read_only,
            _ => false,
        }
    }
}
