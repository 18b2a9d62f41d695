//! The timeline of a run: one row per step with its attempts, on a time axis.

use std::iter;

use askama::Template;

use super::{
    step_state::StepState,
    svg_text::{Font, shorten_to_width, step_anchor},
};
use crate::{
    api::StepView,
    format::{duration, shorten},
    text::{DrawingText, fill},
};

/// Rows that are drawn.
const MAX_ROWS: usize = 100;
/// Attempts that are drawn of one step.
const MAX_ATTEMPTS: usize = 20;
const ROW_HEIGHT: usize = 26;
const AXIS_HEIGHT: usize = 26;
const LABEL_WIDTH: f64 = 176.0;
/// The rest of the width has the durations of bars that end at the right.
const PLOT_WIDTH: f64 = 874.0;

/// A step that was started. Times are Unix milliseconds.
struct Row<'a> {
    step: &'a StepView,
    state: StepState,
    /// The query of the page that has the details of the step; empty for the same page.
    page: String,
    start: i64,
    end: i64,
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

/// Draws the steps that were started on a common time axis, and returns how many are not drawn; `None` if none was started.
/// `now` is the end of what still runs. Each row links to the details of its step, on the page that `page_of` returns for the
/// position of the step.
pub(crate) fn draw_timeline(
    steps: &[StepView],
    now: i64,
    text: &DrawingText,
    page_of: &dyn Fn(usize) -> String,
) -> Option<(String, usize)> {
    let rows = steps.iter().enumerate();
    let mut rows: Vec<Row<'_>> =
        rows.filter_map(|(position, step)| Row::of(step, now, page_of(position))).collect();
    rows.sort_by_key(|row| row.start);
    let hidden = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let origin = rows.first()?.start;
    let end = rows.iter().map(|row| row.end).max().unwrap_or(now);
    let axis = Axis { origin, span_ms: end.saturating_sub(origin).max(1) };
    let tick = |quarter: i64| {
        let offset = axis.span_ms.saturating_mul(quarter) / 4;
        (format!("{:.1}", axis.x(origin.saturating_add(offset))), duration(offset.unsigned_abs()))
    };
    let drawn = rows.iter().enumerate();
    let drawn = drawn.map(|(index, row)| row.draw(AXIS_HEIGHT + index * ROW_HEIGHT, &axis, text));
    let timeline = Timeline {
        text,
        height: AXIS_HEIGHT + rows.len() * ROW_HEIGHT + 4,
        ticks: (0..=4).map(tick).collect(),
        rows: drawn.collect(),
    };
    Some((timeline.render().unwrap_or_default(), hidden))
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

/// The end of what took `duration_ms`.
fn end_of(started_at: i64, duration_ms: Option<u64>) -> Option<i64> {
    duration_ms.map(|length| started_at.saturating_add_unsigned(length))
}

impl<'a> Row<'a> {
    fn of(step: &'a StepView, now: i64, page: String) -> Option<Self> {
        let start = step.attempts.first().map(|first| first.started_at).or(step.started_at)?;
        let state = StepState::of_api(&step.state);
        let attempts = step.attempts.iter().map(|attempt| end_of(attempt.started_at, attempt.duration_ms));
        let latest = step.started_at.map(|started_at| end_of(started_at, step.duration_ms));
        let end = attempts.chain(latest).flatten().max().unwrap_or(start);
        let end = if state == StepState::Running { now } else { end };
        Some(Self { step, state, page, start, end: end.max(start) })
    }

    fn draw(&self, top: usize, axis: &Axis, text: &DrawingText) -> RowDrawing {
        let Self { step, state, start, end, .. } = *self;
        let duration = duration(end.saturating_sub(start).unsigned_abs());
        let bars = if step.attempts.len() > 1 {
            let attempts = step.attempts.iter().take(MAX_ATTEMPTS).enumerate().map(|(index, attempt)| {
                let is_last = index + 1 == step.attempts.len();
                let class = if is_last { "tl-bar" } else { "tl-bar tl-retried" };
                // An attempt without an end was replaced with its step, at the latest when the step ended.
                let attempt_end = end_of(attempt.started_at, attempt.duration_ms).unwrap_or(end);
                axis.bar(class, attempt.started_at, attempt_end, fill(text.attempt, index + 1))
            });
            iter::once(axis.bar("tl-span", start, end, String::new())).chain(attempts).collect()
        } else {
            vec![axis.bar("tl-bar", start, end, String::new())]
        };
        RowDrawing {
            link: format!("{}#{}", self.page, step_anchor(&step.id)),
            state,
            top,
            title: format!("{}: {} · {duration}", text.state(state), shorten(&step.id, 80)),
            name: shorten_to_width(&step.id, 160, Font { size_tenths: 120, is_monospace: false }),
            bars,
            end_x: format!("{:.1}", axis.x(end).max(axis.x(start) + 3.0) + 6.0),
            duration,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::AttemptView, text::Language};

    fn step(id: &str, started_at: i64, duration_ms: Option<u64>) -> StepView {
        let state = if duration_ms.is_some() { "done" } else { "running" };
        StepView {
            id: id.to_owned(),
            state: state.to_owned(),
            started_at: Some(started_at),
            duration_ms,
            ..StepView::default()
        }
    }

    fn draw(steps: &[StepView], now: i64) -> String {
        let page_of = |_: usize| "?view=timeline&from=10".to_owned();
        draw_timeline(steps, now, DrawingText::of(Language::English), &page_of).unwrap().0
    }

    #[test]
    fn bars_are_placed_by_time_and_name_their_duration() {
        let steps = [step("b", 2_000, Some(3_000)), step("a", 1_000, Some(1_000)), step("c", 3_000, None)];
        let svg = draw(&steps, 4_500);
        assert!(svg.contains(r#"<rect class="tl-bar" x="176.0" y="6" width="218.5""#), "{svg}");
        assert!(svg.contains(r#"<rect class="tl-bar" x="394.5" y="6" width="655.5""#), "{svg}");
        assert!(svg.contains("<title>Running: c · 1.5 s</title>"), "{svg}");
        assert!(svg.contains(r#"x="613.0" y="15">2.0 s</text>"#), "the axis has times: {svg}");
        assert!(svg.contains(r#"href="?view=timeline&#38;from=10#step-a""#), "{svg}");
    }

    #[test]
    fn attempts_are_parts_of_a_row_and_end_with_it() {
        let attempt = |started_at, duration_ms| AttemptView { started_at, duration_ms, error: None };
        let attempts = vec![attempt(0, None), attempt(50, Some(50))];
        let steps = [StepView { attempts, ..step("a", 50, Some(50)) }, step("b", 100, Some(300))];
        let svg = draw(&steps, 1_000_000);
        assert_eq!(svg.matches("tl-retried").count(), 1);
        assert!(svg.contains("<title>attempt 2</title>"));
        assert!(svg.contains(r#"<rect class="tl-bar tl-retried" x="176.0" y="6" width="218.5""#), "{svg}");
    }

    #[test]
    fn steps_that_were_not_started_are_not_drawn() {
        let waiting = StepView { started_at: None, ..step("a", 0, None) };
        let text = DrawingText::of(Language::English);
        assert!(draw_timeline(&[waiting], 0, text, &|_| String::new()).is_none());
    }

    #[test]
    fn hostile_rows_are_bounded_and_escaped() {
        let started_at = |number: i64| if number % 2 == 0 { i64::MIN } else { i64::MAX };
        let steps: Vec<StepView> =
            (0..500).map(|number| step("<script>\"'", started_at(number), Some(u64::MAX))).collect();
        let svg = draw(&steps, i64::MAX);
        assert!(!svg.contains("<script") && !svg.contains("NaN"));
        assert_eq!(svg.matches("tl-row").count(), MAX_ROWS);
        assert!(svg.len() < 60_000, "{} bytes", svg.len());
    }
}
