//! `toolyard settings`: the settings in effect, and the versions of those in the store.

mod show;
mod stored;

use crate::{cli::SettingsCommand, config::CliContext, error::CliError, terminal::Output};

pub(super) async fn run(
    command: SettingsCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        SettingsCommand::Show { all } => show::show(all, context, output),
        SettingsCommand::Stored { version } => stored::show(version, context, output).await,
        SettingsCommand::Store { file } => stored::store(&file, context, output).await,
        SettingsCommand::History { limit } => stored::history(limit, context, output).await,
        SettingsCommand::Restore { version } => stored::restore(version, context, output).await,
        // Printed without settings.
        SettingsCommand::Schema => Ok(()),
    }
}
