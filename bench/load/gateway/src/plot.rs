//! Plots the CPU time of one call as SVG: a panel per scenario, a group of bars per number of clients.

use std::fmt::Write as _;

use crate::{
    benchmark::{Figures, Scenario},
    report::median,
};

/// Width and height of the axes of a panel.
const PANEL: (f64, f64) = (330.0, 190.0);
/// Space to the left of and above the axes.
const LEADING_MARGIN: (f64, f64) = (54.0, 44.0);
/// Space to the right of and below the axes.
const TRAILING_MARGIN: (f64, f64) = (20.0, 44.0);
const HEADER_HEIGHT: f64 = 92.0;
const COLUMNS: usize = 2;
/// A colour for each subject. The order of the bars is the same in every group, so that they can be told apart without colours.
const COLOURS: [&str; 5] = ["#8a8a8a", "#1f6fb2", "#b35a1f", "#4d7d3a", "#7d3a6f"];
const INK: &str = "#222";
const FAINT: &str = "#ddd";

/// Draws a self-contained SVG.
pub(crate) fn svg(figures: &Figures) -> String {
    let cell =
        (LEADING_MARGIN.0 + PANEL.0 + TRAILING_MARGIN.0, LEADING_MARGIN.1 + PANEL.1 + TRAILING_MARGIN.1);
    let rows = figures.scenarios.len().div_ceil(COLUMNS).max(1);
    let (width, height) = (cell.0 * COLUMNS as f64, HEADER_HEIGHT + cell.1 * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{INK}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"20\" y=\"28\" font-size=\"17\">Processor time of one call through a gateway</text>\n\
         <text x=\"20\" y=\"48\" fill=\"#555\">Microseconds of the gateway and everything it started, by number of clients; \
         medians of one run.</text>\n"
    );
    legend(&mut out, &subjects(figures));
    for (at, scenario) in figures.scenarios.iter().enumerate() {
        let (column, row) = ((at % COLUMNS) as f64, (at / COLUMNS) as f64);
        let corner = (cell.0 * column + LEADING_MARGIN.0, HEADER_HEIGHT + cell.1 * row + LEADING_MARGIN.1);
        write_line(&mut out, format_args!("<g transform=\"translate({},{})\">", corner.0, corner.1));
        panel(&mut out, scenario, &subjects(figures));
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// Writing to a string cannot fail.
fn write_line(out: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{line}");
}

/// All subjects but the upstream itself, in order of first appearance.
fn subjects(figures: &Figures) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in figures.scenarios.iter().flat_map(|scenario| scenario.names.iter().skip(1)) {
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
        let (text, name) = (x + 18.0, escape_xml(name));
        write_line(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"63\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{text}\" y=\"74\">{name}</text>",
                colour(at)
            ),
        );
        x += 44.0 + 7.0 * name.chars().count() as f64;
    }
}

fn panel(out: &mut String, scenario: &Scenario, names: &[&str]) {
    let cost = |runs: &[crate::load::Run]| median(runs.iter().map(|run| run.cpu_us_per_call));
    let all =
        scenario.runs.iter().flat_map(|(_, by_subject)| by_subject.iter().skip(1).map(|runs| cost(runs)));
    let highest = all.fold(1.0_f64, f64::max);
    write_line(out, format_args!("<text y=\"-16\" font-size=\"13\">{}</text>", escape_xml(scenario.title)));
    for fraction in [0.0, 0.5, 1.0] {
        let y = PANEL.1 * (1.0 - fraction);
        write_line(
            out,
            format_args!(
                "<line x1=\"0\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{FAINT}\"/><text x=\"-8\" y=\"{}\" text-anchor=\"end\">{:.0}</text>",
                PANEL.0,
                y + 4.0,
                highest * fraction
            ),
        );
    }
    let group = PANEL.0 / scenario.runs.len().max(1) as f64;
    for (at, (clients, by_subject)) in scenario.runs.iter().enumerate() {
        let left = group * at as f64;
        let bar = (group - 24.0) / by_subject.len().saturating_sub(1).max(1) as f64;
        for (place, (name, runs)) in scenario.names.iter().zip(by_subject).skip(1).enumerate() {
            let (value, x) = (cost(runs), left + 12.0 + bar * place as f64);
            let height = PANEL.1 * value / highest;
            let fill = colour(names.iter().position(|known| known == name).unwrap_or(0));
            write_line(
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
        write_line(
            out,
            format_args!(
                "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{clients} {word}</text>",
                PANEL.1 + 18.0
            ),
        );
    }
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
