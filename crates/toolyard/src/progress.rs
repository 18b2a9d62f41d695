//! Shows on a terminal that something longer than a second is still under way.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use crate::{
    failure::{Code, Failure},
    output::harmless,
};

/// Waits for `work`, says after each second that it does, and stops when ctrl-c is pressed: dropping the work ends it.
pub(crate) async fn waiting<T>(what: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    let mut interrupted = std::pin::pin!(interrupted());
    let mut seconds = 0;
    let shows = std::io::stderr().is_terminal();
    loop {
        tokio::select! {
            done = &mut work => {
                clear(shows && seconds > 0);
                return Ok(done);
            }
            () = &mut interrupted => {
                clear(shows && seconds > 0);
                return Err(Failure::new(Code::Interrupted, format!("{what} was stopped")));
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                seconds += 1;
                if shows {
                    let _ = write!(anstream::stderr(), "\rwaiting for {what} … {seconds} s");
                    let _ = anstream::stderr().flush();
                }
            }
        }
    }
}

/// Shows on a terminal what is being done now, in place of what was shown before.
pub(crate) fn stage(what: &str) {
    if std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "\r\u{1b}[K{} …", harmless(what));
        let _ = anstream::stderr().flush();
    }
}

/// Takes away the last stage shown.
pub(crate) fn end_of_stages() {
    clear(std::io::stderr().is_terminal());
}

/// Ctrl-c, or a polite request to end: the work is dropped, and with it whatever it started. Whatever is said after this was
/// called is heard, however late it is waited for.
pub(crate) fn interrupted() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
        async move {
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = signals else {
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn clear(shown: bool) {
    if shown {
        let _ = write!(anstream::stderr(), "\r\u{1b}[K");
    }
}
