//! Tables of a report: quality and costs.

use super::results::{Report, Row};
use crate::metrics::MeanMetrics;

/// Headings of the quality table.
pub const QUALITY_HEADINGS: [&str; 10] =
    ["SET", "ASKED", "QUERIES", "HIT@1", "HIT@3", "RECALL@5", "RECALL@10", "NDCG@10", "ALL@10", "ENGINE"];
/// Headings of the cost table.
pub const COST_HEADINGS: [&str; 9] =
    ["SET", "ASKED", "TOOLS", "ALL TOKENS", "TOP 10 TOKENS", "OF ALL", "MEDIAN", "P99", "ENGINE"];

/// The quality table: one line per engine and row.
pub fn quality(report: &Report) -> Vec<[String; 10]> {
    let points = |value: f64| format!("{value:.1}");
    lines(report, QUALITY_HEADINGS, |row, engine, figures| {
        [
            row.set.clone(),
            query_mode(row),
            figures.queries.to_string(),
            points(figures.hit_at_1),
            points(figures.hit_at_3),
            points(figures.recall_at_5),
            points(figures.recall_at_10),
            points(figures.ndcg_at_10),
            points(figures.all_found_at_10),
            engine.to_owned(),
        ]
    })
}

/// The cost table: tokens of the result lists, and time.
pub fn costs(report: &Report) -> Vec<[String; 9]> {
    lines(report, COST_HEADINGS, |row, engine, figures| {
        let share = 100.0 * figures.tokens / row.catalogue_tokens.max(1) as f64;
        [
            row.set.clone(),
            query_mode(row),
            grouped(row.tools),
            grouped(row.catalogue_tokens),
            format!("{:.0}", figures.tokens),
            format!("{share:.2} %"),
            time(figures.median_us),
            time(figures.p99_us),
            engine.to_owned(),
        ]
    })
}

/// One line per engine and row. Columns that the engines share are filled in the first line only.
fn lines<const N: usize>(
    report: &Report,
    headings: [&str; N],
    line: impl Fn(&Row, &str, &MeanMetrics) -> [String; N],
) -> Vec<[String; N]> {
    let mut lines: Vec<[String; N]> = Vec::new();
    for row in &report.rows {
        let measured = report.engines.iter().filter_map(|engine| Some((engine, row.figures.get(engine)?)));
        for (at, (engine, figures)) in measured.enumerate() {
            let mut cells = line(row, engine, figures);
            if at > 0 {
                cells
                    .iter_mut()
                    .zip(headings)
                    .filter(|(_, heading)| SHARED_COLUMNS.contains(heading))
                    .for_each(|(cell, _)| cell.clear());
            }
            lines.push(cells);
        }
    }
    for (column, heading) in
        headings.iter().enumerate().filter(|(_, heading)| !TEXT_COLUMNS.contains(heading))
    {
        let cells = || lines.iter().filter_map(|line| line.get(column));
        let width = cells().map(|cell| cell.chars().count()).chain([heading.len()]).max().unwrap_or(0);
        for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)).filter(|cell| !cell.is_empty()) {
            *cell = format!("{cell:>width$}");
        }
    }
    lines
}

/// The table as text: columns two spaces apart, no trailing blanks.
pub fn aligned<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(headings.get(column).map(|heading| heading.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    std::iter::once(line(headings.to_vec())).chain(rows).collect::<Vec<_>>().join("\n")
}

/// Columns that are not numbers.
const TEXT_COLUMNS: [&str; 3] = ["SET", "ASKED", "ENGINE"];
/// Columns that do not depend on the engine.
const SHARED_COLUMNS: [&str; 5] = ["SET", "ASKED", "QUERIES", "TOOLS", "ALL TOKENS"];

fn query_mode(row: &Row) -> String {
    row.language.iter().map(String::as_str).chain([row.mode.as_str()]).collect::<Vec<_>>().join(" ")
}

fn time(microseconds: f64) -> String {
    if microseconds < 1_000.0 {
        format!("{microseconds:.0} µs")
    } else {
        format!("{:.1} ms", microseconds / 1_000.0)
    }
}

/// Formats a number with thousands separators.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_formatted() {
        assert_eq!([0, 12, 999, 1_000, 1_234_567].map(grouped), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!([time(0.4), time(812.0), time(1_234.0)], ["0 µs", "812 µs", "1.2 ms"]);
    }
}
