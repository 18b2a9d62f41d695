//! The program `toolyard`: reads the command line, runs one command, and says how it went.

mod cli;
mod commands;
mod failure;
mod files;
mod folders;
mod guardian;
mod logging;
mod logs;
mod machine;
mod output;
mod progress;
mod run_view;
mod server_files;

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;

use crate::{
    cli::{Cli, Command},
    output::Output,
};

/// A quarter of the instructions of a call through the hub were the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // A guardian of a server is this program too; it needs nothing else of it.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == guardian::WORD) {
        return guardian::run(words);
    }
    let cli = Cli::parse();
    logging::start(cli.verbose);
    let output = Output::new(cli.json);
    let runtime = match runtime(&cli) {
        Ok(runtime) => runtime,
        Err(error) => {
            output.error(&format!("failed to start: {error}"), None);
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(commands::run(cli, &output));
    // Whatever a dropped call left behind on other threads must not keep the program alive.
    runtime.shutdown_background();
    match outcome {
        Ok(()) if !output.is_complete() => {
            output.error("the answer could not be written", Some("is the disk full?"));
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(&output);
            failure.code()
        }
    }
}

/// One thread is enough for all but very busy hubs, and costs least for each call.
fn runtime(cli: &Cli) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    match &cli.command {
        Command::Serve(arguments) if arguments.threads > 1 => {
            Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()
        }
        _ => Builder::new_current_thread().enable_all().build(),
    }
}
