//! Opens pages in the browser of the desktop.

use std::{process::Stdio, time::Duration};

use tokio::process::Command;

/// Programs that find no browser fail within this time; the others may run as long as the browser does.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the desktop to open a page. Returns whether no failure was noticed; a page may still not appear.
pub(crate) async fn open_browser(url: &str) -> bool {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    start(Command::new(program).args(arguments).arg(url)).await
}

/// Starts a program without a shell: a URL may come from a server.
async fn start(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    match tokio::time::timeout(FAILURE_TIMEOUT, child.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => {
            tokio::spawn(async move { child.wait().await });
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_fails_early_opened_nothing() {
        assert!(start(&mut Command::new("true")).await);
        assert!(start(Command::new("sleep").arg("5")).await, "the browser itself may be the process");
        assert!(!start(&mut Command::new("false")).await);
        assert!(!start(&mut Command::new("no-such-program")).await);
    }
}
