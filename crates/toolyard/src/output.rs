//! The only place that prints: data on stdout, talk on stderr, colour only on a terminal.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use anstyle::{AnsiColor, Style};
use toolyard_core::redact;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Where a command puts what it has to say.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    /// Whether data was lost on its way out.
    lost: AtomicBool,
}

const BOLD: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, lost: AtomicBool::new(false) }
    }

    /// Whether data is wanted as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.json
    }

    /// Prints data as JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        if let Ok(text) = serde_json::to_string_pretty(value) {
            self.line(&text);
        }
    }

    /// Prints one line of data as it is. Whoever reads it may stop early; that is no failure, a full disk is.
    pub(crate) fn line(&self, text: &str) {
        self.note(writeln!(std::io::stdout(), "{text}"));
    }

    /// Prints data as JSON in one line.
    pub(crate) fn json_line(&self, value: &impl serde::Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            self.line(&text);
        }
    }

    /// Prints a piece of a text on a terminal, made harmless, at once.
    pub(crate) fn piece(&self, text: &str) {
        let mut terminal = std::io::stdout();
        self.note(terminal.write_all(harmless(text).as_bytes()).and_then(|()| terminal.flush()));
    }

    /// Prints one line of our own with colours, where a terminal shows them.
    fn styled(&self, text: &str) {
        self.note(writeln!(anstream::stdout(), "{text}"));
    }

    fn note(&self, written: std::io::Result<()>) {
        if written.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Whether all data went out.
    pub(crate) fn is_complete(&self) -> bool {
        self.note(std::io::stdout().flush());
        !self.lost.load(Ordering::Relaxed)
    }

    /// A failed command: as data when data is JSON, else in words.
    pub(crate) fn failure(&self, message: &str, hint: Option<&str>, code: u8) {
        if self.json {
            self.json(
                &serde_json::json!({"error": redact(message), "hint": hint.map(redact), "exit_code": code}),
            );
        } else {
            self.error(message, hint);
        }
    }

    /// Prints a tool's own words: as they are into a file or pipe, made harmless for a terminal.
    pub(crate) fn foreign(&self, text: &str) {
        if std::io::stdout().is_terminal() { self.line(&harmless(text)) } else { self.line(text) }
    }

    /// Says something that is not data.
    pub(crate) fn talk(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Says what went wrong and what to do about it.
    pub(crate) fn error(&self, message: &str, hint: Option<&str>) {
        self.talk(&format!("{ERROR}error:{ERROR:#} {}", harmless(&redact(message))));
        if let Some(hint) = hint {
            self.talk(&format!("  {HINT}hint:{HINT:#} {}", harmless(&redact(hint))));
        }
    }

    /// Prints rows under headings, the last column cut to the width of the terminal.
    pub(crate) fn table<const N: usize>(&self, headings: [&str; N], rows: &[[String; N]]) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain(headings.get(column).map(|heading| heading.width())).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        self.styled(&format!("{BOLD}{}{BOLD:#}", row(&widths, &headings.map(str::to_owned))));
        // At once: a system call for each row takes longer than everything else about it.
        let lines: Vec<String> = rows.iter().map(|cells| row(&widths, cells)).collect();
        if !lines.is_empty() {
            self.line(&lines.join("\n"));
        }
    }
}

fn row<const N: usize>(widths: &[usize; N], cells: &[String; N]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell =
            if at + 1 == N { fitted(cell, line_width().saturating_sub(line.width())) } else { cell.clone() };
        let gap = width.saturating_sub(cell.width()) + 2;
        line.push_str(&cell);
        if at + 1 < N {
            line.extend(std::iter::repeat_n(' ', gap));
        }
    }
    line.trim_end().to_owned()
}

/// How wide a line may be: a terminal's width where it is told, else what is comfortable to read.
pub(crate) fn line_width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(120).max(60)
}

/// One line of at most this width.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), width)
}

/// A line cut to this width; its blanks stay.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 1);
    for letter in line.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    format!("{}…", kept.trim_end())
}

/// A text without anything that could steer a terminal or hide what it says.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if (letter.is_control() && !matches!(letter, '\n' | '\t')) || hides(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// Zero-width, direction and tag characters.
fn hides(letter: char) -> bool {
    matches!(letter, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}'
        | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_cannot_be_steered() {
        assert_eq!(harmless("a\u{1b}[31mred\u{202e}x\n"), "a\\u{1b}[31mred\\u{202e}x\n");
        assert_eq!(harmless("中文 👨‍👩‍👧"), "中文 👨‍👩‍👧");
    }

    #[test]
    fn lines_are_cut_by_width_not_by_bytes() {
        assert_eq!(fitted("搜索网页并返回", 8), "搜索网…");
        assert_eq!(fitted("two\n  lines", 20), "two lines");
    }
}
