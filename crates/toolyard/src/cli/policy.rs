//! Arguments of `toolyard policy`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Validate policy files
    Check {
        /// Policy files; those of the settings if there are none
        files: Vec<PathBuf>,
    },
}
