//! Command-line arguments of `search-eval`.

use std::path::PathBuf;

use clap::Parser;
use search_eval::Split;

/// Measures how often the search finds the right tools, beside plain BM25, and what showing them costs
#[derive(Debug, Parser)]
#[command(
    name = "search-eval",
    after_help = "\
A set is a folder with two files, one JSON object a line:
  tools.jsonl    {id, name, description, server, server_description?, params: [{name, description}]}
  queries.jsonl  {id, text, relevant: [tool ids], alternatives?: [[ids that do as well]], steps?}
`steps` is a text of numbered lines. A folder with queries.jsonl alone ({…, lang, kind, split}) asks for the
tools of another set, and any relevant one will do; its tasks.jsonl ({id, text_en, text_zh, steps: [{en,
zh, relevant}]}) is measured step by step. Half of the queries is for tuning (dev), half for reporting
(test): the first byte of the BLAKE3 hash of the id is even or odd.

A folder with servers/NAME.json ({server, tools: [definitions as the server sent them]}) and dev.jsonl or
test.jsonl ({id, language, request, tools: [\"tool@server\"]}) is measured as the program serves it: with its
own native tools beside the servers, and any of the tools will do.

Floors: {\"rows\": {\"SET\": {\"recall_at_10\": 80.0, \"ndcg_at_10\": 66.0}}}

Examples:
  search-eval data/retrieval                     all sets, and all tools as one catalogue
  search-eval data/retrieval --plot search.svg   with a picture of quality against tokens
  search-eval data --floor floors.json           fails when a row is worse than it was"
)]
pub(crate) struct Cli {
    /// Sets, or folders of sets
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// Measure all sets as one catalogue too; a folder of sets always is
    #[arg(long)]
    pub(crate) mixed: bool,
    /// Which half is measured
    #[arg(long, value_enum, default_value_t = SplitArg::Test)]
    pub(crate) split: SplitArg,
    /// Draw quality against tokens into this file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Fail when a row is below what this file says; row names are the `key`s of --json
    #[arg(long, value_name = "FILE.json")]
    pub(crate) floor: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum SplitArg {
    /// The half for reporting
    Test,
    /// The half for tuning
    Dev,
    /// Every query; history is not measured then
    All,
}

impl From<SplitArg> for Split {
    fn from(split: SplitArg) -> Self {
        match split {
            SplitArg::Test => Self::Test,
            SplitArg::Dev => Self::Dev,
            SplitArg::All => Self::All,
        }
    }
}
