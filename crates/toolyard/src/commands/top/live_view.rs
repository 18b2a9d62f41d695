//! The lines of the live view. Pure: they depend on the overview and the size only.

use super::overview::{Overview, SOURCE_HEADINGS, TOOL_HEADINGS};
use crate::terminal::{fit_line, sanitize, table_lines, truncate_to_width};

const MAX_TOOL_ROWS: usize = 8;
static BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What the view shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) address: String,
    pub(super) overview: Overview,
    /// Why the overview is out of date.
    pub(super) problem: Option<String>,
}

impl View {
    /// At most `height` lines, none wider than `width`.
    pub(super) fn lines(&self, (width, height): (usize, usize)) -> Vec<String> {
        let overview = &self.overview;
        let title = match &self.problem {
            None => format!("toolyard top · {} · Ctrl-C quits", sanitize(&self.address)),
            Some(problem) => fit_line(&sanitize(problem), width),
        };
        let mut lines = vec![title];
        lines.extend(overview.summary());
        lines.extend(self.chart());
        lines.push(String::new());
        lines.extend(table_lines(SOURCE_HEADINGS, overview.source_rows(), Some(width)));
        let mut tools = overview.tool_rows();
        tools.truncate(MAX_TOOL_ROWS);
        if !tools.is_empty() {
            lines.push(String::new());
            lines.extend(table_lines(TOOL_HEADINGS, tools, Some(width)));
        }
        lines.truncate(height);
        lines.iter().map(|line| truncate_to_width(line, width)).collect()
    }

    /// The calls of each minute; the current one is the last.
    fn chart(&self) -> [String; 2] {
        let calls = &self.overview.calls_per_minute;
        let most = calls.iter().max().copied().unwrap_or_default();
        let bar = |calls: &u64| {
            // A minute with calls is never blank.
            let height = calls.saturating_mul(8).div_ceil(most.max(1));
            usize::try_from(height).ok().and_then(|height| BARS.get(height)).unwrap_or(&'█')
        };
        [format!("calls per minute, last hour (most: {most})"), calls.iter().map(bar).collect()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(problem: Option<&str>) -> View {
        let mut calls = vec![0; 60];
        calls[10] = 4;
        calls[58] = 8;
        calls[59] = 2;
        let overview = json!({
            "uptime_ms": 7_380_000, "calls_per_minute": calls, "p50_ms": 1.25, "p95_ms": 1_840.0,
            "calls_total": 12_345, "failures_total": 7, "tokens": {"input": 120_000, "output": 4_100}, "cost": 0.1234,
            "runs": {"active": 1, "waiting_for_approval": 1, "pending_approvals": 2},
            "servers": {"ready": 2, "down": 1, "stopped": 0},
            "sources": [
                {"source": "git", "kind": "mcp", "state": "ready", "calls_last_minute": 8, "failures_last_minute": 1,
                    "p50_ms": 12.0, "p95_ms": 80.0, "in_flight": 3, "queued": 1, "breaker": "closed"},
                {"source": "native", "kind": "native", "state": null, "breaker": "closed"},
                {"source": "evil\u{1b}[2J\u{202e}", "kind": "mcp", "state": "down", "breaker": "open"},
            ],
            "top_tools": [{"tool": "git_commit", "source": "git", "calls": 12_000, "failures": 7, "mean_ms": 20.4}],
        });
        let overview = serde_json::from_value(overview).unwrap();
        View { address: "http://127.0.0.1:7300".to_owned(), overview, problem: problem.map(str::to_owned) }
    }

    fn drawn(view: &View) -> String {
        view.lines((112, 30)).join("\n")
    }

    #[test]
    fn the_view_shows_calls_sources_and_tools() {
        let text = drawn(&view(None));
        for part in [
            "toolyard top · http://127.0.0.1:7300 · Ctrl-C quits\nup 2 h 3 min · calls 12,345, failed 7",
            "calls per minute, last hour (most: 8)",
            "█▂\n\nSOURCE",
            "git ",
            "\n\nTOOL ",
            "git_commit",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn a_hub_that_does_not_answer_leaves_its_last_numbers() {
        let text = drawn(&view(Some("http://127.0.0.1:7300 does not answer: timeout")));
        assert!(text.contains("does not answer: timeout") && text.contains("git_commit"), "{text}");
    }

    #[test]
    fn names_of_servers_cannot_control_the_terminal() {
        let text = drawn(&view(None));
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains(r"evil\u{1b}"), "{text}");
    }

    #[test]
    fn the_view_fits_into_small_terminals_and_shows_empty_overviews() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            let lines = view(None).lines((width, height));
            assert!(lines.len() <= height && lines.iter().all(|line| line.chars().count() <= width));
            let empty = View { address: String::new(), overview: Overview::default(), problem: None };
            assert!(!empty.lines((width, height)).is_empty());
        }
    }
}
