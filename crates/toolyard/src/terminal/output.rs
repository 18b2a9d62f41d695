//! Prints data on stdout and messages on stderr, with colour only on a terminal.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use anstyle::{AnsiColor, Style};
use parking_lot::Mutex;
use toolyard_core::{
    escape_unsafe, redact,
    text::{ChunkEscaper, escape_json},
};
use tracing::Level;
use unicode_width::UnicodeWidthStr as _;

use super::{
    live_region::print_above,
    logging::{LogFormat, json_message},
    table::table_lines,
};

#[derive(Debug)]
pub(crate) struct Output {
    is_json: bool,
    log_format: LogFormat,
    write_failed: AtomicBool,
    /// Escapes streamed text across the boundaries of its fragments.
    stream: Mutex<ChunkEscaper>,
}

const HEADING_STYLE: Style = Style::new().bold();
const ERROR_STYLE: Style = AnsiColor::Red.on_default().bold();
const HINT_STYLE: Style = AnsiColor::Cyan.on_default();
/// Columns and rows of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (120, 40);
const MIN_LINE_WIDTH: usize = 40;

impl Output {
    pub(crate) fn new(is_json: bool) -> Self {
        Self {
            is_json,
            log_format: LogFormat::Text,
            write_failed: AtomicBool::new(false),
            stream: Mutex::default(),
        }
    }

    /// Writes messages and errors in this format.
    pub(crate) fn with_log_format(mut self, format: LogFormat) -> Self {
        self.log_format = format;
        self
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints data as indented JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        if let Ok(text) = serde_json::to_string_pretty(value) {
            self.json_text(&text);
        }
    }

    pub(crate) fn json_line(&self, value: &impl serde::Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            self.json_text(&text);
        }
    }

    /// Prints JSON: unchanged into a file or pipe, with unsafe characters as JSON escapes on a terminal. Both are the same
    /// value.
    fn json_text(&self, text: &str) {
        if std::io::stdout().is_terminal() { self.verbatim(&escape_json(text)) } else { self.verbatim(text) }
    }

    /// Prints a line of readable data, sanitized.
    pub(crate) fn line(&self, text: &str) {
        self.verbatim(&sanitize(text));
    }

    pub(crate) fn verbatim(&self, text: &str) {
        self.record_failure(print_above(|| writeln!(std::io::stdout(), "{text}")));
    }

    /// Prints a sanitized fragment of streamed text immediately.
    pub(crate) fn chunk(&self, text: &str) {
        let escaped = self.stream.lock().escape(text);
        let mut stdout = std::io::stdout();
        self.record_failure(stdout.write_all(escaped.as_bytes()).and_then(|()| stdout.flush()));
    }

    /// Prints text from a tool or model: verbatim into a file or pipe, sanitized on a terminal.
    pub(crate) fn untrusted_text(&self, text: &str) {
        if std::io::stdout().is_terminal() { self.line(text) } else { self.verbatim(text) }
    }

    /// Prints sanitized rows under headings: on a terminal so that every line fits, into a file or pipe whole.
    pub(crate) fn table<const N: usize>(&self, headings: [&str; N], rows: Vec<[String; N]>) {
        let lines = table_lines(headings, rows, terminal_width());
        let Some((heading, rows)) = lines.split_first() else { return };
        let write_heading = || writeln!(anstream::stdout(), "{HEADING_STYLE}{heading}{HEADING_STYLE:#}");
        self.record_failure(print_above(write_heading));
        // One write: a system call per row would dominate the cost of a long table.
        if !rows.is_empty() {
            self.verbatim(&rows.join("\n"));
        }
    }

    /// Records a failed write. A reader that closes the pipe early is no failure; a full disk is.
    fn record_failure(&self, result: std::io::Result<()>) {
        if result.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
            self.write_failed.store(true, Ordering::Relaxed);
        }
    }

    /// Flushes stdout and returns whether all data was written.
    pub(crate) fn flush(&self) -> bool {
        self.record_failure(std::io::stdout().flush());
        !self.write_failed.load(Ordering::Relaxed)
    }

    /// Prints a message for the user, sanitized.
    pub(crate) fn message(&self, text: &str) {
        let text = match self.log_format {
            LogFormat::Text => sanitize(text),
            LogFormat::Json => json_message(Level::INFO, text.trim(), None),
        };
        let _ = print_above(|| writeln!(anstream::stderr(), "{text}"));
    }

    /// Reports what a command did: as data in JSON mode, otherwise as a message.
    pub(crate) fn report(&self, data: &impl serde::Serialize, message: &str) {
        if self.is_json { self.json(data) } else { self.message(message) }
    }

    /// Prints an error message and its hint, sanitized and redacted.
    pub(crate) fn error(&self, message: &str, hint: Option<&str>) {
        let text = match (self.log_format, hint) {
            (LogFormat::Json, hint) => json_message(Level::ERROR, message, hint),
            (LogFormat::Text, None) => error_line(message),
            (LogFormat::Text, Some(hint)) => {
                let hint = sanitize(&redact(hint));
                format!("{}\n  {HINT_STYLE}hint:{HINT_STYLE:#} {hint}", error_line(message))
            }
        };
        let _ = print_above(|| writeln!(anstream::stderr(), "{text}"));
    }

    /// Reports a failed command: as data in JSON mode, otherwise as an error message.
    pub(crate) fn failure(&self, message: &str, hint: Option<&str>, exit_code: u8) {
        if self.is_json {
            self.json(
                &serde_json::json!({"error": redact(message), "hint": hint.map(redact), "exit_code": exit_code}),
            );
        } else {
            self.error(message, hint);
        }
    }
}

fn error_line(message: &str) -> String {
    format!("{ERROR_STYLE}error:{ERROR_STYLE:#} {}", sanitize(&redact(message)))
}

/// The width to which lines are truncated: that of the terminal, or `COLUMNS`. `None` into a file or pipe.
pub(crate) fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = columns.or_else(|| stdout_size().map(|(columns, _)| columns));
    columns.map(|columns| columns.max(MIN_LINE_WIDTH))
}

/// Columns and rows of the terminal that stdout is; `None` into a file or pipe.
pub(crate) fn stdout_size() -> Option<(usize, usize)> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(&stdout)
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return Some((size.ws_col.into(), size.ws_row.into()));
    }
    Some(DEFAULT_SIZE)
}

/// The width of a line of text: that of the terminal, otherwise 120.
pub(crate) fn line_width() -> usize {
    terminal_width().unwrap_or(DEFAULT_SIZE.0)
}

/// The text as a single line, truncated to this width.
pub(crate) fn fit_line(text: &str, width: usize) -> String {
    truncate_to_width(&text.split_whitespace().collect::<Vec<_>>().join(" "), width)
}

/// A line truncated to this width, whitespace preserved.
pub(crate) fn truncate_to_width(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut truncated = String::new();
    for letter in line.chars() {
        truncated.push(letter);
        // Of the whole text: a variation selector makes the character before it wider.
        if truncated.width() >= width {
            truncated.pop();
            break;
        }
    }
    // Without its selector, a character may be wider again.
    while truncated.width() >= width && truncated.pop().is_some() {}
    format!("{}…", truncated.trim_end())
}

/// `1 server`, `2 servers`.
pub(crate) fn pluralize(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The text with unsafe characters escaped, so that it cannot control the terminal or hide its content.
pub(crate) fn sanitize(text: &str) -> String {
    escape_unsafe(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_escaped() {
        assert_eq!(sanitize("a\u{1b}[31mred\u{202e}x\n"), "a\\u{1b}[31mred\\u{202e}x\n");
        assert_eq!(sanitize("中文 👨‍👩‍👧"), "中文 👨‍👩‍👧");
    }

    #[test]
    fn lines_are_truncated_by_display_width() {
        assert_eq!(fit_line("搜索网页并返回", 8), "搜索网…");
        assert_eq!(fit_line("two\n  lines", 20), "two lines");
        // With the selector, the digit is two columns wide.
        assert_eq!(fit_line("abc0\u{fe0f}def", 5), "abc0…");
        assert_eq!(fit_line("abc0\u{fe0f}def", 6), "abc0\u{fe0f}…");
    }
}
