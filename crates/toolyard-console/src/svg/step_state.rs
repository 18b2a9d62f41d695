//! [`StepState`]: the states in which a step of a plan is shown, with their symbols.

/// State of a step. Pages, drawings and scripts use these seven and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum StepState {
    /// Not started.
    #[default]
    Waiting,
    /// A person must approve its tool call first.
    NeedsApproval,
    /// In progress.
    Running,
    /// Ended with a result.
    Done,
    /// Ended without a result.
    Failed,
    /// The tool call may or may not have taken effect.
    Unknown,
    /// Will not be executed.
    Skipped,
}

/// All states, in the order in which a legend lists them.
pub(crate) const STEP_STATES: [StepState; 7] = [
    StepState::Waiting,
    StepState::NeedsApproval,
    StepState::Running,
    StepState::Done,
    StepState::Failed,
    StepState::Unknown,
    StepState::Skipped,
];

impl StepState {
    /// The word in `data-state` attributes.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::NeedsApproval => "needs_approval",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Skipped => "skipped",
        }
    }

    /// The state that the HTTP API calls `word`. Words that are added to the API later count as waiting.
    pub(crate) fn of_api(word: &str) -> Self {
        match word {
            "running" | "started" => Self::Running,
            "done" => Self::Done,
            "failed" | "denied" => Self::Failed,
            "unknown" => Self::Unknown,
            "skipped" | "simulated" | "cancelled" => Self::Skipped,
            "needs_approval" | "waiting_for_approval" | "suspended" => Self::NeedsApproval,
            _ => Self::Waiting,
        }
    }

    /// The inside of a 16 × 16 symbol. Shapes differ, so that no state is told by its colour alone.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Waiting => r#"<circle cx="8" cy="8" r="5.5"/>"#,
            Self::NeedsApproval => r#"<path d="M8 1.5 14.5 8 8 14.5 1.5 8Z"/><path d="M8 5v3.5M8 10.6v.4"/>"#,
            Self::Running => r#"<circle cx="8" cy="8" r="6.5"/><path class="pg-solid" d="m6.5 5 5 3-5 3Z"/>"#,
            Self::Done => r#"<circle cx="8" cy="8" r="6.5"/><path d="m5 8.2 2.2 2.2L11 6"/>"#,
            Self::Failed => r#"<circle cx="8" cy="8" r="6.5"/><path d="m5.7 5.7 4.6 4.6m0-4.6-4.6 4.6"/>"#,
            Self::Unknown => {
                r#"<circle cx="8" cy="8" r="6.5"/><path d="M6.2 6.4a1.9 1.9 0 1 1 2.6 1.9q-.8.3-.8 1M8 11.3v.4"/>"#
            }
            Self::Skipped => r#"<circle cx="8" cy="8" r="6.5"/><path d="M5 8h6"/>"#,
        }
    }
}
