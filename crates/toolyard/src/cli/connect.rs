//! The words of `toolyard connect`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard connect claude --dry-run        what would change in Claude Code's own file
  toolyard connect claude                  Claude Code starts `toolyard serve --stdio` from now on
  toolyard connect cursor --http           Cursor asks a hub that is running: toolyard serve --http 127.0.0.1:7300
  toolyard connect claude --undo           as it was before

Servers that were taken over with `toolyard import` are moved aside: the hub has them now. Those that were not stay where they are. Comments \
and the rest of the file stay as they are, and nothing secret is written into it.")]
pub(crate) struct ConnectArgs {
    /// Which client: claude, claude-desktop, cursor, vscode, codex, gemini
    pub(crate) client: String,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Put everything back as it was
    #[arg(long, conflicts_with_all = ["http", "profile"])]
    pub(crate) undo: bool,
    /// The client asks a hub that is running at this address, instead of starting one
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:7300/mcp")]
    pub(crate) http: Option<String>,
    /// Only what this profile of your settings offers
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Change this file instead of the client's usual one
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
