//! The watcher of a run: a live view on a terminal, plain lines elsewhere, or JSON.

use std::{
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use toolyard_agent::{ApprovalDecision, ApprovalRequest, RunUpdate, RunWatcher, replay_updates};
use toolyard_core::{BoxFuture, Caller, LoggedEvent};

use super::{
    approval_prompt::ApprovalMode,
    elicitation::StepElicitation,
    render::{Frame, plain_lines, progress_lines},
    run_progress::RunProgress,
    screen::{self, Screen},
};
use crate::terminal::{Output, line_width};

/// Watches one run.
#[derive(Debug)]
pub(crate) struct RunView<'a> {
    output: &'a Output,
    mode: ViewMode,
    model: String,
    approvals: ApprovalMode,
    started: Instant,
    /// Whether the answer is printed while it is generated.
    streams_answer: bool,
    screen: Arc<SharedScreen>,
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

/// The screen, shared by the view and its prompts.
#[derive(Debug, Default)]
pub(super) struct SharedScreen(Mutex<ViewState>);

/// Suspends drawing until dropped.
#[derive(Debug)]
pub(super) struct PauseGuard<'a>(&'a SharedScreen);

impl SharedScreen {
    /// Suspends drawing while a prompt uses the terminal.
    pub(super) fn pause(&self) -> PauseGuard<'_> {
        self.lock().paused = true;
        PauseGuard(self)
    }

    /// Counts lines that a prompt has written.
    pub(super) fn add_written(&self, lines: usize) {
        self.lock().screen.add_written(lines);
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().paused = false;
    }
}

#[derive(Debug, Default)]
struct ViewState {
    progress: RunProgress,
    screen: Screen,
    spinner: usize,
    /// The part of the answer that was printed.
    streamed: String,
    paused: bool,
}

impl<'a> RunView<'a> {
    pub(crate) fn new(output: &'a Output, model: &str, approvals: ApprovalMode) -> Self {
        let mode = match () {
            () if output.is_json() => ViewMode::Json,
            () if screen::can_draw() => ViewMode::Live,
            () => ViewMode::Plain,
        };
        Self {
            output,
            mode,
            model: model.to_owned(),
            approvals,
            started: Instant::now(),
            streams_answer: mode == ViewMode::Live && std::io::stdout().is_terminal(),
            screen: Arc::default(),
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
        let mut state = self.lock();
        if self.mode == ViewMode::Live && state.streamed.is_empty() {
            state.screen.message(text);
            self.draw(&mut state);
        } else {
            self.output.message(text);
        }
    }

    /// Whether the view is redrawn in place.
    pub(crate) fn is_live(&self) -> bool {
        self.mode == ViewMode::Live
    }

    /// Advances the spinner; called a few times a second.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        state.spinner += 1;
        self.draw(&mut state);
    }

    /// Draws for the last time. Returns the progress of the run and the part of the answer that was printed.
    pub(crate) fn finish(self) -> (RunProgress, String) {
        let mut state = self.lock();
        self.draw_final(&mut state);
        (std::mem::take(&mut state.progress), std::mem::take(&mut state.streamed))
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.screen.lock()
    }

    fn frame(&self, state: &ViewState) -> Frame {
        let width = match self.mode {
            ViewMode::Live => screen::size().0.saturating_sub(1).min(120),
            ViewMode::Plain | ViewMode::Json => line_width().min(100),
        };
        Frame { now: self.started.elapsed(), width, spinner: state.spinner }
    }

    fn draw(&self, state: &mut ViewState) {
        if self.mode == ViewMode::Live && !state.paused && state.streamed.is_empty() {
            let lines = progress_lines(&state.progress, &self.model, &self.frame(state));
            state.screen.draw(&lines);
        }
    }

    fn draw_final(&self, state: &mut ViewState) {
        if self.mode == ViewMode::Live && !state.paused && state.streamed.is_empty() {
            state.progress.model_task = None;
            let lines = progress_lines(&state.progress, &self.model, &self.frame(state));
            state.screen.finish(&lines);
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

impl RunWatcher for RunView<'_> {
    fn on_update(&self, update: &RunUpdate) {
        let mut state = self.lock();
        state.progress.apply(update, self.started.elapsed());
        match (self.mode, update) {
            (ViewMode::Json, _) => self.output.json_line(update),
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

    fn caller(&self, step: &str) -> Option<Arc<dyn Caller>> {
        let ApprovalMode::Prompt(user) = &self.approvals else { return None };
        let (user, screen) = (Arc::clone(user), Arc::clone(&self.screen));
        Some(Arc::new(StepElicitation { step: step.to_owned(), user, screen }))
    }

    fn decide<'b>(&'b self, question: &'b ApprovalRequest) -> BoxFuture<'b, Option<ApprovalDecision>> {
        Box::pin(async move {
            match &self.approvals {
                ApprovalMode::ApproveAll => Some(ApprovalDecision::Allow),
                ApprovalMode::Suspend => None,
                ApprovalMode::Prompt(user) => {
                    let _turn = user.turn().await;
                    let _paused = self.screen.pause();
                    let (decision, lines) = user.decide(question, self.mode != ViewMode::Json).await;
                    self.screen.add_written(lines);
                    decision
                }
            }
        })
    }
}
