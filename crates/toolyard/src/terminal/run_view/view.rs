//! The watcher of a run: a live view on a terminal, plain lines elsewhere, or JSON.

use std::{
    io::IsTerminal as _,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::MutexGuard;
use toolyard_agent::{ApprovalDecision, ApprovalRequest, RunEvent, RunUpdate, RunWatcher, replay_updates};
use toolyard_core::{BoxFuture, Caller, LoggedEvent};

use super::{
    approval_prompt::ApprovalMode,
    elicitation::StepElicitation,
    render::{Frame, plain_lines, progress_lines},
    run_progress::{RunProgress, StepStatus},
    screen,
    view_state::{SharedViewState, ViewState},
};
use crate::terminal::{Output, line_width, live_region};

const MAX_LIVE_WIDTH: usize = 120;
const MAX_PLAIN_WIDTH: usize = 100;

#[derive(Debug)]
pub(crate) struct RunView<'a> {
    output: &'a Output,
    mode: ViewMode,
    model: String,
    approvals: ApprovalMode,
    started: Instant,
    /// Whether the answer is printed while it is generated.
    streams_answer: bool,
    state: Arc<SharedViewState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ViewMode {
    /// Redrawn in place.
    Live,
    /// A line for each completed step.
    Plain,
    /// Every update as a line of JSON.
    Json,
}

impl<'a> RunView<'a> {
    pub(crate) fn new(output: &'a Output, model: &str, approvals: ApprovalMode) -> Self {
        let mode = match () {
            () if output.is_json() => ViewMode::Json,
            () if live_region::can_draw() => ViewMode::Live,
            () => ViewMode::Plain,
        };
        Self {
            output,
            mode,
            model: model.to_owned(),
            approvals,
            started: Instant::now(),
            streams_answer: mode == ViewMode::Live && std::io::stdout().is_terminal(),
            state: Arc::default(),
        }
    }

    /// Shows the events with which a run was created.
    pub(crate) fn begin(&self, events: &[LoggedEvent]) {
        replay_updates(events).for_each(|update| self.on_update(&update));
    }

    /// Restores the progress of earlier events without printing them.
    pub(crate) fn restore(&self, events: &[LoggedEvent]) {
        let mut state = self.lock();
        replay_updates(events).for_each(|update| state.progress.apply(&update, Duration::ZERO));
    }

    /// Prints a message that is not part of the run.
    pub(crate) fn message(&self, text: &str) {
        self.output.message(text);
    }

    pub(crate) fn is_live(&self) -> bool {
        self.mode == ViewMode::Live
    }

    /// Whether a tool call is in flight.
    pub(crate) fn has_running_step(&self) -> bool {
        self.lock().progress.rows.iter().any(|row| row.status == StepStatus::Running)
    }

    /// Advances the spinner; called a few times a second.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        state.spinner += 1;
        self.draw(&mut state);
    }

    /// Draws for the last time before the command fails.
    pub(crate) fn stop(&self) {
        self.draw_final(&mut self.lock());
    }

    /// Draws for the last time. Returns the progress of the run and the part of the answer that was printed.
    pub(crate) fn finish(self) -> (RunProgress, String) {
        let mut state = self.lock();
        self.draw_final(&mut state);
        (std::mem::take(&mut state.progress), std::mem::take(&mut state.streamed))
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock()
    }

    fn frame(&self, state: &ViewState) -> Frame {
        let width = match self.mode {
            ViewMode::Live => screen::stderr_columns().saturating_sub(1).min(MAX_LIVE_WIDTH),
            ViewMode::Plain | ViewMode::Json => line_width().min(MAX_PLAIN_WIDTH),
        };
        Frame { now: self.started.elapsed(), width, spinner: state.spinner }
    }

    fn draw(&self, state: &mut ViewState) {
        if self.mode == ViewMode::Live && !state.is_paused && state.streamed.is_empty() {
            let lines = progress_lines(&state.progress, &self.model, &self.frame(state));
            screen::draw(&lines);
        }
    }

    fn draw_final(&self, state: &mut ViewState) {
        if self.mode == ViewMode::Live && !state.is_paused && state.streamed.is_empty() {
            state.progress.model_task = None;
            let lines = progress_lines(&state.progress, &self.model, &self.frame(state));
            live_region::finish(&lines);
        }
    }

    /// Prints more of the answer, below the steps.
    fn stream(&self, state: &mut ViewState, text: &str) {
        if text.is_empty() {
            return;
        }
        self.draw_final(state);
        state.streamed.push_str(text);
        self.output.chunk(text);
    }
}

/// The update without what was sent to a model, which is much longer than the rest.
fn without_request(update: &RunUpdate) -> RunUpdate {
    let mut update = update.clone();
    if let RunUpdate::Event {
        event: RunEvent::ModelReplied { sent, .. } | RunEvent::ModelFailed { sent, .. },
        ..
    } = &mut update
    {
        *sent = None;
    }
    update
}

impl RunWatcher for RunView<'_> {
    fn on_update(&self, update: &RunUpdate) {
        let mut state = self.lock();
        state.progress.apply(update, self.started.elapsed());
        match (self.mode, update) {
            (ViewMode::Json, _) => self.output.json_line(&without_request(update)),
            (ViewMode::Plain, _) => {
                let lines = plain_lines(&state.progress, update, &self.model, &self.frame(&state));
                lines.iter().for_each(|line| self.output.message(line));
            }
            (ViewMode::Live, RunUpdate::AnswerDelta { text, .. }) if self.streams_answer => {
                self.stream(&mut state, text);
            }
            (ViewMode::Live, RunUpdate::AnswerDiscarded) => {
                // The printed part stays; a new drawing starts below it.
                if !std::mem::take(&mut state.streamed).is_empty() {
                    self.output.chunk("\n");
                }
                self.draw(&mut state);
            }
            (ViewMode::Live, _) => self.draw(&mut state),
        }
    }

    fn responder(&self, step: &str) -> Option<Arc<dyn Caller>> {
        let ApprovalMode::Prompt(user) = &self.approvals else { return None };
        let (user, view_state) = (Arc::clone(user), Arc::clone(&self.state));
        Some(Arc::new(StepElicitation { step: step.to_owned(), user, view_state }))
    }

    fn approves_everything(&self) -> bool {
        matches!(self.approvals, ApprovalMode::ApproveAll)
    }

    fn decide<'b>(&'b self, request: &'b ApprovalRequest) -> BoxFuture<'b, Option<ApprovalDecision>> {
        Box::pin(async move {
            match &self.approvals {
                ApprovalMode::ApproveAll => Some(ApprovalDecision::Allow),
                ApprovalMode::Suspend => None,
                ApprovalMode::Prompt(user) => {
                    let _turn = user.turn().await;
                    let _paused = self.state.pause();
                    let is_step_shown = self.mode != ViewMode::Json;
                    let (decision, lines) = user.decide(request, is_step_shown).await;
                    self.state.add_written(lines);
                    decision
                }
            }
        })
    }
}
