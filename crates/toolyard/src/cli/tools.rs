//! Arguments of `toolyard tools`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools; servers that were never started are started once
    List {
        /// Only tools of this source
        #[arg(long, value_name = "NAME")]
        source: Option<String>,
        /// Only tools with this capability
        #[arg(long, value_name = "NAME")]
        capability: Option<String>,
    },
    /// Show a tool's description, parameters and sources
    Show {
        /// Name of the tool
        name: String,
        /// Show every definition that servers have sent under this name
        #[arg(long)]
        history: bool,
    },
    /// Find tools for a request in plain English or Chinese
    Search(SearchToolsArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard tools search \"add up a column of a spreadsheet\"
  toolyard tools search 删除远程分支 --explain
  toolyard tools search \"mail Bob the report\" --step \"make a PDF\" --step \"send it\"

Searching uses no language model and starts no server; it knows the tools of servers that were started before.")]
pub(crate) struct SearchToolsArgs {
    /// The request
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Maximum number of tools
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) limit: usize,
    /// A step of the task; repeat for several steps
    #[arg(long = "step", value_name = "TEXT")]
    pub(crate) steps: Vec<String>,
    /// Show which words matched
    #[arg(long)]
    pub(crate) explain: bool,
}
