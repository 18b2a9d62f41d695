//! Markdown tables of the figures, as ratios within one run.

use std::{fmt::Write as _, fs, path::Path};

use crate::{
    BenchError,
    benchmark::{Figures, Scenario},
    load::Run,
};

/// Markers around the table in a file.
const BEGIN_MARKER: &str = "<!-- bench-gateway: written by `just bench-gateway` -->";
const END_MARKER: &str = "<!-- bench-gateway: end -->";

/// The (upper) median of the finite numbers.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A figure of one subject relative to another: the median of the ratios of all rounds.
pub(crate) fn ratio(ours: &[Run], theirs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
}

/// All tables.
pub(crate) fn markdown(figures: &Figures) -> String {
    let mut out = String::new();
    for scenario in &figures.scenarios {
        // Writing to a string cannot fail.
        let _ = scenario_table(&mut out, scenario);
    }
    let _ = other_table(&mut out, figures);
    out
}

fn scenario_table(out: &mut String, scenario: &Scenario) -> std::fmt::Result {
    let nginx = scenario.names.iter().position(|name| name == "nginx");
    writeln!(out, "### {}\n", scenario.title)?;
    writeln!(
        out,
        "| way | clients | calls/s against direct | against nginx | median against direct | processor time a call, µs | against nginx | memory, MiB | errors |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for (clients, by_subject) in &scenario.runs {
        let Some(direct) = by_subject.first() else { continue };
        let nginx_runs = nginx.and_then(|at| by_subject.get(at));
        for (at, (name, runs)) in scenario.names.iter().zip(by_subject).enumerate() {
            let against_nginx = |of: fn(&Run) -> f64| {
                nginx_runs
                    .filter(|_| at > 0)
                    .map_or("–".to_owned(), |nginx_runs| format!("{:.2}", ratio(runs, nginx_runs, of)))
            };
            writeln!(
                out,
                "| {name} | {clients} | {:.2} | {} | {:.2} | {:.0} | {} | {:.0} | {:.0} of {:.0} |",
                ratio(runs, direct, |run| run.calls_per_second),
                against_nginx(|run| run.calls_per_second),
                ratio(runs, direct, |run| run.median_us),
                median(runs.iter().map(|run| run.cpu_us_per_call)),
                against_nginx(|run| run.cpu_us_per_call),
                median(runs.iter().map(|run| run.memory_mib)),
                runs.iter().map(|run| run.errors).sum::<f64>(),
                runs.iter().map(|run| run.calls + run.errors).sum::<f64>(),
            )?;
        }
    }
    writeln!(out)
}

fn other_table(out: &mut String, figures: &Figures) -> std::fmt::Result {
    let median_of = |numbers: &[f64]| median(numbers.iter().copied());
    writeln!(out, "### Lists, start, memory\n\n| | measured |\n|---|---|")?;
    writeln!(
        out,
        "| processor time of one list of 1,000 tools of 10 servers ({} kB), against the same bytes from memory | {:.2} ({:.0} µs against {:.0} µs) |",
        figures.list_bytes / 1_000,
        median(figures.list_cpu_us.iter().map(|(ours, memory)| ours / memory)),
        median(figures.list_cpu_us.iter().map(|(ours, _)| *ours)),
        median(figures.list_cpu_us.iter().map(|(_, memory)| *memory)),
    )?;
    writeln!(
        out,
        "| from the start of the program to the first list, 20 known servers | {:.0} ms |",
        median_of(&figures.start_ms)
    )?;
    writeln!(
        out,
        "| memory two seconds later, none of them running | {:.1} MiB |",
        median_of(&figures.idle_memory_mib)
    )?;
    writeln!(out, "\n{} processors, shared by clients, gateway and upstream.", figures.cpu_count)
}

/// Replaces the table between the markers of a file.
pub(crate) fn replace_table(file: &Path, table: &str) -> Result<(), BenchError> {
    let text = fs::read_to_string(file)?;
    let (before, rest) =
        text.split_once(BEGIN_MARKER).ok_or_else(|| format!("{} has no begin marker", file.display()))?;
    let (_, after) =
        rest.split_once(END_MARKER).ok_or_else(|| format!("{} has no end marker", file.display()))?;
    fs::write(file, format!("{before}{BEGIN_MARKER}\n\n{table}\n{END_MARKER}{after}"))?;
    Ok(())
}
