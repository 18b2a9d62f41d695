//! Progress of slow operations on a terminal, and interrupt signals.

use std::time::Duration;

use super::{fit_line, live_region, run_view::stderr_columns, sanitize};
use crate::error::{CliError, ExitStatus};

/// Awaits `work`. Shows `waiting for SUBJECT` and the elapsed seconds on a terminal. Fails and drops `work` when the process
/// is interrupted.
pub(crate) fn with_progress<T>(
    subject: &str,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, CliError>> {
    with_live_progress(|| subject.to_owned(), work)
}

/// Like [`with_progress`], for a subject that says how far the work is.
pub(crate) async fn with_live_progress<T>(
    subject: impl Fn() -> String,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    let mut work = std::pin::pin!(work);
    let mut interrupt = std::pin::pin!(interrupt_signal());
    let mut seconds = 0;
    let line = ProgressLine { is_drawn: live_region::can_draw() };
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = &mut interrupt => {
                return Err(CliError::new(ExitStatus::Interrupted, format!("interrupted while waiting for {}", subject())));
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                seconds += 1;
                line.draw(&subject(), seconds);
            }
        }
    }
}

/// On Unix, completes on SIGINT, SIGTERM or SIGHUP. Signals count from this call on, even if the future is polled later.
/// Elsewhere, completes on Ctrl-C, from the first poll on.
pub(crate) fn interrupt_signal() -> impl Future<Output = ()> + Send {
    let (termination, mut hangups) = (termination_signal(), HangupSignals::listen());
    async move {
        tokio::select! {
            () = termination => {}
            () = hangups.next() => {}
        }
    }
}

/// The SIGHUPs that this process receives.
#[derive(Debug)]
pub(crate) struct HangupSignals {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl HangupSignals {
    /// Signals count from this call on.
    pub(crate) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// Completes at the next signal. Where there is no such signal, never completes.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals {
            signals.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Like [`interrupt_signal`], without SIGHUP.
pub(crate) fn termination_signal() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        async move {
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// `waiting for SUBJECT … 3 s`, erased when dropped.
struct ProgressLine {
    /// Whether there is a terminal.
    is_drawn: bool,
}

impl ProgressLine {
    fn draw(&self, subject: &str, seconds: u64) {
        if self.is_drawn {
            live_region::draw(vec![progress_text(&sanitize(subject), seconds, stderr_columns())]);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_drawn {
            live_region::clear();
        }
    }
}

/// Shorter than the terminal is wide: a line that wraps could not be erased.
fn progress_text(subject: &str, seconds: u64, columns: usize) -> String {
    let elapsed = format!(" … {seconds} s");
    let room = columns.saturating_sub(elapsed.chars().count() + 1);
    format!("{}{elapsed}", fit_line(&format!("waiting for {subject}"), room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_never_wraps() {
        let names: Vec<String> = (0..19).map(|number| format!("server-{number}")).collect();
        assert_eq!(progress_text(&names.join(", "), 61, 40), "waiting for server-0, server-1,… … 61 s");
        assert_eq!(progress_text("time", 1, 80), "waiting for time … 1 s");
    }
}
