//! The words of `toolyard runs`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
A run is named by its id, by as many letters of it as no other run begins with, or by `last`.")]
pub(crate) enum RunsCommand {
    /// List the latest runs
    List {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
        /// Only those that are not over
        #[arg(long)]
        open: bool,
    },
    /// Show a run: its plan, what came of each step, what it cost
    Show {
        /// The run
        #[arg(default_value = "last")]
        run: String,
    },
    /// Go on with a run that was interrupted, or with all that nobody works on
    Resume(ResumeRun),
    /// End a run for good
    Cancel {
        /// The run
        run: String,
    },
    /// Allow the calls that a run waits for, and go on with it
    Approve(ApproveRun),
    /// Show a run again as it went, from what was kept; nothing is called and no model is asked
    Replay {
        /// The run
        #[arg(default_value = "last")]
        run: String,
        /// So many times as fast
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        speed: f64,
    },
    /// List steps of which nobody knows whether they took effect
    Unknown,
    /// Say whether a step took effect
    Resolve {
        /// The run
        run: String,
        /// The step
        step: String,
        /// What happened
        outcome: Outcome,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ResumeRun {
    /// The run; without one, all that are open and that nobody works on
    pub(crate) run: Option<String>,
    /// Allow every call that would be asked about
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Let it think with this model of your settings
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveRun {
    /// The run
    pub(crate) run: String,
    /// Only this step; without one, all that wait
    pub(crate) step: Option<String>,
    /// Say no
    #[arg(long)]
    pub(crate) deny: bool,
    /// Only note the answer; somebody else goes on with the run
    #[arg(long)]
    pub(crate) no_resume: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Outcome {
    /// It took effect: it will not be called again
    Done,
    /// It did not: it may be called when the run goes on
    NotDone,
}
