//! Arguments of `toolyard open`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard open                             open the console, signed in as operator
  toolyard open --no-browser                only print the link

The link signs in once, within 10 minutes. Who has it may approve calls and change agents.")]
pub(crate) struct OpenArgs {
    /// Print the link without starting a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}
