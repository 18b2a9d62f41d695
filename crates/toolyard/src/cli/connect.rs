//! Arguments of `toolyard connect`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard connect claude --dry-run        show the changes to Claude Code's configuration
  toolyard connect claude                  Claude Code starts `toolyard serve --stdio`
  toolyard connect codex --all             Codex may use all tools of all servers, not only those it had
  toolyard connect cursor --http           Cursor connects to a running `toolyard serve --http`
  toolyard connect claude --undo           restore the original configuration

Servers that you imported with `toolyard import` are removed from the client's file, because Toolyard now provides them; \
other servers stay. The client gets the servers and tools that it had, as a profile in your settings. Comments and formatting \
are preserved, and no secret is written.")]
pub(crate) struct ConnectArgs {
    /// Client: claude, claude-desktop, cursor, vscode, codex, gemini
    pub(crate) client: String,
    /// Show what would change, without writing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Restore the client's configuration
    #[arg(long, conflicts_with_all = ["http", "profile", "all"])]
    pub(crate) undo: bool,
    /// Connect to a running gateway at this URL instead of starting one
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:7300/mcp")]
    pub(crate) http: Option<String>,
    /// Offer the tools of this profile, instead of what the client had
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) profile: Option<String>,
    /// Offer all tools of all servers, instead of what the client had
    #[arg(long)]
    pub(crate) all: bool,
    /// Configuration file of the client, if not at its usual path
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
