//! `search-eval`: measures the tool search on test sets, side by side with plain BM25.

mod cli;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser as _;
use search_eval::{
    DatasetError, Engine, EvaluationOptions, Report, TestSets, TokenCounter, evaluate,
    report::{
        floors::{FloorViolation, Floors, floor_violations},
        plot, table,
    },
};
use serde_json::json;

use crate::cli::Cli;

/// The tokenizer of current OpenAI models, which also budgets prompts.
const O200K: TokenCounter = TokenCounter {
    count: |text| tiktoken_rs::o200k_base_singleton().count_ordinary(text),
    method: "of o200k_base",
};

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}\n  hint: {}", error.hint());
            if matches!(error, CliError::WritePlot { .. }) { ExitCode::FAILURE } else { ExitCode::from(2) }
        }
    }
}

/// An error that ends the program.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Data(#[from] DatasetError),
    #[error("failed to read the floors in {}: {reason}", file.display())]
    Floors { file: PathBuf, reason: String },
    #[error("failed to write {}: {source}", file.display())]
    WritePlot { file: PathBuf, source: std::io::Error },
}

impl CliError {
    fn hint(&self) -> &'static str {
        match self {
            Self::Data(error) => error.hint(),
            Self::Floors { .. } => {
                r#"like this: {"rows": {"SET": {"recall_at_10": 80.0, "ndcg_at_10": 66.0}}}"#
            }
            Self::WritePlot { .. } => "name a file in a folder that exists: --plot search.svg",
        }
    }
}

fn run(arguments: &Cli) -> Result<ExitCode, CliError> {
    let floors = arguments.floor.as_deref().map(read_floors).transpose()?;
    let split = arguments.split.into();
    let suites = TestSets::read(&arguments.folders)?.suites(split, arguments.mixed)?;
    let options = EvaluationOptions { split, tokens: O200K, curves: arguments.plot.is_some() };
    let engines = [Engine::toolyard(), Engine::baseline()];
    let report = evaluate(&suites, &engines, &options, &mut |_| {});
    if let Some(file) = &arguments.plot {
        std::fs::write(file, plot::svg(&report))
            .map_err(|source| CliError::WritePlot { file: file.clone(), source })?;
    }
    let below_floor = floors.map(|floors| floor_violations(&floors, &report)).unwrap_or_default();
    print(&report, &below_floor, arguments.json);
    if below_floor.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.json {
        let rows: Vec<String> = below_floor.iter().map(|row| format!("\n  {row}")).collect();
        let file = arguments.floor.as_deref().unwrap_or(Path::new("")).display();
        let _ = writeln!(
            std::io::stderr(),
            "error: {} below the floor (recall@10 / NDCG@10):{}\n  hint: find out what changed; if the fall is meant, write it into {file}",
            if rows.len() == 1 { "1 row is".to_owned() } else { format!("{} rows are", rows.len()) },
            rows.concat()
        );
    }
    Ok(ExitCode::FAILURE)
}

fn read_floors(file: &Path) -> Result<Floors, CliError> {
    let failed = |reason: String| CliError::Floors { file: file.to_owned(), reason };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

fn print(report: &Report, below_floor: &[FloorViolation], as_json: bool) {
    let mut out = std::io::stdout().lock();
    if as_json {
        let below: Vec<String> = below_floor.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{:#}", json!({"report": report, "below_floor": below}));
        return;
    }
    let _ = writeln!(out, "{}", table::aligned(table::QUALITY_HEADINGS, &table::quality(report)));
    let _ = writeln!(out, "\n{}", table::aligned(table::COST_HEADINGS, &table::costs(report)));
    let _ = writeln!(
        std::io::stderr(),
        "note: points of 100; tokens are {}; times can only be compared within one run",
        report.tokens
    );
}
