//! `toolyard eval`: how good the search for tools is, on test sets, beside a plain search.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolyard::evaluation::{
    DataError, Engine, Plan, Report, TokenCounter, evaluate,
    floor::{Below, Floors, below},
    folders::Found,
    plot, table,
};
use toolyard_agent::{O200k, TokenCount as _};
use toolyard_hub::search::lexicon::{LexiconError, Lexicons, StoredLexicon};

#[cfg(feature = "embedding")]
use toolyard_hub::search::embedding::{EmbeddingError, EmbeddingModel};

use crate::{
    cli::{EvalCommand, EvalSearch},
    failure::{Code, Failure},
    output::{Output, harmless},
    progress,
};

/// What models of today count, as the prompt does.
const O200K: TokenCounter = TokenCounter { count: |text| O200k.count(text), method: "of o200k_base" };

/// Measures.
pub(crate) fn run(command: EvalCommand, added: Vec<PathBuf>, output: &Output) -> Result<(), Failure> {
    let EvalCommand::Search(arguments) = command;
    let lexicons = lexicons(&arguments.lexicon, added)?;
    let floors = arguments.floor.as_deref().map(read_floors).transpose()?;
    let split = arguments.split.into();
    let suites = Found::read(&arguments.folders)?.suites(split, arguments.mixed)?;
    let plan = Plan { split, tokens: O200K, curves: arguments.plot.is_some() };
    let report =
        evaluate(&suites, &engines(lexicons, arguments.model.as_deref())?, &plan, &mut progress::stage);
    progress::end_of_stages();
    if let Some(file) = &arguments.plot {
        write_plot(file, &report)?;
    }
    let fallen = floors.map(|floors| below(&floors, &report)).unwrap_or_default();
    show(&report, &fallen, output)?;
    judge(&fallen, &arguments, output)
}

/// The lexicons that were named, else those that were added on this machine; the table inside the program always.
fn lexicons(named: &[PathBuf], added: Vec<PathBuf>) -> Result<Lexicons, Failure> {
    let files = if named.is_empty() { added } else { named.to_vec() };
    let opened: Result<Vec<_>, _> = files.iter().map(|file| StoredLexicon::open(file)).collect();
    let failed = |error: LexiconError| {
        Failure::new(Code::BadUse, error.to_string()).with_hint("build one: toolyard lexicon add zh")
    };
    Ok(Lexicons::with_lexicons(opened.map_err(failed)?))
}

/// What is measured side by side, ours first.
fn engines<'a>(lexicons: Lexicons, model: Option<&Path>) -> Result<Vec<Engine<'a>>, Failure> {
    let mut engines = vec![Engine::ours(lexicons.clone())];
    engines.extend(model.map(|folder| with_model(lexicons, folder)).transpose()?);
    engines.push(Engine::baseline());
    Ok(engines)
}

#[cfg(feature = "embedding")]
fn with_model<'a>(lexicons: Lexicons, folder: &Path) -> Result<Engine<'a>, Failure> {
    let failed = |error: EmbeddingError| {
        Failure::new(Code::BadUse, error.to_string())
            .with_hint("a model folder holds config.json, model.safetensors and tokenizer.json")
    };
    Ok(Engine::with_model(lexicons, EmbeddingModel::open(folder).map_err(failed)?))
}

#[cfg(not(feature = "embedding"))]
fn with_model<'a>(_: Lexicons, _: &Path) -> Result<Engine<'a>, Failure> {
    Err(Failure::new(Code::BadUse, "this build reads no models")
        .with_hint("build it with them: cargo install --locked --path crates/toolyard --features embedding"))
}

fn read_floors(file: &Path) -> Result<Floors, Failure> {
    let failed = |why: String| {
        Failure::new(Code::BadUse, format!("failed to read the floors in {}: {why}", file.display()))
            .with_hint(r#"like this: {"rows": {"SET": {"recall_at_10": 80.0, "ndcg_at_10": 66.0}}}"#)
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

fn write_plot(file: &Path, report: &Report) -> Result<(), Failure> {
    std::fs::write(file, plot::svg(report)).map_err(|error| {
        Failure::new(Code::Failed, format!("failed to write {}: {error}", file.display()))
            .with_hint("name a file in a folder that exists: --plot search.svg")
    })
}

fn show(report: &Report, fallen: &[Below], output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        let below: Vec<String> = fallen.iter().map(ToString::to_string).collect();
        output.json(&json!({"report": report, "below_floor": below}));
        return Ok(());
    }
    let clean = |rows: Vec<[String; 9]>| -> Vec<[String; 9]> {
        rows.into_iter().map(|row| row.map(|cell| harmless(&cell))).collect()
    };
    output.table(table::QUALITY, &clean(table::quality(report)));
    output.line("");
    output.table(table::COSTS, &clean(table::costs(report)));
    output.talk(&format!(
        "note: points of 100; tokens are {}; times can only be compared within one run",
        report.tokens
    ));
    Ok(())
}

/// A row below its floor fails the command.
fn judge(fallen: &[Below], arguments: &EvalSearch, output: &Output) -> Result<(), Failure> {
    let Some(file) = arguments.floor.as_deref().filter(|_| !fallen.is_empty()) else { return Ok(()) };
    let rows: Vec<String> = fallen.iter().map(|row| format!("\n  {row}")).collect();
    let message = format!("{} below the floor (recall@10 / NDCG@10):{}", count(fallen.len()), rows.concat());
    let failure = Failure::new(Code::Failed, message)
        .with_hint(format!("find out what changed; if the fall is meant, write it into {}", file.display()));
    Err(if output.wants_json() { failure.silent() } else { failure })
}

fn count(rows: usize) -> String {
    if rows == 1 { "1 row is".to_owned() } else { format!("{rows} rows are") }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::new(Code::BadUse, error.to_string()).with_hint(error.hint())
    }
}
