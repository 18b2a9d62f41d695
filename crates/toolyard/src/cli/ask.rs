//! The words of `toolyard ask` and `toolyard chat`.

use clap::Args;
use toolyard::Span;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard ask \"what are 20 percent of 300, and what time is it in Tokyo?\"
  toolyard ask \"add up the sales column of test.xlsx and write the total into B12\"
  toolyard ask --plan-only \"…\"          what it would do, and nothing is called
  toolyard ask --dry-run \"…\"            everything but calls that change something
  git diff | toolyard ask - \"what does this change?\"

The answer goes to stdout, the plan and its progress to stderr. Calls that change something are asked about, unless \
[approvals] in toolyard.toml allows them, or --yes does. Where nobody can be asked the run is suspended (exit code 6) and \
goes on after: toolyard runs approve RUN. A run that was killed goes on with: toolyard runs resume
Exit codes: 0 answered · 1 failed · 2 bad use · 3 the model could not be reached · 4 refused by policy or a person · \
5 an outcome is unknown · 6 waits for a person · 130 cancelled by ctrl-c")]
pub(crate) struct AskArgs {
    /// The question or task; - also reads standard input
    #[arg(required = true)]
    pub(crate) question: Vec<String>,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Only make the plan and show it as data
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) plan_only: bool,
    /// Do everything but what would change something
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Allow every call that would be asked about; what [approvals] denies stays denied
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Give up after this time, such as 30s or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    /// Ask this agent of your settings
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Let it think with this model of your settings
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard chat
  toolyard chat --conversation taxes      go on with what was said there
  printf 'what is 2^10?\\n' | toolyard chat

/help lists what can be said besides messages. Ctrl-c cancels what is under way, ctrl-d leaves.")]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// The conversation to go on with; what is said in it is kept
    #[arg(long, value_name = "NAME")]
    pub(crate) conversation: Option<String>,
    /// Allow every call that would be asked about; what [approvals] denies stays denied
    #[arg(short, long)]
    pub(crate) yes: bool,
}
