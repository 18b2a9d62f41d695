//! Counts what whole tasks cost a model with each surface: lists, searches, calls and results over all turns of a
//! conversation, in tokens of o200k. `just task-tokens` runs it; docs/surfaces.md has the figures.
//!
//! With `TOOLYARD_DATA` (a folder with `retrieval/livemcpbench`) tools and tasks are real; without it they are made up.

#![expect(clippy::print_stdout, reason = "it prints a table")]

mod catalogue;
mod client;
mod task_set;

use catalogue::ServedTools;
use client::{Cost, SurfaceKind, run_task};
use task_set::{TaskSet, generate, read_folder};

/// Numbers of tools that are measured.
const CATALOGUE_SIZES: [usize; 9] = [25, 40, 60, 80, 100, 150, 200, 300, 500];
/// Tokens of a client's own instructions and tools that are measured.
const INSTRUCTION_TOKENS: [usize; 2] = [2_000, 10_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let set = match std::env::var_os("TOOLYARD_DATA") {
        Some(folder) => read_folder(&std::path::Path::new(&folder).join("retrieval/livemcpbench"))?,
        None => generate(),
    };
    println!("{} tasks of {}, the same at every size; tokens per task", set.tasks.len(), set.name);
    for instruction_tokens in INSTRUCTION_TOKENS {
        println!("\nA client whose own instructions take {instruction_tokens} tokens\n");
        println!(
            "| tools | list | turns full | turns search | sent full | sent search | ratio | cached full | cached search | ratio |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let mut rows = Vec::new();
        for size in CATALOGUE_SIZES {
            let Some(row) = runtime.block_on(row(&set, size, instruction_tokens)) else { continue };
            println!("{}", row.line(set.tasks.len()));
            rows.push(row);
        }
        println!();
        print_crossover("every turn sent in full", &rows, |cost| cost.sent);
        print_crossover("with a prompt cache", &rows, |cost| cost.cached);
        if let Some(row) = rows.last() {
            println!(
                "- bytes of definitions to a token: {:.2}",
                row.list_bytes as f64 / row.list_tokens as f64
            );
        }
        let not_found: usize = rows.iter().map(|row| row.search.not_found).sum();
        println!("- tools that no search found: {not_found}");
    }
    Ok(())
}

/// The costs of all tasks together with a catalogue of `size` tools.
struct Row {
    size: usize,
    list_tokens: usize,
    list_bytes: usize,
    full: Cost,
    search: Cost,
}

/// `None` if the set has fewer tools.
async fn row(set: &TaskSet, size: usize, instruction_tokens: usize) -> Option<Row> {
    let tools = ServedTools::new(set, size)?;
    let (mut full, mut search) = (Cost::default(), Cost::default());
    for task in &set.tasks {
        full += run_task(&tools, task, SurfaceKind::Full, instruction_tokens).await;
        search += run_task(&tools, task, SurfaceKind::Search, instruction_tokens).await;
    }
    Some(Row {
        size,
        list_tokens: tools.list_tokens(SurfaceKind::Full),
        list_bytes: tools.list_bytes(),
        full,
        search,
    })
}

impl Row {
    fn line(&self, tasks: usize) -> String {
        let Self { size, list_tokens, full, search, .. } = self;
        let per_task = |tokens: f64| tokens / tasks as f64;
        format!(
            "| {size} | {list_tokens} | {:.1} | {:.1} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} | {:.2} |",
            per_task(full.turns as f64),
            per_task(search.turns as f64),
            per_task(full.sent),
            per_task(search.sent),
            search.sent / full.sent,
            per_task(full.cached),
            per_task(search.cached),
            search.cached / full.cached,
        )
    }
}

/// Prints from how many tools (and tokens of definitions) on searching costs less, interpolated between two sizes.
fn print_crossover(how: &str, rows: &[Row], cost: impl Fn(&Cost) -> f64) {
    let saved = |row: &Row| cost(&row.full) - cost(&row.search);
    let crossover = rows.windows(2).find_map(|pair| match pair {
        [below, above] if saved(below) <= 0.0 && saved(above) > 0.0 => {
            let fraction = saved(below).abs() / (saved(above) - saved(below));
            let between = |from: usize, to: usize| from as f64 + fraction * (to as f64 - from as f64);
            Some((between(below.size, above.size), between(below.list_tokens, above.list_tokens)))
        }
        _ => None,
    });
    match crossover {
        Some((tools, tokens)) => {
            println!("- {how}: searching costs less from {tools:.0} tools ({tokens:.0} tokens) on");
        }
        None => println!("- {how}: searching costs less at every size, or at none"),
    }
}
