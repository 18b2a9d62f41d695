//! What the view of a run and its prompts share: the progress of the run and whether it is drawn.

use parking_lot::{Mutex, MutexGuard};

use super::run_progress::RunProgress;
use crate::terminal::live_region;

#[derive(Debug, Default)]
pub(super) struct ViewState {
    pub(super) progress: RunProgress,
    /// Position of the spinner.
    pub(super) spinner: usize,
    /// The part of the answer that was printed.
    pub(super) streamed: String,
    /// Whether a prompt uses the terminal, so that nothing is drawn.
    pub(super) is_paused: bool,
}

#[derive(Debug, Default)]
pub(super) struct SharedViewState(Mutex<ViewState>);

/// Suspends drawing until dropped.
#[derive(Debug)]
pub(super) struct PauseGuard<'a>(&'a SharedViewState);

impl SharedViewState {
    /// Suspends drawing while a prompt uses the terminal.
    pub(super) fn pause(&self) -> PauseGuard<'_> {
        self.lock().is_paused = true;
        live_region::set_paused(true);
        PauseGuard(self)
    }

    /// Adds lines that a prompt wrote to those the next draw replaces.
    pub(super) fn add_written(&self, lines: usize) {
        live_region::add_written(lines);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.0.lock()
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_paused = false;
        live_region::set_paused(false);
    }
}
