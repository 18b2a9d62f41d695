//! [`RunState`]: the states of a run, with their words and classes.

use crate::text::RunsText;

/// State of a run, as the API names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Running,
    Suspended,
    Answered,
    Partial,
    Planned,
    Failed,
    Cancelled,
    LimitReached,
    /// A state that is added to the API later.
    Other,
}

impl RunState {
    /// The states that a list can be filtered by.
    pub(crate) const ALL: [Self; 8] = [
        Self::Running,
        Self::Suspended,
        Self::Answered,
        Self::Partial,
        Self::Planned,
        Self::Failed,
        Self::Cancelled,
        Self::LimitReached,
    ];

    pub(crate) fn of_api(name: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.name() == name).unwrap_or(Self::Other)
    }

    /// The word of the API; empty for states that are not known.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Answered => "answered",
            Self::Partial => "partial",
            Self::Planned => "planned",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::LimitReached => "limit_reached",
            Self::Other => "",
        }
    }

    /// The end of the class that colours it: `state-…`.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "approval",
            Self::Answered => "done",
            Self::Partial => "degraded",
            Self::Planned => "waiting",
            Self::Failed | Self::LimitReached => "failed",
            Self::Cancelled => "skipped",
            Self::Other => "unknown",
        }
    }

    pub(crate) fn label(self, text: &RunsText) -> &'static str {
        text.named("state_", self.name()).unwrap_or(text.state_other)
    }

    /// Whether events may follow.
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Suspended)
    }
}
