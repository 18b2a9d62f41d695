//! Arguments of `toolyard skills`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List skills, their trust and their problems
    List,
    /// Show a skill's tools, files and instructions
    Show {
        /// Name of the skill
        name: String,
    },
    /// Let a skill's programs run with their current content; a changed skill must be trusted again
    Trust {
        /// Name of the skill
        name: String,
        /// Skip the confirmation prompt
        #[arg(short, long)]
        yes: bool,
    },
    /// Revoke trust in a skill
    Untrust {
        /// Name of the skill
        name: String,
    },
}
