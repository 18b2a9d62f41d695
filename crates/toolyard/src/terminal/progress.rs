//! Progress of slow operations on a terminal, and interrupt signals.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use super::sanitize;
use crate::error::{CliError, ExitStatus};

/// Awaits `work`. Shows `waiting for SUBJECT` and the elapsed seconds on a terminal. Fails and drops `work` when the process
/// is interrupted.
pub(crate) async fn with_progress<T>(subject: &str, work: impl Future<Output = T>) -> Result<T, CliError> {
    let mut work = std::pin::pin!(work);
    let mut interrupt = std::pin::pin!(interrupt_signal());
    let mut seconds = 0;
    let is_terminal = std::io::stderr().is_terminal();
    loop {
        tokio::select! {
            done = &mut work => {
                erase_line(is_terminal && seconds > 0);
                return Ok(done);
            }
            () = &mut interrupt => {
                erase_line(is_terminal && seconds > 0);
                return Err(CliError::new(ExitStatus::Interrupted, format!("interrupted while waiting for {subject}")));
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                seconds += 1;
                if is_terminal {
                    let _ = write!(anstream::stderr(), "\r\u{1b}[Kwaiting for {} … {seconds} s", sanitize(subject));
                    let _ = anstream::stderr().flush();
                }
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

fn erase_line(is_shown: bool) {
    if is_shown {
        let _ = write!(anstream::stderr(), "\r\u{1b}[K");
    }
}
