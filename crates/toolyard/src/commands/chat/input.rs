//! Reads the lines of a chat: with an editor on a terminal, line by line elsewhere.

use std::io::IsTerminal as _;

use rustyline::{Config, DefaultEditor, error::ReadlineError};

use crate::{
    error::{CliError, ExitStatus},
    terminal::progress::interrupt_signal,
};

const PROMPT: &str = "> ";

pub(super) enum ChatInput {
    /// A terminal; the editor is moved out while a line is being read.
    Terminal { editor: Option<Box<DefaultEditor>>, mode: TerminalMode },
    /// A pipe or file: one message per line.
    Plain,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Text(String),
    /// Ctrl-C while editing a line.
    Interrupted,
    End,
}

impl ChatInput {
    /// Input from stdin. On a terminal, `history` can be recalled.
    pub(super) fn new(history: impl Iterator<Item = String>) -> Result<Self, CliError> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Self::Plain);
        }
        let config = Config::builder().auto_add_history(true).build();
        let mut editor = DefaultEditor::with_config(config).map_err(|error| read_error(&error))?;
        for line in history {
            // A missing history entry is harmless.
            let _ = editor.add_history_entry(line);
        }
        Ok(Self::Terminal { editor: Some(Box::new(editor)), mode: TerminalMode::current() })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    pub(super) async fn next(&mut self) -> Result<InputLine, CliError> {
        match self {
            Self::Plain => read_plain_line().await,
            Self::Terminal { editor, mode } => {
                let Some(mut taken) = editor.take() else { return Ok(InputLine::End) };
                let reading = tokio::task::spawn_blocking(move || {
                    let line = taken.readline(PROMPT);
                    (taken, line)
                });
                let read = tokio::select! {
                    read = reading => read,
                    // The editor reads ctrl-c as a key, so this signal comes from elsewhere.
                    () = interrupt_signal() => {
                        mode.restore();
                        return Ok(InputLine::End);
                    }
                };
                let (returned, line) = read.map_err(|error| read_error(&error))?;
                *editor = Some(returned);
                match line {
                    Ok(line) => Ok(InputLine::Text(line)),
                    Err(ReadlineError::Interrupted) => Ok(InputLine::Interrupted),
                    Err(ReadlineError::Eof) => Ok(InputLine::End),
                    Err(error) => Err(read_error(&error)),
                }
            }
        }
    }
}

/// The terminal's attributes before line editing.
pub(super) struct TerminalMode(#[cfg(unix)] Option<rustix::termios::Termios>);

impl TerminalMode {
    fn current() -> Self {
        Self(
            #[cfg(unix)]
            rustix::termios::tcgetattr(std::io::stdin()).ok(),
        )
    }

    /// Restores the attributes while a line is still being edited.
    fn restore(&self) {
        #[cfg(unix)]
        if let Some(mode) = &self.0 {
            use rustix::termios::{OptionalActions, tcsetattr};
            // Fails only if the terminal is gone.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
        }
    }
}

async fn read_plain_line() -> Result<InputLine, CliError> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|read| (read > 0).then_some(line))
    });
    tokio::select! {
        read = reading => match read.map_err(|error| read_error(&error))? {
            Ok(Some(line)) => Ok(InputLine::Text(line)),
            Ok(None) => Ok(InputLine::End),
            Err(error) => Err(read_error(&error)),
        },
        () = interrupt_signal() => Err(CliError::new(ExitStatus::Interrupted, "the chat was interrupted")),
    }
}

fn read_error(error: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!("failed to read standard input: {error}"))
}
