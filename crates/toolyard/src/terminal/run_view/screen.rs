//! Lines on stderr that are redrawn in place.

use std::io::{IsTerminal as _, Write as _};

/// Columns and rows of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (100, 40);

/// Lines on stderr that are redrawn in place.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Lines above the cursor that the next draw replaces.
    drawn_lines: usize,
}

impl Screen {
    /// Draws these lines over those drawn last.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let (_, height) = size();
        let mut text = self.erase_sequence();
        let shown = omit_middle(lines, height.saturating_sub(2).max(4));
        for line in &shown {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn_lines = shown.len();
        write(&text);
    }

    /// Draws these lines for the last time; they stay.
    pub(super) fn finish(&mut self, lines: &[String]) {
        let mut text = self.erase_sequence();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn_lines = 0;
        write(&text);
    }

    /// Prints a message above the redrawn lines.
    pub(super) fn message(&mut self, text: &str) {
        write(&format!("{}{text}\n", self.erase_sequence()));
        self.drawn_lines = 0;
    }

    /// Adds lines that were written below to those the next draw replaces.
    pub(super) fn add_written(&mut self, lines: usize) {
        self.drawn_lines += lines;
    }

    fn erase_sequence(&self) -> String {
        if self.drawn_lines == 0 { String::new() } else { format!("\u{1b}[{}A\r\u{1b}[J", self.drawn_lines) }
    }
}

/// Writes text to stderr, ignoring errors.
pub(super) fn write(text: &str) {
    let mut terminal = anstream::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}

/// Whether stderr is a terminal that supports redrawing.
pub(super) fn can_draw() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns and rows of the terminal.
pub(super) fn size() -> (usize, usize) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
        && size.ws_col > 20
        && size.ws_row > 5
    {
        return (usize::from(size.ws_col), usize::from(size.ws_row));
    }
    DEFAULT_SIZE
}

/// The width of the terminal.
pub(super) fn columns() -> usize {
    size().0
}

/// At most `max_lines` lines: the first one and the last ones, which are active.
fn omit_middle(lines: &[String], max_lines: usize) -> Vec<String> {
    let Some((first, rest)) = lines.split_first().filter(|_| lines.len() > max_lines) else {
        return lines.to_vec();
    };
    let omitted = rest.len().saturating_sub(max_lines.saturating_sub(2));
    let mut shown = vec![first.clone(), format!("   … {omitted} lines")];
    shown.extend(rest.iter().skip(omitted).cloned());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_plans_are_shortened_for_small_terminals() {
        let lines: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(omit_middle(&lines, 5), ["0", "   … 6 lines", "7", "8", "9"]);
        assert_eq!(omit_middle(&lines, 10), lines);
    }
}
