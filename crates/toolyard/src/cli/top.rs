//! Arguments of `toolyard top`.

use clap::Args;
use toolyard::DurationSetting;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard top                                    watch the running gateway of these settings; Ctrl-C quits
  toolyard top --once                             print its state once
  toolyard top --json                             the same as JSON
  TOOLYARD_TOKEN=… toolyard top --url https://tools.example.com")]
pub(crate) struct TopArgs {
    /// Address of a gateway; its token is read from TOOLYARD_TOKEN
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Time between two updates
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) interval: DurationSetting,
    /// Print one table instead of a live view; the default unless run on a terminal
    #[arg(long)]
    pub(crate) once: bool,
}
