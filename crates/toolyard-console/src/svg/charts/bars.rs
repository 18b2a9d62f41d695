//! Horizontal bars: a list with one bar per row, and the latency of a tool.

use std::fmt::Write as _;

use super::scale::drawable;
use crate::svg::svg_text::{Font, duration_text, escaped, escaped_to_width};

/// Rows of a list of bars.
const MAX_ROWS: usize = 50;
const ROW_HEIGHT: usize = 30;
const LIST_WIDTH: f64 = 420.0;

/// A row of a list of bars.
#[derive(Debug, Clone)]
pub struct BarRow {
    /// What the row is about.
    pub label: String,
    /// Length of the bar, relative to the other rows.
    pub value: f64,
    /// Part of the bar that is drawn in the colour of failures.
    pub failures: f64,
    /// What is written at the right, such as `120 calls`.
    pub text: String,
}

/// Draws bars with labels, in the given order, 420 pixels wide.
pub fn draw_bar_list(rows: &[BarRow], title: &str) -> String {
    let rows = rows.get(..MAX_ROWS).unwrap_or(rows);
    let highest = rows.iter().map(|row| drawable(row.value)).fold(f64::MIN_POSITIVE, f64::max);
    let height = rows.len() * ROW_HEIGHT;
    let mut svg = format!(
        r#"<svg class="ch ch-bars" viewBox="0 0 {LIST_WIDTH} {height}" width="{LIST_WIDTH}" height="{height}" role="img" aria-label="{}">"#,
        escaped(title)
    );
    for (index, row) in rows.iter().enumerate() {
        let y = index * ROW_HEIGHT;
        let value = drawable(row.value);
        let width = (LIST_WIDTH * value / highest).max(2.0);
        let failed = LIST_WIDTH * drawable(row.failures).min(value) / highest;
        let label = escaped_to_width(&row.label, 270, Font { size_tenths: 120, is_monospace: false });
        let text = escaped_to_width(&row.text, 120, Font { size_tenths: 115, is_monospace: false });
        let _ = write!(
            svg,
            r#"<g><title>{}: {}</title><rect class="ch-bar" y="{}" width="{width:.1}" height="{}" rx="4"/>"#,
            escaped(&row.label),
            escaped(&row.text),
            y + 2,
            ROW_HEIGHT - 4
        );
        if failed > 0.0 {
            let _ = write!(
                svg,
                r#"<rect class="ch-bar ch-failures" y="{}" width="{failed:.1}" height="4" rx="2"/>"#,
                y + ROW_HEIGHT - 6
            );
        }
        let _ = write!(
            svg,
            r#"<text class="ch-label" x="10" y="{}">{label}</text><text class="ch-value" x="{}" y="{}">{text}</text></g>"#,
            y + 19,
            LIST_WIDTH - 8.0,
            y + 19
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Draws the latency of a tool as a bar of 160 × 14 pixels: half of the calls end within the dark part, 95 of 100 within
/// the light one. `scale_ms` is the latency at the right end, so that bars of a table can be compared.
pub fn draw_latency_bar(p50_ms: u64, p95_ms: u64, scale_ms: u64, title: &str) -> String {
    let scale = (scale_ms.max(1)) as f64;
    let width_of = |milliseconds: u64| (160.0 * (milliseconds as f64 / scale).min(1.0)).max(1.0);
    let p95_ms = p95_ms.max(p50_ms);
    format!(
        r#"<svg class="ch ch-latency" viewBox="0 0 160 14" width="160" height="14" role="img" aria-label="{title}: p50 {p50}, p95 {p95}"><title>p50 {p50}, p95 {p95}</title><rect class="ch-track" y="3" width="160" height="8" rx="4"/><rect class="ch-p95" y="3" width="{:.1}" height="8" rx="4"/><rect class="ch-p50" y="3" width="{:.1}" height="8" rx="4"/></svg>"#,
        width_of(p95_ms),
        width_of(p50_ms),
        title = escaped(title),
        p50 = duration_text(p50_ms),
        p95 = duration_text(p95_ms),
    )
}
