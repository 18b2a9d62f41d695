//! Where the lines of a chat come from: an editor on a terminal, standard input elsewhere.

use std::io::IsTerminal as _;

use rustyline::{Config, DefaultEditor, error::ReadlineError};

use crate::{
    failure::{Code, Failure},
    progress::interrupted,
};

/// What stands before the line that is written.
const PROMPT: &str = "> ";

/// Where lines come from.
pub(super) enum Input {
    /// A terminal; the editor is away while a line is being read.
    Terminal { editor: Option<Box<DefaultEditor>>, mode: Mode },
    /// Anything else: one message per line.
    Plain,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-c at an empty line: nothing is under way.
    Interrupted,
    End,
}

impl Input {
    /// Whatever standard input is. What was said before can be recalled at a terminal.
    pub(super) fn new(said_before: impl Iterator<Item = String>) -> Result<Self, Failure> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Self::Plain);
        }
        let config = Config::builder().auto_add_history(true).build();
        let mut editor = DefaultEditor::with_config(config).map_err(|error| failed(&error))?;
        for line in said_before {
            // What cannot be recalled is not missed.
            let _ = editor.add_history_entry(line);
        }
        Ok(Self::Terminal { editor: Some(Box::new(editor)), mode: Mode::now() })
    }

    /// Whether a person writes the lines.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> Result<Line, Failure> {
        match self {
            Self::Plain => plain().await,
            Self::Terminal { editor, mode } => {
                let Some(mut taken) = editor.take() else { return Ok(Line::End) };
                let reading = tokio::task::spawn_blocking(move || {
                    let line = taken.readline(PROMPT);
                    (taken, line)
                });
                let read = tokio::select! {
                    read = reading => read,
                    // Ctrl-c is a key here; this is somebody else who wants us to end.
                    () = interrupted() => {
                        mode.restore();
                        return Ok(Line::End);
                    }
                };
                let (back, line) = read.map_err(|error| failed(&error))?;
                *editor = Some(back);
                match line {
                    Ok(line) => Ok(Line::Text(line)),
                    Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                    Err(ReadlineError::Eof) => Ok(Line::End),
                    Err(error) => Err(failed(&error)),
                }
            }
        }
    }
}

/// How a terminal was before a line was edited on it.
pub(super) struct Mode(#[cfg(unix)] Option<rustix::termios::Termios>);

impl Mode {
    fn now() -> Self {
        Self(
            #[cfg(unix)]
            rustix::termios::tcgetattr(std::io::stdin()).ok(),
        )
    }

    /// Makes it so again, while a line is still being edited.
    fn restore(&self) {
        #[cfg(unix)]
        if let Some(mode) = &self.0 {
            use rustix::termios::{OptionalActions, tcsetattr};
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
        }
    }
}

async fn plain() -> Result<Line, Failure> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|read| (read > 0).then_some(line))
    });
    tokio::select! {
        read = reading => match read.map_err(|error| failed(&error))? {
            Ok(Some(line)) => Ok(Line::Text(line)),
            Ok(None) => Ok(Line::End),
            Err(error) => Err(failed(&error)),
        },
        () = interrupted() => Err(Failure::new(Code::Interrupted, "the chat was stopped")),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("failed to read what is said: {error}"))
}
