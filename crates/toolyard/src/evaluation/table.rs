//! The tables of a report: quality first, then what it costs.

use super::{
    measure::Figures,
    report::{Report, Row},
};

/// The headings of the table of quality.
pub const QUALITY: [&str; 9] =
    ["SET", "ASKED", "QUERIES", "ENGINE", "HIT@1", "RECALL@5", "RECALL@10", "NDCG@10", "ALL@10"];
/// The headings of the table of costs.
pub const COSTS: [&str; 9] =
    ["SET", "ASKED", "TOOLS", "ALL TOKENS", "ENGINE", "TOP 10 TOKENS", "OF ALL", "MEDIAN", "P99"];

/// How good each engine is in each row, one engine a line.
pub fn quality(report: &Report) -> Vec<[String; 9]> {
    lines(report, |row, engine, figures, is_first| {
        let points = |value: f64, at: usize| right(&format!("{value:.1}"), QUALITY.get(at));
        [
            first(&row.set, is_first),
            first(&asked(row), is_first),
            right(&figures.queries.to_string(), QUALITY.get(2)),
            engine.to_owned(),
            points(figures.hit_at_1, 4),
            points(figures.recall_at_5, 5),
            points(figures.recall_at_10, 6),
            points(figures.ndcg_at_10, 7),
            points(figures.all_found_at_10, 8),
        ]
    })
}

/// What each engine costs in each row: tokens of what is shown, and time.
pub fn costs(report: &Report) -> Vec<[String; 9]> {
    lines(report, |row, engine, figures, is_first| {
        let share = 100.0 * figures.tokens / row.catalogue_tokens.max(1) as f64;
        [
            first(&row.set, is_first),
            first(&asked(row), is_first),
            right(&grouped(row.tools), COSTS.get(2)),
            right(&grouped(row.catalogue_tokens), COSTS.get(3)),
            engine.to_owned(),
            right(&format!("{:.0}", figures.tokens), COSTS.get(5)),
            right(&format!("{share:.2} %"), COSTS.get(6)),
            right(&time(figures.median_us), COSTS.get(7)),
            right(&time(figures.p99_us), COSTS.get(8)),
        ]
    })
}

fn lines<const N: usize>(
    report: &Report,
    line: impl Fn(&Row, &str, &Figures, bool) -> [String; N],
) -> Vec<[String; N]> {
    let mut lines = Vec::new();
    for row in &report.rows {
        let measured = row.figures.iter().zip(&report.engines);
        let measured = measured.filter_map(|(figures, engine)| Some((figures.as_ref()?, engine)));
        for (at, (figures, engine)) in measured.enumerate() {
            lines.push(line(row, engine, figures, at == 0));
        }
    }
    lines
}

fn asked(row: &Row) -> String {
    row.language.iter().map(String::as_str).chain([row.asked.as_str()]).collect::<Vec<_>>().join(" ")
}

/// A word that stands only in the first line of a row.
fn first(word: &str, is_first: bool) -> String {
    if is_first { word.to_owned() } else { String::new() }
}

fn right(text: &str, heading: Option<&&str>) -> String {
    format!("{text:>width$}", width = heading.map_or(0, |heading| heading.len()))
}

fn time(microseconds: f64) -> String {
    if microseconds < 1_000.0 {
        format!("{microseconds:.0} µs")
    } else {
        format!("{:.1} ms", microseconds / 1_000.0)
    }
}

/// A number with commas between thousands.
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
    fn numbers_and_times_are_read_at_a_glance() {
        assert_eq!([0, 12, 999, 1_000, 1_234_567].map(grouped), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!([time(0.4), time(812.0), time(1_234.0)], ["0 µs", "812 µs", "1.2 ms"]);
    }
}
