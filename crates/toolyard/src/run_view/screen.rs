//! The part of a terminal that is drawn over again in place.

use std::io::{IsTerminal as _, Write as _};

/// How large a terminal is that does not say so.
const USUAL: (usize, usize) = (100, 40);

/// Lines on standard error that are drawn over again.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// How many lines above the cursor are ours.
    drawn: usize,
}

impl Screen {
    /// Draws these lines in place of those that were drawn last.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let (_, height) = size();
        let mut text = self.erasure();
        let shown = shortened(lines, height.saturating_sub(2).max(4));
        for line in &shown {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = shown.len();
        write(&text);
    }

    /// Draws these lines for the last time: they stay where they are.
    pub(super) fn settle(&mut self, lines: &[String]) {
        let mut text = self.erasure();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = 0;
        write(&text);
    }

    /// Says something that stays, above what is drawn.
    pub(super) fn say(&mut self, text: &str) {
        write(&format!("{}{text}\n", self.erasure()));
        self.drawn = 0;
    }

    /// So many more lines were written below, and are ours as well.
    pub(super) fn wrote(&mut self, lines: usize) {
        self.drawn += lines;
    }

    fn erasure(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\u{1b}[{}A\r\u{1b}[J", self.drawn) }
    }
}

/// Writes to the terminal as it is, not caring whether anybody looks.
pub(super) fn write(text: &str) {
    let mut terminal = anstream::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}

/// Whether standard error can be drawn on.
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
    USUAL
}

/// At most so many lines: the first, and the last ones, in which something happens.
fn shortened(lines: &[String], most: usize) -> Vec<String> {
    let Some((first, rest)) = lines.split_first().filter(|_| lines.len() > most) else {
        return lines.to_vec();
    };
    let kept = most.saturating_sub(2);
    let left_out = rest.len().saturating_sub(kept);
    let mut shown = vec![first.clone(), format!("   … {left_out} lines")];
    shown.extend(rest.iter().skip(left_out).cloned());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_trees_are_shortened_for_small_terminals() {
        let lines: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(shortened(&lines, 5), ["0", "   … 6 lines", "7", "8", "9"]);
        assert_eq!(shortened(&lines, 10), lines);
    }
}
