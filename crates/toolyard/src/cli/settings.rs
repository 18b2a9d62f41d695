//! Arguments of `toolyard settings`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print the JSON Schema of toolyard.toml, for editors: toolyard settings schema > toolyard.schema.json
    Schema,
    /// Show the settings in effect and where each value comes from
    Show {
        /// Also show settings that nobody set
        #[arg(short, long)]
        all: bool,
    },
}
