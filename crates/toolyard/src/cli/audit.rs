//! Arguments of `toolyard audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the latest records
    Tail {
        /// Number of records
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: i64,
    },
    /// Show the latest records that match
    Search {
        #[command(flatten)]
        filter: AuditFilter,
        /// Maximum number of records
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        limit: i64,
    },
    /// Verify the hash chain: no record is missing or altered
    Verify {
        /// Checkpoint printed by an earlier `verify`; detects a log that was rewritten as a whole
        #[arg(long, value_name = "NUMBER:HASH")]
        expect: Option<String>,
    },
    /// Export records as JSON lines, oldest first
    Export {
        /// Output file; `-` for stdout
        file: PathBuf,
        /// Only records with a larger number, such as after the last one of an earlier export
        #[arg(long, value_name = "NUMBER")]
        after: Option<i64>,
        /// Only records from this time on, such as 2026-11-19T08:00:00Z
        #[arg(long, value_name = "TIME", value_parser = unix_millis)]
        since: Option<i64>,
        /// After the last record, wait for further ones and export them, until Ctrl-C
        #[arg(long)]
        follow: bool,
    },
}

/// A time as milliseconds since 1970.
fn unix_millis(text: &str) -> Result<i64, jiff::Error> {
    text.parse().map(jiff::Timestamp::as_millisecond)
}

#[derive(Debug, Args)]
pub(crate) struct AuditFilter {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only calls with this outcome: ok, failed, timeout, …
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// Only calls from this time on, such as 2026-11-19T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = unix_millis)]
    pub(crate) since: Option<i64>,
    /// Only calls before this time
    #[arg(long, value_name = "TIME", value_parser = unix_millis)]
    pub(crate) until: Option<i64>,
}
