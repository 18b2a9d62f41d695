//! Arguments of `toolyard prompt`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard prompt                                             all tools that fit
  toolyard prompt --query 'add up a column of a workbook'     the tools relevant to a request
  toolyard prompt --agent clerk --format openai               for models with native tool calling
  toolyard prompt --format schema                             JSON Schema of calls, for constrained decoding
  toolyard prompt --json                                      with token count and included tools

Tools that an agent lists by name are always included. Agents are defined under [agents.NAME] in toolyard.toml.
A run adds more to this, such as instructions, examples and earlier results. To see whole requests: toolyard ask --as-sent …, \
or later: toolyard runs show RUN --as-sent")]
pub(crate) struct PromptArgs {
    /// Agent the prompt is for
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Include the tools relevant to this request; by default, all that fit
    #[arg(long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// Maximum number of tokens (o200k vocabulary)
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub(crate) max_tokens: usize,
    /// Maximum number of tools besides those always included; 10 with --query
    #[arg(long, value_name = "N")]
    pub(crate) max_tools: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = PromptFormat::Text)]
    pub(crate) format: PromptFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PromptFormat {
    /// System prompt for models that call tools in their text
    Text,
    /// System message and `tools` of an OpenAI request
    Openai,
    /// `system` and `tools` of an Anthropic request
    Anthropic,
    /// JSON Schema that matches calls of these tools only
    Schema,
}
