//! Arguments of `toolyard settings`.

use std::path::PathBuf;

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
    /// Print the settings in the store, which gateways with `stored_settings = true` share
    Stored {
        /// An earlier version
        #[arg(long, value_name = "N")]
        version: Option<i64>,
    },
    /// Replace the settings in the store by those of a file in the format of toolyard.toml
    Store {
        /// The file
        file: PathBuf,
    },
    /// List the versions of the settings in the store: when, by whom and what
    History {
        /// Maximum number of versions
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Make an earlier version of the settings in the store the one in effect
    Restore {
        /// Number of the version
        version: i64,
    },
}

impl SettingsCommand {
    /// Whether it must work although the settings in the store cannot be used, to repair them.
    pub(crate) fn repairs_stored_settings(&self) -> bool {
        matches!(self, Self::Stored { .. } | Self::Store { .. } | Self::History { .. } | Self::Restore { .. })
    }
}
