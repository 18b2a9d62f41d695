//! Plots recall against tokens as SVG: one panel per row, one curve per engine.

use std::fmt::Write as _;

use super::results::{Curve, Point, Report};
use crate::dataset::split::Split;

const COLUMNS: usize = 3;
const PANEL: (f64, f64) = (250.0, 150.0);
/// Space to the left of and above the axes of a panel.
const LEADING_MARGIN: (f64, f64) = (52.0, 34.0);
/// Space to the right of and below the axes.
const TRAILING_MARGIN: (f64, f64) = (24.0, 46.0);
const HEADER_HEIGHT: f64 = 112.0;
/// Colour and dash pattern of each engine; patterns keep them apart without colours.
const STYLES: [(&str, &str); 3] = [("#1f6fb2", ""), ("#b35a1f", "6 4"), ("#4d7d3a", "2 3")];
const INK: &str = "#222";
const FAINT: &str = "#ddd";
/// Number of tools at the marked point.
const MARKED_RANK: usize = 10;

/// Draws a self-contained SVG.
pub fn svg(report: &Report) -> String {
    let scale = Scale::of(&report.curves);
    let cell =
        (LEADING_MARGIN.0 + PANEL.0 + TRAILING_MARGIN.0, LEADING_MARGIN.1 + PANEL.1 + TRAILING_MARGIN.1);
    let rows = report.curves.len().div_ceil(COLUMNS).max(1);
    let (width, height) = (cell.0 * COLUMNS as f64, HEADER_HEIGHT + cell.1 * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    draw_header(&mut out, report);
    for (at, curve) in report.curves.iter().enumerate() {
        let (column, row) = (at % COLUMNS, at / COLUMNS);
        let corner = (
            cell.0 * column as f64 + LEADING_MARGIN.0,
            HEADER_HEIGHT + cell.1 * row as f64 + LEADING_MARGIN.1,
        );
        write_line(&mut out, format_args!("<g transform=\"translate({},{})\">", corner.0, corner.1));
        draw_panel(&mut out, curve, &report.engines, &scale);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Writing to a string cannot fail.
fn write_line(out: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{line}");
}

fn draw_header(out: &mut String, report: &Report) {
    let half = match report.split {
        Split::Test => "test halves",
        Split::Dev => "halves for tuning",
        Split::All => "all queries",
    };
    write_line(
        out,
        format_args!("<text x=\"20\" y=\"28\" font-size=\"17\">Tools found against tokens shown</text>"),
    );
    write_line(
        out,
        format_args!(
            "<g fill=\"#555\"><text x=\"20\" y=\"48\">Mean recall of the wanted tools (%) in the first 1 to 50, against the \
             tokens of their definitions; {half}.</text>\n<text x=\"20\" y=\"65\">Tokens are {}.</text></g>",
            escaped(&report.tokens)
        ),
    );
    let mut x = 20.0;
    for (name, (colour, pattern)) in report.engines.iter().zip(STYLES) {
        write_line(
            out,
            format_args!(
                "<line x1=\"{x}\" y1=\"88\" x2=\"{}\" y2=\"88\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-dasharray=\"{pattern}\"/><text x=\"{}\" y=\"92\">{}</text>",
                x + 34.0,
                x + 42.0,
                escaped(name)
            ),
        );
        x += 60.0 + 7.5 * name.chars().count() as f64;
    }
    write_line(
        out,
        format_args!(
            "<circle cx=\"{}\" cy=\"88\" r=\"4\" fill=\"{INK}\"/><text x=\"{}\" y=\"92\">first {MARKED_RANK} tools</text>\
             <rect x=\"{}\" y=\"84\" width=\"8\" height=\"8\" fill=\"#fff\" stroke=\"{INK}\"/>\
             <text x=\"{}\" y=\"92\">whole catalogue</text>",
            x + 6.0,
            x + 16.0,
            x + 122.0,
            x + 136.0
        ),
    );
}

fn draw_panel(out: &mut String, curve: &Curve, engines: &[String], scale: &Scale) {
    write_line(out, format_args!("<text y=\"-12\" font-size=\"13\">{}</text>", escaped(&curve.key)));
    for percent in [0_u8, 25, 50, 75, 100] {
        let y = recall_y(f64::from(percent));
        write_line(
            out,
            format_args!(
                "<line x1=\"0\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"{FAINT}\"/>\
                 <text x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{percent}</text>",
                PANEL.0,
                y + 4.0
            ),
        );
    }
    for (tokens, label) in scale.ticks() {
        let x = scale.x(tokens);
        write_line(
            out,
            format_args!(
                "<line x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{0}\" stroke=\"{FAINT}\"/>\
                 <text x=\"{x:.1}\" y=\"{1}\" text-anchor=\"middle\">{label}</text>",
                PANEL.1,
                PANEL.1 + 17.0
            ),
        );
    }
    write_line(
        out,
        format_args!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#555\">tokens</text>",
            PANEL.0 / 2.0,
            PANEL.1 + 32.0
        ),
    );
    // The first engine is drawn last, on top.
    for (engine, style) in engines.iter().zip(STYLES).rev() {
        draw_curve(out, curve.points.get(engine).map_or(&[][..], Vec::as_slice), style, scale);
    }
    let (x, y) = (scale.x(curve.catalogue_tokens as f64), recall_y(100.0));
    write_line(
        out,
        format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"#fff\" stroke=\"{INK}\"/>",
            x - 4.0,
            y - 4.0
        ),
    );
}

fn draw_curve(out: &mut String, points: &[Point], (colour, pattern): (&str, &str), scale: &Scale) {
    let coordinates = |point: &Point| format!("{:.1},{:.1}", scale.x(point.tokens), recall_y(point.recall));
    let path: Vec<String> = points.iter().map(coordinates).collect();
    write_line(
        out,
        format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{pattern}\"/>",
            path.join(" ")
        ),
    );
    if let Some(point) = points.get(MARKED_RANK - 1) {
        write_line(
            out,
            format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
                scale.x(point.tokens),
                recall_y(point.recall)
            ),
        );
    }
}

/// The y coordinate of a recall.
fn recall_y(recall: f64) -> f64 {
    PANEL.1 * (1.0 - recall.clamp(0.0, 100.0) / 100.0)
}

/// Logarithmic scale of tokens, shared by all panels.
struct Scale {
    first: i32,
    last: i32,
}

impl Scale {
    fn of(curves: &[Curve]) -> Self {
        let least = curves.iter().flat_map(|curve| curve.points.values()).filter_map(|points| points.first());
        let least = least.map(|point| point.tokens).fold(f64::INFINITY, f64::min);
        let most = curves.iter().map(|curve| curve.catalogue_tokens as f64).fold(10.0, f64::max);
        let least = if least.is_finite() { least } else { 1.0 };
        let power = |tokens: f64| (0..12).take_while(|power| 10_f64.powi(power + 1) <= tokens).count();
        let first = i32::try_from(power(least)).unwrap_or(0);
        Self { first, last: i32::try_from(power(most) + 1).unwrap_or(1).max(first + 1) }
    }

    fn x(&self, tokens: f64) -> f64 {
        let share = (tokens.max(1.0).log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        PANEL.0 * share.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let label = |power: i32| match power {
            6.. => format!("{}M", 10_i64.pow(power.unsigned_abs() - 6)),
            3.. => format!("{}k", 10_i64.pow(power.unsigned_abs() - 3)),
            _ => 10_i64.pow(power.unsigned_abs()).to_string(),
        };
        (self.first..=self.last).map(move |power| (10_f64.powi(power), label(power)))
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
#[path = "plot_tests.rs"]
mod tests;
