//! Arguments of `toolyard models`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List models and their status
    List,
    /// Test models and record how they call tools best; all models by default
    Test {
        /// Names of the models
        names: Vec<String>,
    },
    /// Add a model to your settings
    Add(AddModelArgs),
    /// Remove a model from your settings
    Remove {
        /// Name of the model
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b      Ollama
  toolyard models add local --url http://127.0.0.1:8080/v1 --model any              llama.cpp
  toolyard models add gpt --url https://api.openai.com/v1 --model gpt-5-mini --key '${OPENAI_API_KEY}'
  toolyard models add claude --provider anthropic --model claude-sonnet-4-5 --key '${ANTHROPIC_API_KEY}'

API keys are never written to the settings file: reference an environment variable. Then run: toolyard models test NAME")]
pub(crate) struct AddModelArgs {
    /// Name of the model in your settings
    pub(crate) name: String,
    /// Base URL, including /v1
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The provider's name of the model
    #[arg(long, value_name = "ID")]
    pub(crate) model: String,
    /// API key, as a reference to an environment variable: ${OPENAI_API_KEY}
    #[arg(long, value_name = "${VARIABLE}")]
    pub(crate) key: Option<String>,
    /// Protocol of the provider: openai or anthropic
    #[arg(long, default_value = "openai")]
    pub(crate) provider: String,
    /// Make it the default model
    #[arg(long)]
    pub(crate) default: bool,
}
