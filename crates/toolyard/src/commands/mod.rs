//! The commands: one module per command or command group.
//!
//! `setup` builds a [`toolyard::Toolyard`] from the command line's context; `agent_run` drives and reports a run for
//! `ask`, `chat` and `runs`; `local_gateway` finds running gateways; `line_diff` shows changes of settings files for `import` and `connect`.

mod agent_run;
mod ask;
mod audit;
mod call;
mod callers;
mod chat;
mod connect;
mod doctor;
mod import;
mod line_diff;
mod local_gateway;
mod models;
mod open;
mod own_program;
mod policy;
mod quotas;
mod runs;
mod secrets;
mod serve;
mod servers;
mod service;
mod settings;
mod setup;
mod skills;
mod store;
pub(crate) mod telemetry;
mod tools;
mod top;
mod trust;
mod worker;

use self::{
    servers::discovery::{discover, discover_for_list, note_undiscovered},
    setup::{build, close, open, require_store},
};
use crate::{
    cli::{
        CallersCommand, Cli, Command, ModelsCommand, PolicyCommand, RunsCommand, SecretsCommand,
        ServersCommand, ServiceCommand, SettingsCommand, SkillsCommand, StoreCommand, ToolsCommand,
    },
    completion,
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
        Command::Trust { .. } | Command::Import(_) | Command::Connect(_) | Command::Open(_) => true,
        Command::Models(command) => {
            matches!(command, ModelsCommand::Add(_) | ModelsCommand::Remove { .. })
        }
        Command::Secrets(command) => !matches!(command, SecretsCommand::List),
        Command::Store(command) => matches!(command, StoreCommand::Import { .. }),
        Command::Skills(command) => {
            matches!(command, SkillsCommand::Trust { .. } | SkillsCommand::Untrust { .. })
        }
        Command::Servers(command) => matches!(
            command,
            ServersCommand::Add(_)
                | ServersCommand::Remove { .. }
                | ServersCommand::Edit(_)
                | ServersCommand::Enable { .. }
                | ServersCommand::Disable { .. }
                | ServersCommand::Trust { .. }
                | ServersCommand::Untrust { .. }
                | ServersCommand::Approve { .. }
                | ServersCommand::Login { .. }
                | ServersCommand::Logout { .. }
        ),
        Command::Callers(command) => !matches!(command, CallersCommand::List),
        Command::Service(command) => !matches!(command, ServiceCommand::Status),
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

pub(crate) use self::setup::{builder, servers_setup};

pub(crate) async fn run(cli: Cli, output: &Output) -> Result<(), CliError> {
    if let Command::Completions { shell } = cli.command {
        output.verbatim(completion::script(shell)?.trim_end());
        return Ok(());
    }
    if let Command::Settings(SettingsCommand::Schema) = cli.command {
        output.json(&toolyard::Settings::json_schema());
        return Ok(());
    }
    if matches!(cli.command, Command::Doctor) {
        return Box::pin(doctor::run(cli.config.as_deref(), output)).await;
    }
    if is_decision(&cli.command) && process_guard::is_started_by_source() {
        return Err(CliError::denied("refused: a process of a server or skill may not decide for you")
            .with_hint("run the command in a terminal of your own"));
    }
    let mut context = CliContext::load(cli.config.as_deref()).await?;
    if matches!(&cli.command, Command::Ask(arguments) if arguments.as_sent) {
        // Nothing is sent: a search by meaning would send the question to the embedding model.
        context.settings.search.embeddings = None;
    }
    if let [_, ..] = context.untrusted_settings.as_slice() {
        let names = context.untrusted_settings.join(", ");
        output.message(&format!("note: ignored until trusted: {names}. Review it, then run: toolyard trust"));
    }
    match cli.command {
        Command::Audit(command) => audit::run(command, require_store(&context)?, output).await,
        Command::Runs(command) => runs::run(command, &context, output).await,
        Command::Policy(PolicyCommand::Check { files }) => policy::check(files, &context, output),
        Command::Quotas => quotas::run(require_store(&context)?, &context, output).await,
        Command::Models(command) => models::run(command, &context, output).await,
        Command::Store(command) => store::run(command, require_store(&context)?, &context, output).await,
        Command::Trust { yes } => trust::run(yes, &context, output).await,
        Command::Skills(command) => skills::run(command, &context, output).await,
        Command::Servers(command) => servers::run(command, &context, output).await,
        Command::Secrets(command) => secrets::run(command, &context, output).await,
        Command::Import(arguments) => import::run(arguments, &context, output).await,
        Command::Serve(arguments) => Box::pin(serve::run(arguments, &context, output)).await,
        Command::Service(command) => service::run(&command, cli.config.as_deref(), &context, output),
        Command::Worker(arguments) => Box::pin(worker::run(&arguments, &context, output)).await,
        Command::Callers(command) => callers::run(command, &context, output).await,
        Command::Top(arguments) => top::run(arguments, &context, output).await,
        Command::Open(arguments) => open::run(&arguments, &context, output).await,
        Command::Connect(arguments) => {
            connect::run(&arguments, cli.config.as_deref(), &context, output).await
        }
        Command::Tools(command) => run_tools(command, &context, output).await,
        Command::Ask(arguments) => {
            let toolyard = build(builder(&context, servers_setup(&context))).await?;
            discover(&toolyard, &context, output).await?;
            let outcome = ask::run(arguments, &toolyard, output).await;
            close(&toolyard, &context).await?;
            outcome
        }
        Command::Chat(arguments) => chat::run(arguments, &context, output).await,
        Command::Call(arguments) => Box::pin(call::run(arguments, &context, output)).await,
        Command::Settings(SettingsCommand::Show { all }) => settings::run(all, &context, output),
        Command::Settings(SettingsCommand::Schema) | Command::Doctor | Command::Completions { .. } => Ok(()),
    }
}

async fn run_tools(command: ToolsCommand, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let toolyard = open(context).await?;
    match command {
        ToolsCommand::Search(_) => note_undiscovered(&toolyard, context, output),
        ToolsCommand::List { .. } => discover_for_list(&toolyard, context, output).await?,
        ToolsCommand::Show { .. } => discover(&toolyard, context, output).await?,
    }
    let outcome = tools::run(command, &toolyard, output).await;
    close(&toolyard, context).await?;
    outcome
}
