//! Arguments of `toolyard service`.

use clap::{Args, Subcommand};

use super::serve::listen_address;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  toolyard service install --dry-run       show the service file and what to run next
  toolyard service install                 write it; you start it with the commands that are printed
  toolyard service install --http 7411     serve at another port
  toolyard service status                  is it installed, does a gateway run?
  toolyard service uninstall               remove the file

The service runs `toolyard serve --http` as you: with systemd on Linux, with launchd on macOS. No command needs root. The file \
contains the PATH of this terminal, so that servers that start with npx or uvx are found, and the places of your settings and \
data if the terminal has XDG_CONFIG_HOME or XDG_DATA_HOME; run `install` again after PATH or \
the place of the program changed. Other variables of your terminal are not known to the service: store secrets with `toolyard \
secrets set`, or on Linux write variables into service.env beside your toolyard.toml. A gateway for a whole machine comes with \
the .deb and .rpm packages.")]
pub(crate) enum ServiceCommand {
    /// Write a service file that starts the gateway when you sign in
    Install(InstallServiceArgs),
    /// Remove the service file
    Uninstall {
        /// Show what would be removed, without removing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the service is installed and a gateway runs
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct InstallServiceArgs {
    /// Address at which the gateway serves
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7300", value_parser = listen_address)]
    pub(crate) http: String,
    /// Print the file, without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace a file that Toolyard did not write
    #[arg(long)]
    pub(crate) force: bool,
}
