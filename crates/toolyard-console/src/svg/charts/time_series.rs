//! Numbers over time: a small line without axes, and an area chart with axes.

use std::fmt::Write as _;

use super::scale::{drawable, nice_step, short_number};
use crate::svg::svg_text::escaped;

/// Points that are drawn of one series, the latest ones.
const MAX_POINTS: usize = 720;

/// One line of a chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Series<'a> {
    /// The name of the series, such as `calls`.
    pub(crate) name: &'a str,
    /// The class that colours it: `calls`, `failures` or one of your own, letters only.
    pub(crate) class: &'static str,
    /// One number per interval, oldest first.
    pub(crate) values: &'a [f64],
}

/// An area chart with a time axis.
pub(crate) struct TimeSeries<'a> {
    /// The name of the chart for screen readers.
    pub(crate) title: &'a str,
    /// The lines, the one in the back first. All have the same intervals.
    pub(crate) series: &'a [Series<'a>],
    /// Labels of the time axis, oldest first, evenly spaced.
    pub(crate) time_labels: &'a [&'a str],
    /// The tooltip of an interval; empty texts are left out.
    pub(crate) point_title: &'a dyn Fn(usize) -> String,
}

impl std::fmt::Debug for TimeSeries<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TimeSeries").field("title", &self.title).finish_non_exhaustive()
    }
}

fn latest(values: &[f64]) -> &[f64] {
    values.get(values.len().saturating_sub(MAX_POINTS)..).unwrap_or(values)
}

/// The outline of `values` within a rectangle, as the points of a path without its first command.
fn outline(
    values: &[f64],
    count: usize,
    highest: f64,
    (x, y, width, height): (f64, f64, f64, f64),
) -> String {
    let mut path = String::with_capacity(values.len() * 12);
    let step = width / count.saturating_sub(1).max(1) as f64;
    let mut command = 'M';
    // A shorter series ends at the same time as the others.
    let first = count.saturating_sub(values.len());
    for (index, value) in values.iter().enumerate() {
        let left = x + step * (first + index) as f64;
        let top = y + height - height * (drawable(*value) / highest).min(1.0);
        let _ = write!(path, "{command}{left:.1} {top:.1}");
        command = 'L';
    }
    path
}

/// The area below an outline that starts and ends at the edges of the rectangle.
fn area(outline: &str, first_x: f64, last_x: f64, bottom: f64) -> String {
    format!("{outline}L{last_x:.1} {bottom:.1}L{first_x:.1} {bottom:.1}Z")
}

/// A line of 120 × 32 pixels without axes. `title` says what it shows, with its latest number; `class` colours it.
pub(crate) fn draw_sparkline(values: &[f64], class: &'static str, title: &str) -> String {
    let values = latest(values);
    let highest = values.iter().copied().map(drawable).fold(1.0, f64::max);
    let mut svg = format!(
        r#"<svg class="ch ch-spark" viewBox="0 0 120 32" width="120" height="32" preserveAspectRatio="none" role="img" aria-label="{}">"#,
        escaped(title)
    );
    if values.len() > 1 {
        let line = outline(values, values.len(), highest, (1.0, 2.0, 118.0, 28.0));
        let area = area(&line, 1.0, 119.0, 31.0);
        let _ = write!(
            svg,
            r#"<path class="ch-area ch-{class}" d="{area}"/><path class="ch-line ch-{class}" d="{line}"/>"#
        );
    }
    svg.push_str("</svg>");
    svg
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

/// Draws an area chart of 720 × 200 pixels, which a page may scale.
pub(crate) fn draw_time_series(chart: &TimeSeries<'_>) -> String {
    let count = chart.series.iter().map(|series| latest(series.values).len()).max().unwrap_or_default();
    let highest = chart.series.iter().flat_map(|series| latest(series.values)).copied().map(drawable);
    let highest = highest.fold(0.0, f64::max);
    let step = nice_step(highest / 4.0);
    let top_value = (step * (highest / step).ceil()).max(step * 2.0);
    let (plot_width, plot_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        r#"<svg class="ch ch-series" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#,
        escaped(chart.title)
    );
    let mut value = 0.0;
    while value <= top_value {
        let y = TOP + plot_height - plot_height * value / top_value;
        let label = short_number(value);
        let _ = write!(
            svg,
            r#"<path class="ch-grid" d="M{LEFT} {y:.1}H{:.1}"/><text class="ch-y" x="{:.1}" y="{:.1}">{label}</text>"#,
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        );
        value += step;
    }
    push_time_labels(&mut svg, chart.time_labels, plot_width);
    for series in chart.series {
        let values = latest(series.values);
        if values.is_empty() {
            continue;
        }
        let class = series.class;
        let line = outline(values, count, top_value, (LEFT, TOP, plot_width, plot_height));
        let gap = plot_width / count.saturating_sub(1).max(1) as f64;
        let first = LEFT + gap * (count - values.len()) as f64;
        let last = first + gap * (values.len() - 1) as f64;
        let area = area(&line, first, last, TOP + plot_height);
        let _ = write!(
            svg,
            r#"<g class="ch-set"><title>{}</title><path class="ch-area ch-{class}" d="{area}"/><path class="ch-line ch-{class}" d="{line}"/></g>"#,
            escaped(series.name)
        );
    }
    push_point_titles(&mut svg, chart, count, plot_width, plot_height);
    svg.push_str("</svg>");
    svg
}

fn push_time_labels(svg: &mut String, labels: &[&str], plot_width: f64) {
    let gaps = labels.len().saturating_sub(1).max(1) as f64;
    for (index, label) in labels.iter().enumerate() {
        let x = LEFT + plot_width * index as f64 / gaps;
        let class = match index {
            0 => "ch-x ch-first",
            _ if index + 1 == labels.len() => "ch-x ch-last",
            _ => "ch-x",
        };
        let _ = write!(
            svg,
            r#"<text class="{class}" x="{x:.1}" y="{:.1}">{}</text>"#,
            HEIGHT - 7.0,
            escaped(label)
        );
    }
}

/// Invisible columns that show the numbers of an interval to a pointer.
fn push_point_titles(
    svg: &mut String,
    chart: &TimeSeries<'_>,
    count: usize,
    plot_width: f64,
    plot_height: f64,
) {
    if count == 0 || count > 120 {
        return;
    }
    let gap = plot_width / count.saturating_sub(1).max(1) as f64;
    for index in 0..count {
        let title = (chart.point_title)(index);
        if !title.is_empty() {
            let x = LEFT + gap * (index as f64 - 0.5);
            let _ = write!(
                svg,
                r#"<rect class="ch-hit" x="{x:.1}" y="{TOP}" width="{gap:.1}" height="{plot_height}"><title>{}</title></rect>"#,
                escaped(&title)
            );
        }
    }
}
