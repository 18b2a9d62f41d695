//! The size of the terminal, and lines that are redrawn within it.

use crate::terminal::live_region;

/// Columns and rows of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (100, 40);

/// Draws these lines over those drawn last; the middle is omitted if they are too many for the terminal.
pub(super) fn draw(lines: &[String]) {
    let (_, height) = size();
    live_region::draw(omit_middle(lines, height.saturating_sub(2).max(4)));
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
pub(crate) fn stderr_columns() -> usize {
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
