//! The timeline of a run: one row per step with its attempts, on a time axis.

use std::iter;

use askama::Template;

use super::{
    step_state::StepState,
    svg_text::{Font, shorten_to_width, step_anchor},
};
use crate::{
    format::{duration, shorten},
    text::{DrawingText, fill},
};

/// Rows that are drawn.
pub(crate) const MAX_TIMELINE_ROWS: usize = 100;
/// Attempts that are drawn of one step.
const MAX_ATTEMPTS: usize = 20;
const ROW_HEIGHT: usize = 26;
const AXIS_HEIGHT: usize = 26;
const LABEL_WIDTH: f64 = 176.0;
/// The rest of the width has the durations of bars that end at the right.
const PLOT_WIDTH: f64 = 874.0;

/// A period in Unix milliseconds; without an end it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) started_at: i64,
    pub(crate) duration_ms: Option<u64>,
}

impl Period {
    fn end(self, now: i64) -> i64 {
        let end = self.duration_ms.map_or(now, |length| self.started_at.saturating_add_unsigned(length));
        end.max(self.started_at)
    }
}

/// A step that was started.
#[derive(Debug, Clone)]
pub(crate) struct TimelineRow {
    pub(crate) id: String,
    /// The query of the page that has the details of the step; empty for the same page.
    pub(crate) page: String,
    pub(crate) state: StepState,
    /// From its start to its end.
    pub(crate) period: Period,
    /// Its attempts, if there were several.
    pub(crate) attempts: Vec<Period>,
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct Timeline<'a> {
    text: &'a DrawingText,
    height: usize,
    /// Place and label.
    ticks: Vec<(String, String)>,
    rows: Vec<RowDrawing>,
}

struct RowDrawing {
    link: String,
    state: StepState,
    top: usize,
    title: String,
    name: String,
    bars: Vec<Bar>,
    end_x: String,
    duration: String,
}

struct Bar {
    class: &'static str,
    x: String,
    width: String,
    title: String,
}

/// Draws the first [`MAX_TIMELINE_ROWS`] rows on a common time axis, in the given order. `now` (Unix milliseconds) is the end
/// of what still runs. Each row links to the details of its step.
pub(crate) fn draw_timeline(rows: &[TimelineRow], now: i64, text: &DrawingText) -> String {
    let rows = rows.get(..MAX_TIMELINE_ROWS).unwrap_or(rows);
    let origin = rows.iter().map(|row| row.period.started_at).min().unwrap_or(now);
    let end = rows.iter().map(|row| row.period.end(now)).max().unwrap_or(now);
    let axis = Axis { origin, span_ms: end.saturating_sub(origin).max(1) };
    let tick = |quarter: i64| {
        let offset = axis.span_ms.saturating_mul(quarter) / 4;
        (format!("{:.1}", axis.x(origin.saturating_add(offset))), duration(offset.unsigned_abs()))
    };
    let drawn = rows
        .iter()
        .enumerate()
        .map(|(index, row)| RowDrawing::of(row, AXIS_HEIGHT + index * ROW_HEIGHT, &axis, now, text));
    let timeline = Timeline {
        text,
        height: AXIS_HEIGHT + rows.len() * ROW_HEIGHT + 4,
        ticks: (0..=4).map(tick).collect(),
        rows: drawn.collect(),
    };
    timeline.render().unwrap_or_default()
}

struct Axis {
    origin: i64,
    span_ms: i64,
}

impl Axis {
    fn x(&self, time: i64) -> f64 {
        let share = time.saturating_sub(self.origin).max(0) as f64 / self.span_ms as f64;
        LABEL_WIDTH + PLOT_WIDTH * share.min(1.0)
    }

    fn bar(&self, class: &'static str, start: i64, end: i64, title: String) -> Bar {
        let x = self.x(start);
        Bar { class, x: format!("{x:.1}"), width: format!("{:.1}", (self.x(end) - x).max(3.0)), title }
    }
}

impl RowDrawing {
    fn of(row: &TimelineRow, top: usize, axis: &Axis, now: i64, text: &DrawingText) -> Self {
        let (start, end) = (row.period.started_at, row.period.end(now));
        let duration = duration(end.saturating_sub(start).unsigned_abs());
        let bars = if row.attempts.len() > 1 {
            let attempts = row.attempts.iter().take(MAX_ATTEMPTS).enumerate().map(|(index, attempt)| {
                let is_last = index + 1 == row.attempts.len();
                let class = if is_last { "tl-bar" } else { "tl-bar tl-retried" };
                // An attempt without an end was replaced with its step, at the latest when the step ended.
                axis.bar(class, attempt.started_at, attempt.end(end), fill(text.attempt, index + 1))
            });
            iter::once(axis.bar("tl-span", start, end, String::new())).chain(attempts).collect()
        } else {
            vec![axis.bar("tl-bar", start, end, String::new())]
        };
        Self {
            link: format!("{}#{}", row.page, step_anchor(&row.id)),
            state: row.state,
            top,
            title: format!("{}: {} · {duration}", text.state(row.state), shorten(&row.id, 80)),
            name: shorten_to_width(&row.id, 160, Font { size_tenths: 120, is_monospace: false }),
            bars,
            end_x: format!("{:.1}", axis.x(end).max(axis.x(start) + 3.0) + 6.0),
            duration,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;

    fn row(id: &str, started_at: i64, duration_ms: Option<u64>) -> TimelineRow {
        let state = if duration_ms.is_some() { StepState::Done } else { StepState::Running };
        let period = Period { started_at, duration_ms };
        TimelineRow { id: id.to_owned(), page: String::new(), state, period, attempts: Vec::new() }
    }

    fn draw(rows: &[TimelineRow], now: i64) -> String {
        draw_timeline(rows, now, DrawingText::of(Language::English))
    }

    #[test]
    fn bars_are_placed_by_time_and_name_their_duration() {
        let svg =
            draw(&[row("a", 1_000, Some(1_000)), row("b", 2_000, Some(3_000)), row("c", 3_000, None)], 4_500);
        assert!(svg.contains(r#"<rect class="tl-bar" x="176.0" y="6" width="218.5""#), "{svg}");
        assert!(svg.contains(r#"<rect class="tl-bar" x="394.5" y="6" width="655.5""#), "{svg}");
        assert!(svg.contains("<title>Running: c · 1.5 s</title>"), "{svg}");
        assert!(svg.contains(r#"x="613.0" y="15">2.0 s</text>"#), "the axis has times: {svg}");
    }

    #[test]
    fn attempts_are_parts_of_a_row_and_end_with_it() {
        let attempts = vec![
            Period { started_at: 0, duration_ms: None },
            Period { started_at: 50, duration_ms: Some(50) },
        ];
        let rows = [TimelineRow { attempts, ..row("a", 0, Some(100)) }, row("b", 100, Some(300))];
        let svg = draw(&rows, 1_000_000);
        assert_eq!(svg.matches("tl-retried").count(), 1);
        assert!(svg.contains("<title>attempt 2</title>"));
        assert!(svg.contains(r#"<rect class="tl-bar tl-retried" x="176.0" y="6" width="218.5""#), "{svg}");
    }

    #[test]
    fn rows_link_to_the_page_of_their_step() {
        let linked = TimelineRow { page: "?view=timeline&from=10".to_owned(), ..row("a", 0, Some(1)) };
        assert!(draw(&[linked], 1).contains(r#"href="?view=timeline&#38;from=10#step-a""#));
    }

    #[test]
    fn hostile_rows_are_bounded_and_escaped() {
        let started_at = |number: i64| if number % 2 == 0 { i64::MIN } else { i64::MAX };
        let rows: Vec<TimelineRow> =
            (0..500).map(|number| row("<script>\"'\u{202e}", started_at(number), Some(u64::MAX))).collect();
        let svg = draw(&rows, i64::MAX);
        assert!(!svg.contains("<script") && !svg.contains("NaN"));
        assert_eq!(svg.matches("tl-row").count(), MAX_TIMELINE_ROWS);
        assert!(svg.len() < 60_000, "{} bytes", svg.len());
        draw(&[], 0);
    }
}
