//! The commands, a file each.

mod approve;
mod ask;
mod audit;
mod call;
mod chat;
mod chat_input;
mod chat_memory;
mod chat_words;
mod connect;
mod connect_edit;
mod connect_entry;
mod connect_match;
mod connect_record;
mod discovery;
mod doctor;
mod doctor_models;
mod doctor_serve;
mod doctor_servers;
mod driving;
mod edit_models;
mod edit_servers;
mod eval;
mod import;
mod import_files;
mod lexicon;
mod lexicon_fetch;
mod lexicon_file;
mod login;
mod model_memory;
mod models;
mod prompt;
mod runs;
mod runs_resume;
mod runs_show;
mod search;
mod serve;
mod serve_log;
mod serve_secrets;
mod server_memory;
mod servers;
mod skills;
mod store;
mod test_models;
mod test_servers;
mod text_diff;
mod tools;
mod trust;

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use clap::CommandFactory as _;
use toolyard::{ServersSetup, Toolyard, ToolyardBuilder};
use toolyard_hub::search::lexicon::Lexicons;
use toolyard_store::Store;

use self::discovery::discover;
use crate::{
    cli::{Cli, Command},
    failure::{Code, Failure},
    folders::{Workplace, workplace},
    guardian, logs,
    machine::Machine,
    output::Output,
    progress::waiting,
    run_view,
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
    // Measuring needs the folders it is given, and of this machine only its lexicons.
    if let Command::Eval(command) = cli.command {
        return eval::run(command, workplace.lexicon_files(), output);
    }
    if let [_, ..] = workplace.not_trusted.as_slice() {
        let names = workplace.not_trusted.join(", ");
        output.talk(&format!(
            "note: not used, because nobody trusted it: {names}; look at it, then: toolyard trust"
        ));
    }
    match cli.command {
        Command::Audit(command) => audit::run(command, kept(&workplace)?, output).await,
        Command::Runs(command) => runs::run(command, &workplace, output).await,
        Command::Models(command) => models::run(command, &workplace, output).await,
        Command::Store(command) => store::run(command, kept(&workplace)?, output).await,
        Command::Lexicon(command) => lexicon::run(command, &workplace, output).await,
        Command::Trust { yes } => trust::run(yes, &workplace, output).await,
        Command::Skills(command) => skills::run(command, &workplace, output).await,
        Command::Servers(command) => servers::run(command, &workplace, output).await,
        Command::Import(arguments) => import::run(arguments, &workplace, output).await,
        Command::Serve(arguments) => serve::run(arguments, &workplace, output).await,
        Command::Connect(arguments) => connect::run(&arguments, cli.config.as_deref(), &workplace, output),
        Command::Tools(command) => {
            let yard = open(&workplace).await?;
            discover(&yard, &workplace, output).await?;
            let outcome = tools::run(command, &yard, output).await;
            close(&yard, &workplace).await?;
            outcome
        }
        Command::Prompt(arguments) => {
            let yard = open(&workplace).await?;
            discover(&yard, &workplace, output).await?;
            let outcome = prompt::run(&arguments, &yard, &workplace.settings, output);
            close(&yard, &workplace).await?;
            outcome
        }
        Command::Ask(arguments) => {
            let yard = built(prepared(&workplace, asking_setup(&workplace, arguments.yes))).await?;
            discover(&yard, &workplace, output).await?;
            let outcome = ask::run(arguments, &yard, output).await;
            close(&yard, &workplace).await?;
            outcome
        }
        Command::Chat(arguments) => chat::run(arguments, &workplace, output).await,
        Command::Call(arguments) => {
            let yard = open(&workplace).await?;
            let outcome = call::run(arguments, &yard, &workplace, output).await;
            close(&yard, &workplace).await?;
            outcome
        }
        Command::Doctor | Command::Eval(_) | Command::Completions { .. } => Ok(()),
    }
}

/// The store, which these commands cannot do without.
pub(crate) fn kept(workplace: &Workplace) -> Result<&Store, Failure> {
    workplace.store.as_ref().ok_or_else(|| {
        Failure::new(Code::Failed, "there is no store: the usual folder cannot be written")
            .with_hint("set `store` in toolyard.toml")
    })
}

/// Stops what was started, and keeps what was said.
async fn close(yard: &Toolyard, workplace: &Workplace) -> Result<(), Failure> {
    logs::keep(yard, workplace);
    Ok(yard.close().await?)
}

/// The yard as the settings describe it.
async fn open(workplace: &Workplace) -> Result<Toolyard, Failure> {
    built(prepared(workplace, setup(workplace))).await
}

async fn built(builder: ToolyardBuilder) -> Result<Toolyard, Failure> {
    Ok(waiting("skills to describe themselves", builder.build()).await??)
}

/// The yard as the settings describe it, not built yet.
fn prepared(workplace: &Workplace, servers: ServersSetup) -> ToolyardBuilder {
    // A search engine that cannot be used costs its own tool and nothing else; the doctor says why.
    let search = workplace.settings.search(|name| std::env::var(name).ok()).unwrap_or_default();
    let mut builder = Toolyard::builder()
        .settings(workplace.settings.clone())
        .search(search)
        .lexicons(Lexicons::with_files(workplace.lexicon_files()))
        .surroundings(workplace.surroundings.clone())
        .models(model_memory::models(workplace))
        .owner(process_name())
        .servers(servers);
    if let Some(store) = &workplace.store {
        builder = builder.store(store.clone());
    }
    if let Some(folder) = &workplace.search_model {
        builder = with_model(builder, folder);
    }
    builder
}

/// The name of this process among all that work on runs.
fn process_name() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let name = || {
        let mut bytes = [0; 4];
        // Numbers of processes are used again. Without this, the time of a lease tells them apart.
        let _ = getrandom::fill(&mut bytes);
        format!("toolyard-{}-{:08x}", std::process::id(), u32::from_ne_bytes(bytes))
    };
    NAME.get_or_init(name).clone()
}

/// A model that cannot be read costs what it would add and nothing else.
#[cfg(feature = "embedding")]
fn with_model(builder: ToolyardBuilder, folder: &Path) -> ToolyardBuilder {
    match toolyard_hub::search::embedding::EmbeddingModel::open(folder) {
        Ok(model) => builder.search_model(model),
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "search_model is not used");
            builder
        }
    }
}

#[cfg(not(feature = "embedding"))]
fn with_model(builder: ToolyardBuilder, folder: &Path) -> ToolyardBuilder {
    tracing::warn!(folder = %folder.display(), "search_model is not used: this build reads no models (feature `embedding`)");
    builder
}

/// What servers may use of this machine, and that they may ask the person at the terminal, if there is one who does not
/// allow everything beforehand.
fn asking_setup(workplace: &Workplace, allows_everything: bool) -> ServersSetup {
    let mut setup = setup(workplace);
    if !allows_everything && run_view::is_somebody_there() {
        setup.input = Arc::new(run_view::AskThePerson);
    }
    setup
}

/// What servers may use of this machine.
fn setup(workplace: &Workplace) -> ServersSetup {
    let mut setup =
        ServersSetup::new(workplace.servers.clone(), workplace.surroundings.working_directory.clone());
    setup.environment = std::env::vars().collect();
    setup.guard = guardian::program();
    setup.surroundings = Arc::new(Machine::new(workplace));
    setup
}
