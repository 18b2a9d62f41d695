//! Arguments of `toolyard call`.

use clap::Args;
use toolyard::DurationSetting;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard call calculate --args '{\"expression\":\"2^10\"}'
  toolyard call read_text_file --source filesystem --args @arguments.json --full
  toolyard call --capability time

Exit codes: 0 success · 1 the tool failed · 2 usage error · 3 unreachable · 4 denied · 5 outcome unknown")]
pub(crate) struct CallArgs {
    /// Name of the tool, optionally with its source: TOOL, SOURCE.TOOL or TOOL@SOURCE
    #[arg(required_unless_present = "capability")]
    pub(crate) name: Option<String>,
    /// Arguments: a JSON object, @FILE, or - for standard input
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub(crate) args: String,
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
    /// Maximum number of characters to print
    #[arg(long, value_name = "N", conflicts_with = "full")]
    pub(crate) max_chars: Option<usize>,
    /// Print the complete output
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the server's response verbatim
    #[arg(long, conflicts_with_all = ["max_chars", "json"])]
    pub(crate) raw: bool,
}
