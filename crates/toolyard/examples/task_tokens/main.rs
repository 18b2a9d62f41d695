//! Counts what whole tasks cost a model with each surface: lists, searches, calls and results over all turns of a
//! conversation, in tokens of o200k. `just task-tokens` runs it; docs/surfaces.md has the figures.
//!
//! With `TOOLYARD_DATA` (a folder with `retrieval/livemcpbench`) tools and tasks are real; without it they are made up.

#![expect(clippy::print_stdout, reason = "it prints a table")]

mod catalogue;
mod client;
mod task_set;

use catalogue::Yard;
use client::{Cost, Kind, follow};
use task_set::{TaskSet, generated, read};

/// How many tools there are in turn.
const SIZES: [usize; 9] = [25, 40, 60, 80, 100, 150, 200, 300, 500];
/// What a client says to its model besides, in turn: its instructions and the tools of its own.
const INSTRUCTIONS: [usize; 2] = [2_000, 10_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let set = match std::env::var_os("TOOLYARD_DATA") {
        Some(folder) => read(&std::path::Path::new(&folder).join("retrieval/livemcpbench"))?,
        None => generated(),
    };
    println!("{} tasks of {}, the same at every size; tokens per task", set.tasks.len(), set.name);
    for instructions in INSTRUCTIONS {
        println!("\nA client whose own instructions take {instructions} tokens\n");
        println!(
            "| tools | list | turns full | turns search | sent full | sent search | ratio | cached full | cached search | ratio |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let mut rows = Vec::new();
        for size in SIZES {
            let Some(row) = runtime.block_on(row(&set, size, instructions)) else { continue };
            println!("{}", row.line(set.tasks.len()));
            rows.push(row);
        }
        println!();
        tell_crossover("every turn sent in full", &rows, |cost| cost.sent);
        tell_crossover("with a prompt cache", &rows, |cost| cost.cached);
        if let Some(row) = rows.last() {
            println!("- bytes of definitions to a token: {:.2}", row.bytes as f64 / row.list as f64);
        }
        let not_found: usize = rows.iter().map(|row| row.search.not_found).sum();
        println!("- tools that no search brought: {not_found}");
    }
    Ok(())
}

/// What all tasks cost together with so many tools.
struct Row {
    size: usize,
    list: usize,
    bytes: usize,
    full: Cost,
    search: Cost,
}

/// None where there are not that many tools.
async fn row(set: &TaskSet, size: usize, instructions: usize) -> Option<Row> {
    let yard = Yard::with(set, size)?;
    let (mut full, mut search) = (Cost::default(), Cost::default());
    for task in &set.tasks {
        full += follow(&yard, task, Kind::Full, instructions).await;
        search += follow(&yard, task, Kind::Search, instructions).await;
    }
    Some(Row { size, list: yard.list_tokens(Kind::Full), bytes: yard.list_bytes(), full, search })
}

impl Row {
    fn line(&self, tasks: usize) -> String {
        let Self { size, list, full, search, .. } = self;
        let each = |tokens: f64| tokens / tasks as f64;
        format!(
            "| {size} | {list} | {:.1} | {:.1} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} | {:.2} |",
            each(full.turns as f64),
            each(search.turns as f64),
            each(full.sent),
            each(search.sent),
            search.sent / full.sent,
            each(full.cached),
            each(search.cached),
            search.cached / full.cached,
        )
    }
}

/// From how many tools and tokens of definitions on searching costs less, between the two sizes where that changes.
fn tell_crossover(how: &str, rows: &[Row], cost: impl Fn(&Cost) -> f64) {
    let saved = |row: &Row| cost(&row.full) - cost(&row.search);
    let turning = rows.windows(2).find_map(|pair| match pair {
        [below, above] if saved(below) <= 0.0 && saved(above) > 0.0 => {
            let part = saved(below).abs() / (saved(above) - saved(below));
            let between = |from: usize, to: usize| from as f64 + part * (to as f64 - from as f64);
            Some((between(below.size, above.size), between(below.list, above.list)))
        }
        _ => None,
    });
    match turning {
        Some((tools, tokens)) => {
            println!("- {how}: searching costs less from {tools:.0} tools ({tokens:.0} tokens) on");
        }
        None => println!("- {how}: searching costs less at every size, or at none"),
    }
}
