//! Arguments of `toolyard store`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check the database and the audit log
    Check,
    /// Export everything as JSON lines
    Export {
        /// Output file
        file: PathBuf,
    },
    /// Import an export into an empty store
    Import {
        /// Input file
        file: PathBuf,
    },
    /// Delete expired records and free disk space
    Vacuum,
    /// Copy a SQLite store while it is in use
    Backup {
        /// Output file
        file: PathBuf,
    },
}
