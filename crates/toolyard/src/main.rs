//! The program `toolyard`: parses the command line, runs one command and maps its outcome to an exit code.

mod cli;
mod commands;
mod completion;
mod config;
mod error;
mod process_guard;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;

use crate::{
    cli::{Cli, Command},
    terminal::{Output, logging},
};

/// Faster than the system allocator, which took a quarter of the instructions of a call through the hub.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // The guard of a server process is this program too; it needs no runtime.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == process_guard::GUARD_COMMAND) {
        return process_guard::run(arguments);
    }
    completion::complete();
    process_guard::deny_inspection();
    let cli = Cli::parse();
    let is_service = matches!(cli.command, Command::Serve(_) | Command::Worker(_));
    logging::init(cli.verbose, is_service, cli.log_format);
    let output = Output::new(cli.json).with_log_format(cli.log_format);
    let runtime = match build_runtime(&cli) {
        Ok(runtime) => runtime,
        Err(error) => {
            output.error(&format!("failed to start the async runtime: {error}"), None);
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(commands::run(cli, &output));
    runtime.block_on(commands::telemetry::shut_down());
    // Blocking work of abandoned calls must not keep the process alive.
    runtime.shutdown_background();
    logging::flush();
    match outcome {
        Ok(()) if !output.flush() => {
            output.error("failed to write to stdout", Some("check the free disk space"));
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(&output);
            failure.exit_code()
        }
    }
}

/// A single-threaded runtime, which has the least overhead per call, unless `serve --threads` asks for more threads.
fn build_runtime(cli: &Cli) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    match &cli.command {
        Command::Serve(arguments) if arguments.threads > 1 => {
            Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()
        }
        _ => Builder::new_current_thread().enable_all().build(),
    }
}
