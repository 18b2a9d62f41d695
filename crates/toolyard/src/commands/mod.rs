//! The commands: one module per command or command group.
//!
//! `setup` builds a [`toolyard::Toolyard`] from the command line's context; `agent_run` drives and reports a run for
//! `ask`, `chat` and `runs`; `line_diff` shows changes of settings files for `import` and `connect`.

mod agent_run;
mod ask;
mod audit;
mod call;
mod chat;
mod connect;
mod doctor;
mod import;
mod lexicon;
mod line_diff;
mod models;
mod prompt;
mod runs;
mod serve;
mod servers;
mod setup;
mod skills;
mod store;
mod tools;
mod trust;

use clap::CommandFactory as _;

use self::{
    servers::discovery::discover,
    setup::{build, builder, close, interactive_servers_setup, open, require_store},
};
use crate::{
    cli::{Cli, Command, RunsCommand, ServersCommand, SkillsCommand},
    config::CliContext,
    error::CliError,
    process_guard,
    terminal::Output,
};

/// Whether a command decides about servers, skills, settings or calls, which is up to the user.
fn is_decision(command: &Command) -> bool {
    match command {
        Command::Ask(arguments) => arguments.yes,
        Command::Chat(arguments) => arguments.yes,
        Command::Trust { .. } | Command::Import(_) | Command::Connect(_) => true,
        Command::Skills(command) => {
            matches!(command, SkillsCommand::Trust { .. } | SkillsCommand::Untrust { .. })
        }
        Command::Servers(command) => matches!(
            command,
            ServersCommand::Add(_)
                | ServersCommand::Remove { .. }
                | ServersCommand::Approve { .. }
                | ServersCommand::Login { .. }
                | ServersCommand::Logout { .. }
        ),
        Command::Runs(command) => matches!(
            command,
            RunsCommand::Resume(_)
                | RunsCommand::Approve(_)
                | RunsCommand::Deny(_)
                | RunsCommand::Resolve { .. }
        ),
        _ => false,
    }
}

pub(crate) async fn run(cli: Cli, output: &Output) -> Result<(), CliError> {
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "toolyard", &mut script);
        output.verbatim(String::from_utf8_lossy(&script).trim_end());
        return Ok(());
    }
    if matches!(cli.command, Command::Doctor) {
        return doctor::run(cli.config.as_deref(), output).await;
    }
    if is_decision(&cli.command) && process_guard::is_started_by_source() {
        return Err(CliError::denied("refused: a process of a server or skill may not decide for you")
            .with_hint("run the command in a terminal of your own"));
    }
    let context = CliContext::load(cli.config.as_deref()).await?;
    if let [_, ..] = context.untrusted_settings.as_slice() {
        let names = context.untrusted_settings.join(", ");
        output.message(&format!("note: ignored until trusted: {names}. Review it, then run: toolyard trust"));
    }
    match cli.command {
        Command::Audit(command) => audit::run(command, require_store(&context)?, output).await,
        Command::Runs(command) => runs::run(command, &context, output).await,
        Command::Models(command) => models::run(command, &context, output).await,
        Command::Store(command) => store::run(command, require_store(&context)?, output).await,
        Command::Lexicon(command) => lexicon::run(command, &context, output).await,
        Command::Trust { yes } => trust::run(yes, &context, output).await,
        Command::Skills(command) => skills::run(command, &context, output).await,
        Command::Servers(command) => servers::run(command, &context, output).await,
        Command::Import(arguments) => import::run(arguments, &context, output).await,
        Command::Serve(arguments) => serve::run(arguments, &context, output).await,
        Command::Connect(arguments) => connect::run(&arguments, cli.config.as_deref(), &context, output),
        Command::Tools(command) => {
            let toolyard = open(&context).await?;
            discover(&toolyard, &context, output).await?;
            let outcome = tools::run(command, &toolyard, output).await;
            close(&toolyard, &context).await?;
            outcome
        }
        Command::Prompt(arguments) => {
            let toolyard = open(&context).await?;
            discover(&toolyard, &context, output).await?;
            let outcome = prompt::run(&arguments, &toolyard, output);
            close(&toolyard, &context).await?;
            outcome
        }
        Command::Ask(arguments) => {
            let servers = interactive_servers_setup(&context, arguments.yes);
            let toolyard = build(builder(&context, servers)).await?;
            discover(&toolyard, &context, output).await?;
            let outcome = ask::run(arguments, &toolyard, output).await;
            close(&toolyard, &context).await?;
            outcome
        }
        Command::Chat(arguments) => chat::run(arguments, &context, output).await,
        Command::Call(arguments) => {
            let toolyard = open(&context).await?;
            let outcome = call::run(arguments, &toolyard, &context, output).await;
            close(&toolyard, &context).await?;
            outcome
        }
        Command::Doctor | Command::Completions { .. } => Ok(()),
    }
}
