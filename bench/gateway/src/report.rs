//! The figures as ratios of one run, in a table for people.

use std::{fmt::Write as _, fs, path::Path};

use crate::{
    Failed,
    load::Run,
    stage::{Figures, Way},
};

/// Between these the table stands in a file.
const BEGIN: &str = "<!-- bench-gateway: written by `just bench-gateway` -->";
const END: &str = "<!-- bench-gateway: end -->";

/// The middle of some numbers.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One subject beside another: the middle of the ratios of the rounds.
pub(crate) fn ratio(ours: &[Run], theirs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
}

/// All tables.
pub(crate) fn markdown(figures: &Figures) -> String {
    let mut out = String::new();
    for way in &figures.ways {
        // Writing to a string cannot fail.
        let _ = way_table(&mut out, way);
    }
    let _ = rest(&mut out, figures);
    out
}

fn way_table(out: &mut String, way: &Way) -> std::fmt::Result {
    let floor = way.names.iter().position(|name| name == "nginx");
    writeln!(out, "### {}\n", way.title)?;
    writeln!(out, "| way | clients | calls/s against direct | against nginx | median against direct | processor time a call, µs | against nginx | memory, MiB | errors |")?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for (clients, by_subject) in &way.runs {
        let Some(direct) = by_subject.first() else { continue };
        let floor = floor.and_then(|at| by_subject.get(at));
        for (at, (name, runs)) in way.names.iter().zip(by_subject).enumerate() {
            let against = |of: fn(&Run) -> f64| {
                floor.filter(|_| at > 0).map_or("–".to_owned(), |floor| format!("{:.2}", ratio(runs, floor, of)))
            };
            writeln!(
                out,
                "| {name} | {clients} | {:.2} | {} | {:.2} | {:.0} | {} | {:.0} | {:.0} of {:.0} |",
                ratio(runs, direct, |run| run.calls_a_second),
                against(|run| run.calls_a_second),
                ratio(runs, direct, |run| run.median),
                median(runs.iter().map(|run| run.processor)),
                against(|run| run.processor),
                median(runs.iter().map(|run| run.memory)),
                runs.iter().map(|run| run.errors).sum::<f64>(),
                runs.iter().map(|run| run.calls + run.errors).sum::<f64>(),
            )?;
        }
    }
    writeln!(out)
}

fn rest(out: &mut String, figures: &Figures) -> std::fmt::Result {
    let middle = |numbers: &[f64]| median(numbers.iter().copied());
    writeln!(out, "### Lists, start, memory\n\n| | measured |\n|---|---|")?;
    writeln!(
        out,
        "| processor time of one list of 1,000 tools of 10 servers ({} kB), against the same bytes from memory | {:.2} ({:.0} µs against {:.0} µs) |",
        figures.list_bytes / 1_000,
        median(figures.lists.iter().map(|(ours, memory)| ours / memory)),
        median(figures.lists.iter().map(|(ours, _)| *ours)),
        median(figures.lists.iter().map(|(_, memory)| *memory)),
    )?;
    writeln!(out, "| from the start of the program to the first list, 20 known servers | {:.0} ms |", middle(&figures.starts))?;
    writeln!(out, "| memory two seconds later, none of them running | {:.1} MiB |", middle(&figures.idle))?;
    writeln!(out, "\n{} processors, shared by clients, gateway and upstream.", figures.processors)
}

/// Puts the table into a file, in place of the one that is there.
pub(crate) fn put_into(file: &Path, table: &str) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| format!("{} has no place for it", file.display()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{} has no end of its place", file.display()))?;
    fs::write(file, format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))?;
    Ok(())
}
