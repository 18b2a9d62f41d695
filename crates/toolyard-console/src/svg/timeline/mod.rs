//! The timeline of a run: one row per step with its attempts, on a time axis.

#[cfg(test)]
mod timeline_tests;

use std::fmt::Write as _;

use super::{
    charts::nice_step,
    step_state::{DrawingWords, StepState, with_number},
    svg_text::{Font, escaped, escaped_to_width, escaped_within, step_anchor},
};
use crate::format::duration;

/// Rows that are drawn.
pub(crate) const MAX_TIMELINE_ROWS: usize = 100;
/// Attempts that are drawn of one step.
const MAX_ATTEMPTS: usize = 20;
const ROW_HEIGHT: i32 = 26;
const LABEL_WIDTH: i32 = 176;
const AXIS_HEIGHT: i32 = 26;
/// Room at the right for the duration of a bar that ends there.
const RIGHT_ROOM: i32 = 70;

/// A period in Unix milliseconds; without an end it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    /// Start.
    pub(crate) started_at: i64,
    /// Duration, if it ended.
    pub(crate) duration_ms: Option<u64>,
}

impl Period {
    fn end(self, now: i64) -> i64 {
        let last = match self.duration_ms {
            Some(duration) => self.started_at.saturating_add(i64::try_from(duration).unwrap_or(i64::MAX)),
            None => now,
        };
        last.max(self.started_at)
    }
}

/// A step that was started.
#[derive(Debug, Clone)]
pub(crate) struct TimelineRow {
    /// Id of the step.
    pub(crate) id: String,
    /// The query of the page that has the details of the step; empty for the same page.
    pub(crate) page: String,
    /// Its state.
    pub(crate) state: StepState,
    /// From its start to its end.
    pub(crate) period: Period,
    /// Its attempts, if there were several.
    pub(crate) attempts: Vec<Period>,
}

/// Draws the first [`MAX_TIMELINE_ROWS`] rows on a common time axis, in the given order. `now` (Unix milliseconds) is the end of what still runs.
/// Each row links to the details of its step.
pub(crate) fn draw_timeline(rows: &[TimelineRow], now: i64, width: i32, words: &DrawingWords) -> String {
    let rows = rows.get(..MAX_TIMELINE_ROWS).unwrap_or(rows);
    let width = width.clamp(LABEL_WIDTH + RIGHT_ROOM + 200, 4_000);
    let height = AXIS_HEIGHT + ROW_HEIGHT * i32::try_from(rows.len()).unwrap_or_default() + 4;
    let mut svg = format!(
        r#"<svg class="tl" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="group" aria-label="{}">"#,
        escaped(words.timeline)
    );
    let origin = rows.iter().map(|row| row.period.started_at).min().unwrap_or(now);
    let end = rows.iter().map(|row| row.period.end(now)).max().unwrap_or(now);
    let axis = Axis::new(origin, end, width);
    axis.push_ticks(&mut svg, height);
    let mut top = AXIS_HEIGHT;
    for row in rows {
        push_row(&mut svg, row, &axis, top, now, words);
        top += ROW_HEIGHT;
    }
    svg.push_str("</svg>");
    svg
}

struct Axis {
    origin: i64,
    span_ms: f64,
    plot_width: f64,
    width: i32,
}

impl Axis {
    fn new(origin: i64, end: i64, width: i32) -> Self {
        let span_ms = (end.saturating_sub(origin)).max(1) as f64;
        Self { origin, span_ms, plot_width: f64::from(width - LABEL_WIDTH - RIGHT_ROOM), width }
    }

    fn x(&self, time: i64) -> f64 {
        let offset = time.saturating_sub(self.origin).max(0) as f64;
        f64::from(LABEL_WIDTH) + self.plot_width * (offset / self.span_ms).min(1.0)
    }

    fn push_ticks(&self, svg: &mut String, height: i32) {
        let step = tick_step(self.span_ms / 8.0);
        // At most nine ticks, because the step is at least an eighth of the span; one may follow in the room at the right.
        for index in 0_u32..11 {
            let offset = step * f64::from(index);
            let x = f64::from(LABEL_WIDTH) + self.plot_width * offset / self.span_ms;
            if x > f64::from(self.width - 24) {
                break;
            }
            let label = if index == 0 { "0".to_owned() } else { tick_text(offset) };
            let _ = write!(
                svg,
                r#"<path class="tl-grid" d="M{x:.1} {}V{height}"/><text class="tl-tick" x="{x:.1}" y="15">{label}</text>"#,
                AXIS_HEIGHT - 6
            );
        }
    }
}

/// The distance of ticks in milliseconds: decimal up to ten seconds, then the parts of minutes and hours.
fn tick_step(rough: f64) -> f64 {
    if rough <= 10_000.0 {
        return nice_step(rough);
    }
    let steps = [15_000.0, 30_000.0, 60_000.0, 120_000.0, 300_000.0, 600_000.0, 900_000.0, 1_800_000.0];
    let hour = 3_600_000.0;
    steps.into_iter().find(|step| *step >= rough).unwrap_or_else(|| nice_step(rough / hour) * hour)
}

fn tick_text(offset_ms: f64) -> String {
    match offset_ms {
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 && ms % 1_000.0 != 0.0 => format!("{:.1} s", ms / 1_000.0),
        ms if ms < 60_000.0 => format!("{:.0} s", ms / 1_000.0),
        ms if ms < 3_600_000.0 && ms % 60_000.0 != 0.0 => {
            format!("{:.0}:{:02.0} min", (ms / 60_000.0).floor(), ms % 60_000.0 / 1_000.0)
        }
        ms if ms < 3_600_000.0 => format!("{:.0} min", ms / 60_000.0),
        ms => format!("{:.0} h", ms / 3_600_000.0),
    }
}

fn push_row(svg: &mut String, row: &TimelineRow, axis: &Axis, top: i32, now: i64, words: &DrawingWords) {
    let (start, end) = (axis.x(row.period.started_at), axis.x(row.period.end(now)));
    let length = u64::try_from(row.period.end(now).saturating_sub(row.period.started_at)).unwrap_or_default();
    let token = row.state.token();
    let label = escaped_to_width(&row.id, 160, Font { size_tenths: 120, is_monospace: false });
    let _ = write!(
        svg,
        r##"<a class="tl-row" href="{}#{}" data-state="{token}"><title>{}: {} · {}</title><text class="tl-id" x="4" y="{}">{label}</text>"##,
        escaped(&row.page),
        step_anchor(&row.id),
        words.state(row.state),
        escaped_within(&row.id, 120),
        duration(length),
        top + 17
    );
    let bar = |svg: &mut String, class: &str, start: f64, end: f64, inside: &str| {
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{start:.1}" y="{}" width="{:.1}" height="14" rx="3">{inside}</rect>"#,
            top + 6,
            (end - start).max(3.0)
        );
    };
    if row.attempts.len() > 1 {
        bar(svg, "tl-span", start, end, "");
        for (index, attempt) in row.attempts.iter().take(MAX_ATTEMPTS).enumerate() {
            let is_last = index + 1 == row.attempts.len();
            let class = if is_last { "tl-bar" } else { "tl-bar tl-retried" };
            let title = format!("<title>{}</title>", escaped(&with_number(words.attempt, index + 1)));
            // An attempt without an end was replaced with its step, at the latest when the step ended.
            let attempt_end = attempt.end(row.period.end(now));
            bar(svg, class, axis.x(attempt.started_at), axis.x(attempt_end), &title);
        }
    } else {
        bar(svg, "tl-bar", start, end, "");
    }
    let _ = write!(
        svg,
        r#"<text class="tl-ms" x="{:.1}" y="{}">{}</text></a>"#,
        end.max(start + 3.0) + 6.0,
        top + 17,
        duration(length)
    );
}
