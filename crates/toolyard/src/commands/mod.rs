//! The commands, a file each.

mod call;
mod doctor;
mod skills;
mod tools;

use clap::CommandFactory as _;
use toolyard::Toolyard;

use crate::{
    cli::{Cli, Command},
    failure::Failure,
    folders::{Workplace, workplace},
    output::Output,
    progress::waiting,
};

/// Runs one command.
pub(crate) async fn run(cli: Cli, output: &Output) -> Result<(), Failure> {
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "toolyard", &mut script);
        output.line(String::from_utf8_lossy(&script).trim_end());
        return Ok(());
    }
    let workplace = workplace(cli.config.as_deref())?;
    match cli.command {
        Command::Tools(command) => tools::run(command, &open(&workplace).await?, output),
        Command::Call(arguments) => call::run(arguments, &open(&workplace).await?, output).await,
        Command::Skills(command) => skills::run(command, &workplace, output).await,
        Command::Doctor => doctor::run(&workplace, output).await,
        Command::Completions { .. } => Ok(()),
    }
}

/// The yard as the settings describe it.
async fn open(workplace: &Workplace) -> Result<Toolyard, Failure> {
    let search = workplace.settings.search(|name| std::env::var(name).ok())?;
    let builder = Toolyard::builder()
        .settings(workplace.settings.clone())
        .search(search)
        .surroundings(workplace.surroundings.clone());
    Ok(waiting("skills to describe themselves", builder.build()).await??)
}
