//! The processor time of one call as a picture: a group of bars for each number of clients, a panel for each way.

use std::fmt::Write as _;

use crate::{
    report::median,
    stage::{Figures, Way},
};

const PANEL: (f64, f64) = (330.0, 190.0);
const BEFORE: (f64, f64) = (54.0, 44.0);
const AFTER: (f64, f64) = (20.0, 44.0);
const HEAD: f64 = 92.0;
const COLUMNS: usize = 2;
/// A colour for each subject; the order is the same in every group, so that it can be told without colours.
const COLOURS: [&str; 5] =
    ["#8a8a8a", "#1f6fb2", "#b35a1f", "#4d7d3a", "#7d3a6f"];
const INK: &str = "#222";
const FAINT: &str = "#ddd";

/// The picture as SVG; needs nothing from outside.
pub(crate) fn svg(figures: &Figures) -> String {
    let room = (BEFORE.0 + PANEL.0 + AFTER.0, BEFORE.1 + PANEL.1 + AFTER.1);
    let rows = figures.ways.len().div_ceil(COLUMNS).max(1);
    let (width, height) = (room.0 * COLUMNS as f64, HEAD + room.1 * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{INK}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"20\" y=\"28\" font-size=\"17\">Processor time of one call through a gateway</text>\n\
         <text x=\"20\" y=\"48\" fill=\"#555\">Microseconds of the gateway and everything it started, by number of clients; \
         medians of one run.</text>\n"
    );
    legend(&mut out, &subjects(figures));
    for (at, way) in figures.ways.iter().enumerate() {
        let (column, row) = ((at % COLUMNS) as f64, (at / COLUMNS) as f64);
        let corner = (room.0 * column + BEFORE.0, HEAD + room.1 * row + BEFORE.1);
        put(&mut out, format_args!("<g transform=\"translate({},{})\">", corner.0, corner.1));
        panel(&mut out, way, &subjects(figures));
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Writing to a string cannot fail.
fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{line}");
}

/// Everyone but the upstream itself, in the order in which they appear first.
fn subjects(figures: &Figures) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in figures.ways.iter().flat_map(|way| way.names.iter().skip(1)) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn colour(at: usize) -> &'static str {
    COLOURS.get(at % COLOURS.len()).copied().unwrap_or(INK)
}

fn legend(out: &mut String, names: &[&str]) {
    let mut x = 20.0;
    for (at, name) in names.iter().enumerate() {
        let (text, name) = (x + 18.0, escaped(name));
        put(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"63\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{text}\" y=\"74\">{name}</text>",
                colour(at)
            ),
        );
        x += 44.0 + 7.0 * name.chars().count() as f64;
    }
}

fn panel(out: &mut String, way: &Way, names: &[&str]) {
    let cost = |runs: &[crate::load::Run]| median(runs.iter().map(|run| run.processor));
    let all = way.runs.iter().flat_map(|(_, by_subject)| by_subject.iter().skip(1).map(|runs| cost(runs)));
    let most = all.fold(1.0_f64, f64::max);
    put(out, format_args!("<text y=\"-16\" font-size=\"13\">{}</text>", escaped(way.title)));
    for part in [0.0, 0.5, 1.0] {
        let y = PANEL.1 * (1.0 - part);
        put(
            out,
            format_args!(
                "<line x1=\"0\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{FAINT}\"/><text x=\"-8\" y=\"{}\" text-anchor=\"end\">{:.0}</text>",
                PANEL.0,
                y + 4.0,
                most * part
            ),
        );
    }
    let group = PANEL.0 / way.runs.len().max(1) as f64;
    for (at, (clients, by_subject)) in way.runs.iter().enumerate() {
        let left = group * at as f64;
        let bar = (group - 24.0) / by_subject.len().saturating_sub(1).max(1) as f64;
        for (place, (name, runs)) in way.names.iter().zip(by_subject).skip(1).enumerate() {
            let (value, x) = (cost(runs), left + 12.0 + bar * place as f64);
            let height = PANEL.1 * value / most;
            let fill = colour(names.iter().position(|known| known == name).unwrap_or(0));
            put(
                out,
                format_args!(
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">{value:.0}</text>",
                    PANEL.1 - height,
                    (bar - 3.0).max(1.0),
                    x + bar / 2.0,
                    PANEL.1 - height - 4.0
                ),
            );
        }
        let middle = left + group / 2.0;
        let word = if *clients == 1 { "client" } else { "clients" };
        put(out, format_args!("<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{clients} {word}</text>", PANEL.1 + 18.0));
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
