//! Arguments of `toolyard call`.

use std::path::PathBuf;

use clap::Args;
use toolyard::DurationSetting;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard call calculate '{\"expression\":\"2^10\"}'
  toolyard call read_text_file --source filesystem --args @arguments.json --limit 2000
  toolyard call --capability time

Exit codes: 0 success · 1 the tool failed · 2 usage error · 3 unreachable · 4 denied · 5 outcome unknown")]
pub(crate) struct CallArgs {
    /// Name of the tool, optionally with its source: TOOL, SOURCE.TOOL or TOOL@SOURCE
    #[arg(required_unless_present = "capability")]
    pub(crate) name: Option<String>,
    /// Arguments: a JSON object, @FILE, or - for standard input
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// The same as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    pub(crate) args: Option<String>,
    /// Use this source only
    #[arg(long, value_name = "NAME", requires = "name")]
    pub(crate) source: Option<String>,
    /// Call any tool with this capability; with a tool name, only as a fallback if that tool fails without side effects
    #[arg(long, value_name = "NAME")]
    pub(crate) capability: Option<String>,
    /// The task this call serves; successful calls improve future tool searches
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// Maximum duration, such as 30s or 2m
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<DurationSetting>,
    /// Print every routing and execution decision to stderr
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print at most N characters; the rest stays readable with the tool read_result
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Save the images, audio and files of the result, or its text, instead of printing it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["limit", "raw"])]
    pub(crate) output: Option<PathBuf>,
    /// Start the tool's server in this process, even if a gateway runs
    #[arg(long)]
    pub(crate) local: bool,
    /// Print the server's response verbatim
    #[arg(long, conflicts_with_all = ["limit", "json"])]
    pub(crate) raw: bool,
}
