//! Arguments of `toolyard open`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard open                             open the console, signed in as operator
  toolyard open --no-browser                only print the link
  toolyard open --url http://127.0.0.1:7301   choose one of several running gateways

The link signs in once, within 10 minutes. Anyone with the link can approve calls and change agents.")]
pub(crate) struct OpenArgs {
    /// Print the link without starting a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Address of the gateway, if several run on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}
