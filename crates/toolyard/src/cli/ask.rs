//! Arguments of `toolyard ask` and `toolyard chat`.

use clap::Args;
use toolyard::DurationSetting;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard ask \"what are 20 percent of 300, and what time is it in Tokyo?\"
  toolyard ask \"add up the sales column of test.xlsx and write the total into B12\"
  toolyard ask --plan-only \"…\"          print the plan, call no tools
  toolyard ask --dry-run \"…\"            call read-only tools only
  toolyard ask --as-sent \"…\"            print what the model would be sent, send nothing
  git diff | toolyard ask - \"what does this change?\"

The answer goes to stdout, the plan and progress go to stderr. Tool calls with side effects need your approval, unless \
[approvals] in toolyard.toml or --yes allows them. Without a terminal the run is suspended (exit code 6) until: \
toolyard runs approve RUN. Ctrl-C interrupts the run; it continues with: toolyard runs resume RUN
Exit codes: 0 answered · 1 failed · 2 usage error · 3 model unreachable · 4 denied by policy or user · \
5 outcome unknown · 6 awaiting approval · 130 interrupted")]
pub(crate) struct AskArgs {
    /// Question or task; - appends standard input
    #[arg(required = true)]
    pub(crate) question: Vec<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print the plan as JSON and stop
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) plan_only: bool,
    /// Skip tool calls with side effects
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Approve every tool call that [approvals] does not deny
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the first request to the model, secrets redacted, and stop; nothing is sent
    #[arg(long, conflicts_with_all = ["plan_only", "dry_run", "yes", "timeout"])]
    pub(crate) as_sent: bool,
    /// Maximum duration, such as 30s or 2m
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<DurationSetting>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Use this agent
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Use this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard chat
  toolyard chat --conversation taxes      continue an earlier conversation
  printf 'what is 2^10?\\n' | toolyard chat

/help lists the commands. Ctrl-C interrupts the current run, which can be resumed; Ctrl-D exits.")]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Conversation to start or continue
    #[arg(long, value_name = "NAME")]
    pub(crate) conversation: Option<String>,
    /// Approve every tool call that [approvals] does not deny
    #[arg(short, long)]
    pub(crate) yes: bool,
}
