//! Arguments of `toolyard settings`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print the JSON Schema of toolyard.toml, for editors: toolyard settings schema > toolyard.schema.json
    Schema,
}
