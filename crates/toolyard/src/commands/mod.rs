//! The commands, a file each.

mod audit;
mod call;
mod doctor;
mod runs;
mod skills;
mod store;
mod tools;
mod trust;

use clap::CommandFactory as _;
use toolyard::Toolyard;
use toolyard_store::Store;

use crate::{
    cli::{Cli, Command},
    failure::{Code, Failure},
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
    if matches!(cli.command, Command::Doctor) {
        return doctor::run(cli.config.as_deref(), output).await;
    }
    let workplace = workplace(cli.config.as_deref()).await?;
    if let [_, ..] = workplace.not_trusted.as_slice() {
        let names = workplace.not_trusted.join(", ");
        output.talk(&format!("note: {names} of this project's toolyard.toml are not used: toolyard trust"));
    }
    match cli.command {
        Command::Audit(command) => audit::run(command, kept(&workplace)?, output).await,
        Command::Runs(command) => runs::run(command, kept(&workplace)?, output).await,
        Command::Store(command) => store::run(command, kept(&workplace)?, output).await,
        Command::Trust { yes } => trust::run(yes, &workplace, output).await,
        Command::Skills(command) => skills::run(command, &workplace, output).await,
        Command::Tools(command) => tools::run(command, &open(&workplace).await?, output),
        Command::Call(arguments) => {
            let yard = open(&workplace).await?;
            let outcome = call::run(arguments, &yard, &workplace, output).await;
            yard.close().await?;
            outcome
        }
        Command::Doctor | Command::Completions { .. } => Ok(()),
    }
}

/// The store, which these commands cannot do without.
pub(crate) fn kept(workplace: &Workplace) -> Result<&Store, Failure> {
    workplace.store.as_ref().ok_or_else(|| {
        Failure::new(Code::Failed, "there is no store: the usual folder cannot be written")
            .with_hint("set `store` in toolyard.toml")
    })
}

/// The yard as the settings describe it.
async fn open(workplace: &Workplace) -> Result<Toolyard, Failure> {
    // A search engine that cannot be used costs its own tool and nothing else; the doctor says why.
    let search = workplace.settings.search(|name| std::env::var(name).ok()).unwrap_or_default();
    let mut builder = Toolyard::builder()
        .settings(workplace.settings.clone())
        .search(search)
        .surroundings(workplace.surroundings.clone());
    if let Some(store) = &workplace.store {
        builder = builder.store(store.clone());
    }
    Ok(waiting("skills to describe themselves", builder.build()).await??)
}
