//! Yes-or-no prompts.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::error::CliError;

/// Asks the user a yes-or-no question. Without a terminal this fails with `not_done` and a hint to use `--yes`.
pub(crate) fn confirm(question: &str, not_done: &str) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        let message = format!("{not_done}: confirmation needs a terminal");
        return Err(CliError::denied(message).with_hint("review the above, then pass --yes"));
    }
    let _ = write!(anstream::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
