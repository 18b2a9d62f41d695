//! Lines at the bottom of the terminal that are redrawn in place, and the lock that keeps all other output apart from them.
//!
//! Output of the program and its log go through [`print_above`]: the lines are erased before it and redrawn below it.

use std::io::{IsTerminal as _, Write as _};

use parking_lot::{Mutex, MutexGuard};

static REGION: Mutex<LiveRegion> = Mutex::new(LiveRegion::EMPTY);

/// What is drawn, as far as the next drawing has to know. Pure: the texts to write are results.
#[derive(Debug)]
struct LiveRegion {
    lines: Vec<String>,
    /// Lines that a prompt wrote below them.
    written_below: usize,
    /// Whether a prompt uses the terminal, so that nothing is erased.
    is_paused: bool,
}

impl LiveRegion {
    const EMPTY: Self = Self { lines: Vec::new(), written_below: 0, is_paused: false };

    fn erase(&self) -> String {
        match self.lines.len() + self.written_below {
            0 => String::new(),
            lines => format!("\u{1b}[{lines}A\r\u{1b}[J"),
        }
    }

    fn replace(&mut self, lines: Vec<String>) -> String {
        let text = format!("{}{}", self.erase(), joined(&lines));
        (self.lines, self.written_below) = (lines, 0);
        text
    }

    /// What to write before and after other output.
    fn around_output(&self) -> (String, String) {
        if self.is_paused || self.written_below > 0 || self.lines.is_empty() {
            return (String::new(), String::new());
        }
        (self.erase(), joined(&self.lines))
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// Draws these lines over those drawn last.
pub(crate) fn draw(lines: Vec<String>) {
    let text = lock().replace(lines);
    write(&text);
}

/// Erases the lines.
pub(super) fn clear() {
    draw(Vec::new());
}

/// Draws these lines for the last time; they stay.
pub(super) fn finish(lines: &[String]) {
    let mut region = lock();
    let text = region.replace(Vec::new());
    write(&format!("{text}{}", joined(lines)));
}

/// Adds lines that were written below to those the next drawing replaces.
pub(super) fn add_written(lines: usize) {
    lock().written_below += lines;
}

/// Whether a prompt uses the terminal, so that other output must not move its lines.
pub(super) fn set_paused(is_paused: bool) {
    lock().is_paused = is_paused;
}

/// Writes other output, which consists of whole lines, above the lines.
pub(super) fn print_above<T>(output: impl FnOnce() -> T) -> T {
    let region = lock();
    let (erase, redraw) = region.around_output();
    if !erase.is_empty() {
        write(&erase);
    }
    let result = output();
    if !redraw.is_empty() {
        // Both streams may be the same terminal.
        let _ = std::io::stdout().flush();
        write(&redraw);
    }
    result
}

/// Whether stderr is a terminal that supports redrawing.
pub(crate) fn can_draw() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes text to stderr, ignoring errors.
pub(super) fn write(text: &str) {
    let mut terminal = anstream::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}

fn lock() -> MutexGuard<'static, LiveRegion> {
    REGION.lock()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A terminal that understands what is written here: line feeds, cursor up, erase below.
    #[derive(Default)]
    struct Terminal {
        lines: Vec<String>,
    }

    impl Terminal {
        fn write(&mut self, text: &str) {
            let mut rest = text;
            if let Some(sequence) = text.strip_prefix("\u{1b}[") {
                let (count, after) = sequence.split_once('A').unwrap();
                self.lines.truncate(self.lines.len() - count.parse::<usize>().unwrap());
                rest = after.strip_prefix("\r\u{1b}[J").unwrap();
            }
            self.lines.extend(rest.lines().map(str::to_owned));
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Draw(Vec<String>),
        Print(String),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let draw = proptest::collection::vec("[a-z]{0,9}", 0..4).prop_map(Step::Draw);
        proptest::collection::vec(prop_oneof![draw, "[A-Z]{1,9}".prop_map(Step::Print)], 0..20)
    }

    proptest! {
        #[test]
        fn output_is_never_mixed_with_the_redrawn_lines(steps in steps()) {
            let (mut region, mut terminal) = (LiveRegion::EMPTY, Terminal::default());
            let mut expected: Vec<String> = Vec::new();
            for step in steps {
                match step {
                    Step::Draw(lines) => terminal.write(&region.replace(lines)),
                    Step::Print(line) => {
                        let (erase, redraw) = region.around_output();
                        [erase, format!("{line}\n"), redraw].iter().for_each(|text| terminal.write(text));
                        expected.push(line);
                    }
                }
                let shown: Vec<String> = expected.iter().chain(&region.lines).cloned().collect();
                prop_assert_eq!(&terminal.lines, &shown);
            }
        }
    }
}
