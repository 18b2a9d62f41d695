//! The screen of the live view. Pure: what is drawn depends on the overview and the size only.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize as _},
    text::Line,
    widgets::{Block, Borders, Paragraph, Row, Sparkline, Table},
};

use super::overview::{Overview, SOURCE_HEADINGS, TOOL_HEADINGS};
use crate::terminal::sanitize;

const CHART_HEIGHT: u16 = 6;
/// A border above, and the headings.
const TABLE_FRAME_HEIGHT: u16 = 2;
const MAX_TOOL_ROWS: u16 = 8;

/// What the screen shows.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) address: String,
    pub(super) overview: Overview,
    /// Why the overview is out of date.
    pub(super) problem: Option<String>,
}

pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let overview = &screen.overview;
    let tools = u16::try_from(overview.top_tools.len()).unwrap_or(u16::MAX).min(MAX_TOOL_ROWS);
    let [head, chart, sources, top_tools] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(CHART_HEIGHT),
        Constraint::Min(4),
        Constraint::Length(if tools == 0 { 0 } else { tools + TABLE_FRAME_HEIGHT }),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(screen)), head);
    draw_chart(frame, overview, chart);
    let widths = [24, 11, 10, 11, 9, 9, 10, 7, 10].map(Constraint::Length);
    frame.render_widget(table("sources", SOURCE_HEADINGS, overview.source_rows(), widths), sources);
    let widths = [40, 24, 10, 8, 9].map(Constraint::Length);
    frame.render_widget(table("most called tools", TOOL_HEADINGS, overview.tool_rows(), widths), top_tools);
}

fn head_lines(screen: &Screen) -> Vec<Line<'static>> {
    let title = match &screen.problem {
        None => Line::from(format!("toolyard top · {} · q quits", sanitize(&screen.address))).bold(),
        Some(problem) => Line::styled(sanitize(problem), Style::new().fg(Color::Red)),
    };
    let [calls, agents] = screen.overview.summary();
    vec![title, Line::from(calls), Line::from(agents)]
}

/// The calls of each minute; the current one is at the right edge.
fn draw_chart(frame: &mut Frame<'_>, overview: &Overview, area: Rect) {
    let most = overview.calls_per_minute.iter().max().copied().unwrap_or_default();
    let block = titled(format!("calls per minute, last hour (most: {most})"));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let skipped = overview.calls_per_minute.len().saturating_sub(usize::from(inner.width));
    let calls = overview.calls_per_minute.iter().skip(skipped).copied();
    frame.render_widget(Sparkline::default().data(calls).style(Style::new().fg(Color::Green)), inner);
}

fn table<const N: usize>(
    title: &'static str,
    headings: [&'static str; N],
    rows: Vec<[String; N]>,
    widths: [Constraint; N],
) -> Table<'static> {
    let heading = Row::new(headings).style(Style::new().add_modifier(Modifier::BOLD));
    let style = |row: &[String; N]| match row.iter().any(|cell| is_alarming(cell)) {
        true => Style::new().fg(Color::Red),
        false => Style::new(),
    };
    let rows = rows.into_iter().map(|row| {
        let style = style(&row);
        Row::new(row).style(style)
    });
    Table::new(rows, widths).header(heading).block(titled(title))
}

/// A server that failed, or a circuit breaker that does not let calls pass.
fn is_alarming(cell: &str) -> bool {
    matches!(cell, "down" | "degraded" | "open" | "half_open")
}

fn titled(title: impl Into<Line<'static>>) -> Block<'static> {
    Block::new().borders(Borders::TOP).title(title)
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;

    use super::*;

    fn screen(problem: Option<&str>) -> Screen {
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
        Screen { address: "http://127.0.0.1:7300".to_owned(), overview, problem: problem.map(str::to_owned) }
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        let lines = terminal.backend().to_string();
        lines.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_screen_shows_calls_sources_and_tools() {
        insta::assert_snapshot!(drawn(&screen(None), 112, 18));
    }

    #[test]
    fn a_hub_that_does_not_answer_leaves_its_last_numbers() {
        let text = drawn(&screen(Some("http://127.0.0.1:7300 does not answer: timeout")), 112, 18);
        assert!(text.contains("does not answer: timeout") && text.contains("git_commit"), "{text}");
    }

    #[test]
    fn names_of_servers_cannot_control_the_terminal() {
        let text = drawn(&screen(None), 112, 18);
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains(r"evil\u{1b}"), "{text}");
    }

    #[test]
    fn small_terminals_and_empty_overviews_are_drawn() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            drawn(&screen(None), width, height);
            let empty = Screen { address: String::new(), overview: Overview::default(), problem: None };
            drawn(&empty, width, height);
        }
    }
}
