//! Arguments of `toolyard runs`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
RUN is the id of a run, a unique prefix of it, or `last`.")]
pub(crate) enum RunsCommand {
    /// List the latest runs
    List {
        /// Maximum number of runs
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Only unfinished runs
        #[arg(long)]
        unfinished: bool,
    },
    /// Show a run's plan, steps, results and cost
    Show {
        /// Run
        #[arg(default_value = "last")]
        run: String,
        /// Show the requests to the model as they were sent, secrets redacted, and its replies
        #[arg(long)]
        as_sent: bool,
    },
    /// Resume an interrupted run, or all of them
    Resume(ResumeArgs),
    /// Cancel a run for good
    Cancel {
        /// Run
        run: String,
    },
    /// Approve the tool calls a run is waiting for, and resume it
    Approve(ApprovalArgs),
    /// Deny the tool calls a run is waiting for, and resume it
    Deny(ApprovalArgs),
    /// Replay a run from its log, without calling tools or models
    Replay {
        /// Run
        #[arg(default_value = "last")]
        run: String,
        /// Speed factor
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        speed: f64,
    },
    /// List steps whose outcome is unknown
    Unknown,
    /// Record whether a step with an unknown outcome took effect
    Resolve {
        /// Run
        run: String,
        /// Step
        step: String,
        /// Outcome
        outcome: StepResolution,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Run; by default, all unfinished runs that no process is working on
    pub(crate) run: Option<String>,
    /// Approve every tool call that [approvals] does not deny
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Use this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalArgs {
    /// Run
    pub(crate) run: String,
    /// Step; required if several are waiting
    pub(crate) step: Option<String>,
    /// Skip the confirmation of an approval; required without a terminal
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Record the decision only, without resuming the run
    #[arg(long)]
    pub(crate) no_resume: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum StepResolution {
    /// The step took effect and is not repeated
    Done,
    /// The step did not take effect and may be repeated
    NotDone,
}
