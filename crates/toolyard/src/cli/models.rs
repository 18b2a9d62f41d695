//! The words of `toolyard models`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List models, and whether they can be asked
    List,
    /// Ask models something, find out how they call tools best, and remember it; all of them if none is named
    Test {
        /// The models' names
        names: Vec<String>,
    },
    /// Add a model to your settings
    Add(AddModel),
    /// Remove a model from your settings
    Remove {
        /// The model's name
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b      Ollama
  toolyard models add local --url http://127.0.0.1:8080/v1 --model any              llama.cpp
  toolyard models add gpt --url https://api.openai.com/v1 --model gpt-5-mini --key '${OPENAI_API_KEY}'

Keys are never written into the file: name a variable. Afterwards: toolyard models test NAME")]
pub(crate) struct AddModel {
    /// Your name for it
    pub(crate) name: String,
    /// The address it is asked at, up to and with /v1
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// What its provider calls it
    #[arg(long)]
    pub(crate) model: String,
    /// Its key, as a reference to a variable: ${OPENAI_API_KEY}
    #[arg(long, value_name = "${VARIABLE}")]
    pub(crate) key: Option<String>,
    /// Whose protocol it speaks
    #[arg(long, default_value = "openai")]
    pub(crate) provider: String,
    /// Agents that name no model think with this one
    #[arg(long)]
    pub(crate) default: bool,
}
