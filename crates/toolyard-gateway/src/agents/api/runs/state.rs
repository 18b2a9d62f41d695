//! The state of a run, rebuilt from its log.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolyard_agent::{Effect, Review, RunEnd, RunEvent, RunRequest, RunUpdate, replay_updates};
use toolyard_core::{LoggedEvent, RunId, RunLog, RunState};
use toolyard_model::Usage;
use utoipa::ToSchema;

use super::events::{ApiPlannedStep, client_hint, planned_steps};
use crate::{
    agents::{
        api::error::{ApiError, before},
        call_effects::CallEffects,
    },
    api::error_code::ErrorCode,
};

/// How long the store may take to answer before the client gets a retryable error.
pub(in crate::agents::api) const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// All events of a run; an error if it has none.
pub(in crate::agents::api) async fn logged_events(
    log: &dyn RunLog,
    run: &RunId,
) -> Result<Vec<LoggedEvent>, ApiError> {
    let events = before(Instant::now() + READ_TIMEOUT, log.events(run, 0)).await?;
    if events.is_empty() {
        return Err(ApiError::not_found(ErrorCode::RunNotFound, format!("agent run {run} does not exist")));
    }
    Ok(events)
}

pub(in crate::agents::api) async fn logged_updates(
    log: &dyn RunLog,
    run: &RunId,
) -> Result<Vec<RunUpdate>, ApiError> {
    Ok(replay_updates(&logged_events(log, run).await?).collect())
}

/// How a run ended or why it is suspended, and what it added up to; `None` while it is active.
pub(in crate::agents::api) async fn outcome(
    log: &dyn RunLog,
    run: &RunId,
) -> Result<Option<(RunEnd, RunTally)>, ApiError> {
    let RunSummary { end, tally, .. } = RunSummary::new(logged_updates(log, run).await?);
    Ok(end.map(|end| (end, tally)))
}

/// The state of a run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiRunState {
    /// It is being worked on, or waits for a process that does.
    Running,
    /// It waits for an approval, or until an unknown outcome is resolved.
    Suspended,
    Answered,
    Partial,
    Planned,
    Failed,
    Cancelled,
    LimitReached,
}

impl ApiRunState {
    /// The state of a run, from its latest end in the log; from its record if the log has none.
    pub(in crate::agents::api) fn new(record: RunState, end: Option<&RunEnd>) -> Self {
        match (end, record) {
            (Some(RunEnd::Answered { .. }), _) | (None, RunState::Done) => Self::Answered,
            (Some(RunEnd::Partial { .. }), _) => Self::Partial,
            (Some(RunEnd::Planned), _) => Self::Planned,
            (Some(RunEnd::Failed { .. }), _) | (None, RunState::Failed) => Self::Failed,
            (Some(RunEnd::Suspended { .. }), _) => Self::Suspended,
            (Some(RunEnd::Cancelled), _) | (None, RunState::Cancelled) => Self::Cancelled,
            (Some(RunEnd::LimitReached { .. }), _) => Self::LimitReached,
            (None, RunState::Open) => Self::Running,
            (Some(_), _) => Self::new(record, None),
        }
    }

    /// The state of a run whose log ends with this event.
    pub(in crate::agents::api) fn of_last_event(record: RunState, last: &LoggedEvent) -> Self {
        match last.event.read::<RunEvent>() {
            Ok(RunEvent::Ended { end, .. }) => Self::new(record, Some(&end)),
            _ => Self::new(record, None),
        }
    }

    /// Whether a run with this record may be in this state.
    pub(in crate::agents::api) fn may_be(self, record: RunState) -> bool {
        match record {
            RunState::Open => matches!(self, Self::Running | Self::Suspended),
            RunState::Done => matches!(self, Self::Answered | Self::Planned),
            RunState::Failed => matches!(self, Self::Partial | Self::Failed | Self::LimitReached),
            RunState::Cancelled => self == Self::Cancelled,
        }
    }
}

/// What the log says about a run.
#[derive(Debug, Default)]
pub(in crate::agents::api) struct RunSummary {
    pub(in crate::agents::api) request: Option<RunRequest>,
    /// The steps of the latest plan.
    pub(in crate::agents::api) plan: Option<Vec<ApiPlannedStep>>,
    pub(in crate::agents::api) tally: RunTally,
    /// How the run ended or why it is suspended; `None` while it is active.
    pub(in crate::agents::api) end: Option<RunEnd>,
    /// How the run ends once its answer is reviewed.
    pub(in crate::agents::api) answered: Option<RunEnd>,
    /// The number of the newest event.
    pub(in crate::agents::api) last_event: Option<i64>,
}

impl RunSummary {
    pub(in crate::agents::api) fn new(updates: Vec<RunUpdate>) -> Self {
        let mut summary = Self::default();
        for update in updates {
            summary.tally.add(&update);
            let RunUpdate::Event { number, event, .. } = update else { continue };
            summary.last_event = Some(number);
            match event {
                RunEvent::Requested { request } => summary.request = Some(request),
                RunEvent::Planned { plan, tools } => {
                    summary.plan = Some(planned_steps(plan, |step| tools.get(step)));
                }
                RunEvent::Answered { end } => summary.answered = Some(end),
                RunEvent::Ended { end, .. } => summary.end = Some(end),
                RunEvent::Resumed { .. } => summary.end = None,
                _ => {}
            }
        }
        summary
    }

    /// The answer, also while it is reviewed.
    pub(in crate::agents::api) fn answer(&self) -> Option<&str> {
        self.end.as_ref().or(self.answered.as_ref()).and_then(RunEnd::answer)
    }

    /// The tools and sources that the answer is based on.
    pub(in crate::agents::api) fn sources(&self) -> &[String] {
        match self.end.as_ref().or(self.answered.as_ref()) {
            Some(RunEnd::Answered { sources, .. } | RunEnd::Partial { sources, .. }) => sources,
            _ => &[],
        }
    }

    /// Why there is no answer, and what to do about it.
    pub(in crate::agents::api) fn failure(&self) -> (Option<&str>, Option<String>) {
        match &self.end {
            Some(RunEnd::Failed { message, hint, .. }) => (Some(message), client_hint(hint.clone())),
            Some(RunEnd::LimitReached { message, .. }) => (Some(message), None),
            _ => (None, None),
        }
    }
}

/// What is added up over the events of a run.
#[derive(Debug, Clone, Default)]
pub(in crate::agents::api) struct RunTally {
    pub(in crate::agents::api) usage: Usage,
    pub(in crate::agents::api) calls: CallEffects,
    /// The receipt of a run that is over or suspended.
    pub(in crate::agents::api) effects: Vec<Effect>,
    /// What a model said of its answer.
    pub(in crate::agents::api) review: Option<Review>,
}

impl RunTally {
    pub(in crate::agents::api) fn add(&mut self, update: &RunUpdate) {
        let RunUpdate::Event { event, .. } = update else { return };
        self.calls.add(event);
        match event {
            RunEvent::ModelReplied { reply, .. } => self.usage = self.usage.saturating_add(reply.usage),
            RunEvent::ModelFailed { usage, .. } => self.usage = self.usage.saturating_add(*usage),
            RunEvent::Ended { effects, review, .. } => {
                (self.effects, self.review) = (effects.clone().unwrap_or_default(), review.clone());
            }
            _ => {}
        }
    }
}
