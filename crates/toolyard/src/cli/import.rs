//! Arguments of `toolyard import`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Secrets in the files of your editors move to Toolyard's encrypted store (toolyard secrets list), and your settings refer to \
them as ${secret:NAME}: imported servers work without environment variables. The files of your editors are not changed; \
`toolyard connect` does that.")]
pub(crate) struct ImportArgs {
    /// Configuration file to import; by default, those of all clients on this machine
    pub(crate) file: Option<PathBuf>,
    /// Import from this client only: claude-code, claude-desktop, cursor, vscode, codex, gemini, registry
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// Show what would change, without writing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace existing servers that have the same name but a different definition
    #[arg(long)]
    pub(crate) replace: bool,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    pub(crate) yes: bool,
}
